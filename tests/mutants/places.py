"""Where in a file a fragment of code stands, by its tokens and up to a renaming.

Goal     Find the place of a mutant after names, layout and comments have changed.
Promise  The function is searched that is named; the whole file, if no function has that name or
         several have. Names are compared as they are first. If the fragment is not there under
         these names, a place counts where other names stand instead, one for one. What is found
         is the only such place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.mutants.tokens import Kind, Token, tokens_of

MARKS = "«»"
"""Around the part of a fragment that a mutant replaces; the rest is context."""
RENAMEABLE = (Kind.NAME, Kind.WORD)
FIRST_COMPARED: Final = 4
"""So many tokens that keep their text are compared first: few positions are left after that."""

Name = tuple[Kind, str]


@dataclass(frozen=True)
class Fragment:
    """A run of tokens to look for, of which a part is to be replaced."""

    tokens: tuple[Token, ...]
    first: int
    """The first token of the part that is replaced."""
    end: int


@dataclass(frozen=True)
class Place:
    """Where a fragment stands."""

    at: int
    """Its first token in the file."""
    names: Mapping[Name, str]
    """What stands in the file for each name of the fragment."""


class NotOnePlaceError(ValueError):
    """A fragment stands nowhere, or in several places."""

    def __init__(self, places: Sequence[Place]) -> None:
        super().__init__(f"{len(places)} places")
        self.places = tuple(places)


def fragment(text: str, *, is_sql: bool) -> Fragment:
    """Read a fragment. Without marks, all of it is replaced."""
    before, opening, rest = text.partition(MARKS[0])
    marked, closing, after = rest.partition(MARKS[1])
    if not opening:
        before, marked, after = "", text, ""
    assert bool(opening) == bool(closing), text
    tokens = tokens_of(before + marked + after, is_sql=is_sql)
    first = sum(token.start < len(before) for token in tokens)
    end = sum(token.start < len(before) + len(marked) for token in tokens)
    assert first < end, f"nothing is marked in {text!r}"
    return Fragment(tuple(tokens), first, end)


def find(wanted: Fragment, tokens: Sequence[Token], scope: range) -> Place:
    """Return the one place of a fragment among the tokens of a scope. Raises NotOnePlaceError."""
    places: list[Place] = []
    for renamed in (False, True):
        places = list(_places(wanted.tokens, tokens, scope, renamed=renamed))
        if places:
            break
    if len(places) != 1:
        raise NotOnePlaceError(places)
    return places[0]


def scope_of(function: str, tokens: Sequence[Token], text: str, *, is_sql: bool) -> range:
    """Return the tokens of a function or class (`judge`, `Cell.commit`), or those of the file."""
    functions = _sql_functions(tokens) if is_sql else _python_functions(tokens, text)
    found = [
        inside for name, inside in functions if function and f".{name}".endswith(f".{function}")
    ]
    return found[0] if len(found) == 1 else range(len(tokens))


def _places(
    wanted: Sequence[Token], tokens: Sequence[Token], scope: range, *, renamed: bool
) -> Iterator[Place]:
    fixed = [
        (offset, ours.content)
        for offset, ours in enumerate(wanted)
        if ours.kind is not Kind.ANY_STRING and not (renamed and ours.kind in RENAMEABLE)
    ]
    first = fixed[:FIRST_COMPARED]
    for at in range(scope.start, scope.stop - len(wanted) + 1):
        if any(tokens[at + offset].content != content for offset, content in first):
            continue
        names = _names(wanted, tokens[at : at + len(wanted)], renamed=renamed)
        if names is not None:
            yield Place(at, names)


def _names(
    wanted: Sequence[Token], there: Sequence[Token], *, renamed: bool
) -> dict[Name, str] | None:
    """Return what the names of a fragment are in the text, or None if it is another text."""
    names: dict[Name, str] = {}
    stands_for: dict[str, str] = {}
    for ours, theirs in zip(wanted, there, strict=True):
        name = (ours.kind, ours.content)
        if ours.kind is Kind.ANY_STRING and theirs.is_string:
            names[name] = theirs.text
        elif ours.kind is not theirs.kind:
            return None
        elif ours.kind not in RENAMEABLE or not renamed:
            if ours.content != theirs.content:
                return None
            names[name] = theirs.text
        elif (
            names.setdefault(name, theirs.text) != theirs.text
            or stands_for.setdefault(theirs.text, ours.text) != ours.text
        ):
            return None
    return names


def _sql_functions(tokens: Sequence[Token]) -> Iterator[tuple[str, range]]:
    texts = [token.text for token in tokens]
    starts = [at for at, text in enumerate(texts) if text == "CREATE"]
    for start, end in zip(starts, [*starts[1:], len(tokens)], strict=True):
        yield texts[texts.index("(", start) - 1], range(start, end)


def _python_functions(tokens: Sequence[Token], text: str) -> Iterator[tuple[str, range]]:
    lines = [
        at
        for at, token in enumerate(tokens)
        if at == 0 or tokens[at - 1].kind is Kind.NEWLINE or token.text in ("def", "class")
    ]
    begins = {at: at - (at > 0 and tokens[at - 1].text == "async") for at in lines}
    column = {
        at: tokens[on].start - text.rfind("\n", 0, tokens[on].start) for at, on in begins.items()
    }
    enclosing: list[tuple[int, str]] = []
    for nth, at in enumerate(lines):
        while enclosing and enclosing[-1][0] >= column[at]:
            enclosing.pop()
        if tokens[at].text in ("def", "class"):
            name = tokens[at + 1].text
            end = next((on for on in lines[nth + 1 :] if column[on] <= column[at]), len(tokens))
            yield ".".join([*(outer for _, outer in enclosing), name]), range(at, end)
            enclosing.append((column[at], name))
