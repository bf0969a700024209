"""A mutant: one small fault, planted on purpose, that some test has to notice."""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from tests.mutants.places import Name, NotOnePlaceError, Place, find, fragment, scope_of
from tests.mutants.tokens import tokens_of

FOLDERS = ("omega", "schedulers")
"""Where a file is looked for that is not where it was."""

_cached_tokens = lru_cache(maxsize=512)(tokens_of)


@dataclass(frozen=True)
class Planted:
    """A file with a fault in it."""

    path: Path
    at: int
    """The first token of the fragment, in the file without the fault."""
    before: str
    """The file up to the fault."""
    fault: str
    after: str
    """The rest of the file."""

    @property
    def text(self) -> str:
        """The whole file, with the fault."""
        return self.before + self.fault + self.after


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One fault in one place.

    A place is found by its tokens: layout and comments do not count, and where the names of the
    fragment are not there, other names count if they stand for them one for one.
    """

    name: str
    """What is wrong, in words that can be typed: `judge.lease-not-checked`."""
    file: str
    """Where it is planted, seen from the project's root, or a file of the same name elsewhere."""
    function: str
    """In which function or class of the file: `judge`, `Cell.commit`; empty if in none."""
    before: str
    """What stands there: code, of which the part between « and », or all of it, is replaced."""
    after: str
    """What replaces it. Its names are those of `before`, or borrowed."""
    why: str
    """What users would suffer from it, in one sentence."""
    tests: tuple[str, ...] = field(repr=False)
    """Files and folders of tests, in the order in which they are asked."""
    borrows: tuple[str, str] | None = None
    """A file and a fragment of it that holds names which `after` uses and `before` does not."""

    @property
    def is_sql(self) -> bool:
        """Whether it is a fault in SQL; in Python otherwise."""
        return self.file.endswith(".sql")

    def plant(self, root: Path) -> None:
        """Write the fault into the tree of files under `root`. Raises ValueError if it cannot."""
        planted = self.planted(root)
        path = planted.path
        path.write_text(planted.text, encoding="utf-8")
        for compiled in path.parent.glob(f"__pycache__/{path.stem}.*"):
            compiled.unlink()  # Python would take it for this text's, were it as old and as long

    def planted(self, root: Path) -> Planted:
        """Return the file with the fault. Raises ValueError if it has no one place."""
        path = self._located(root, self.file)
        text = path.read_text(encoding="utf-8")
        tokens = _cached_tokens(text, is_sql=self.is_sql)
        place = self._place(root, path, self.before, self.function)
        names = {**self._borrowed(root), **place.names}
        wanted = fragment(self.before, is_sql=self.is_sql)
        start = tokens[place.at + wanted.first].start
        end = tokens[place.at + wanted.end - 1].end
        fault = _indented(self._renamed(names), text, start)
        return Planted(path, place.at, text[:start], fault, text[end:])

    def files(self, root: Path) -> tuple[Path, ...]:
        """Return the file of the fault, and the one that it borrows names from if it does."""
        return tuple(self._located(root, file) for file in (self.file, *(self.borrows or ())[:1]))

    def _located(self, root: Path, file: str) -> Path:
        """Return the file, or the one that has its name elsewhere."""
        if (root / file).exists():
            return root / file
        name = Path(file).name
        found = [path for folder in FOLDERS for path in sorted((root / folder).rglob(name))]
        if len(found) != 1:
            where = ", ".join(str(path.relative_to(root)) for path in found) or "nowhere"
            raise ValueError(f"{self.name}: {file} is not there; files of its name: {where}")
        return found[0]

    def _place(self, root: Path, path: Path, code: str, function: str) -> Place:
        text = path.read_text(encoding="utf-8")
        tokens = _cached_tokens(text, is_sql=self.is_sql)
        scope = scope_of(function, tokens, text, is_sql=self.is_sql)
        try:
            return find(fragment(code, is_sql=self.is_sql), tokens, scope)
        except NotOnePlaceError as error:
            lines = [text.count("\n", 0, tokens[place.at].start) + 1 for place in error.places]
            where = f"in lines {', '.join(map(str, lines))}" if lines else "nowhere"
            file = path.relative_to(root)
            raise ValueError(f"{self.name}: {file} holds it {where}: {code!r}") from error

    def _borrowed(self, root: Path) -> Mapping[Name, str]:
        if self.borrows is None:
            return {}
        file, code = self.borrows
        return self._place(root, self._located(root, file), code, "").names

    def _renamed(self, names: Mapping[Name, str]) -> str:
        """Return what replaces the code, under the names that the file has."""
        pieces, end = [], 0
        for token in tokens_of(self.after, is_sql=self.is_sql):
            name = names.get((token.kind, token.content), token.text)
            pieces += [self.after[end : token.start], name]
            end = token.end
        return "".join([*pieces, self.after[end:]])


def _indented(code: str, text: str, start: int) -> str:
    """Indent all lines but the first like the line that they are planted in."""
    first, newline, rest = code.partition("\n")
    line = text[text.rfind("\n", 0, start) + 1 :]
    indent = line[: len(line) - len(line.lstrip())]
    return first + newline + textwrap.indent(textwrap.dedent(rest), indent)


@dataclass(frozen=True)
class Part:
    """A part of the page of mutants; called, it returns a mutant of the part."""

    name: str
    """The first word of its mutants' names."""
    tests: tuple[str, ...] = ()
    """The tests that are asked for a mutant that names none."""

    def __call__(
        self,
        name: str,
        file: str,
        function: str,
        before: str,
        after: str,
        why: str,
        tests: tuple[str, ...] = (),
        *,
        borrows: tuple[str, str] | None = None,
    ) -> Mutant:
        """Return a mutant; the parameters are its fields."""
        return Mutant(
            name=f"{self.name}.{name}",
            file=file,
            function=function,
            before=before,
            after=after,
            why=why,
            tests=tests or self.tests,
            borrows=borrows,
        )
