"""All exceptions that omega raises, as one tree.

Goal     Let a caller distinguish what it can correct, what it can retry and what is our own bug.
Promise  A refused claim is never an exception: a conflict is a value (omega.model). Each message is
         one clear sentence that a user can act on. No message holds a secret.
Source   docs/decisions, and the tree below, which is complete:

OmegaError
├── BadInput             something from outside is malformed; names the file, line and field
├── SettingsError        the operator's settings are wrong or contradict each other
├── UnknownScheduler     no scheduler is registered under this name
├── NotAllowed           the database's user lacks a right; nothing was changed
├── StoreUnavailable     the database did not answer; the same call may work later
│   └── StoreBusy        others hold locks that the call needs; nothing was done
├── SchemaMismatch       the database is at another migration; no retry will help
└── InvariantBroken      our bug; carries the story of the machine or job
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

SHOWN_MAX = 60
"""How many characters of an input an error message quotes."""


class OmegaError(Exception):
    """The base class of all errors that omega raises on purpose."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments and all attributes, whatever the signature of `__init__`."""
        return _remade, (type(self), self.args, vars(self))


def _remade(kind: type[OmegaError], told: tuple[object, ...], state: dict[str, Any]) -> OmegaError:
    error = kind.__new__(kind, *told)
    vars(error).update(state)
    return error


class BadInput(OmegaError):
    """Something from outside (a file, an argument, a row of a trace) cannot be used."""

    def __init__(
        self,
        sentence: str,
        *,
        file: str | None = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        self.sentence = sentence
        self.file = file
        self.line = line
        self.field = field
        places = (
            file,
            None if line is None else f"line {line}",
            None if field is None else f"field {field}",
        )
        where = ", ".join(place for place in places if place is not None)
        super().__init__(f"{where}: {sentence}" if where else sentence)


class SettingsError(OmegaError):
    """The operator's settings cannot be used; `problems` has every problem found."""

    def __init__(self, problems: Sequence[str]) -> None:
        assert problems, "a SettingsError without a problem explains nothing"
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


class UnknownScheduler(OmegaError):
    """No scheduler is registered under this name."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name
        self.known = tuple(sorted(known))
        there_are = ", ".join(self.known) or "none at all"
        super().__init__(
            f"no scheduler is registered as {name!r}{did_you_mean(name, self.known)}"
            f" (registered: {there_are})"
        )


class NotAllowed(OmegaError):
    """The database's user lacks the right to do what was requested; nothing was changed."""


class StoreUnavailable(OmegaError):
    """The database did not answer; the same call may work later."""


class StoreBusy(StoreUnavailable):
    """Other transactions hold locks that the call needs; nothing was done."""


class SchemaMismatch(OmegaError):
    """The database is at another migration than this code; no retry will help."""


class InvariantBroken(OmegaError):
    """Our own bug; `story` has the events of the machine or job that show it."""

    def __init__(self, what: str, *, story: Sequence[str] = ()) -> None:
        self.what = what
        self.story = tuple(story)
        super().__init__("\n  ".join([what, *story]))


def shortened(text: str) -> str:
    """Return the first `SHOWN_MAX` characters of a text, with `...` if there are more."""
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}..."


def did_you_mean(word: str, known: Iterable[str], *, prefix: str = "") -> str:
    """Return `; did you mean 'this'?` for the nearest known word, or nothing when none is near.

    The prefix is ignored when words are compared.
    """
    rests = [other.removeprefix(prefix) for other in known]
    nearest = get_close_matches(word.removeprefix(prefix), rests, n=1)
    return f"; did you mean {prefix + nearest[0]!r}?" if nearest else ""
