"""What an examination comes to.

Goal     One form for everything that can be said of a server, whoever says it.
Promise  Whatever is no good says why it matters to a cell, and what to run.
Source   `omega db doctor`.
"""

from dataclasses import dataclass
from enum import Enum


class Severity(Enum):
    """How bad it is; from bad to good."""

    UNSAFE = "unsafe"
    SLOW = "costs speed"
    LOOK = "worth a look"
    HIDDEN = "not seen"
    """This login may not see it."""
    GOOD = "good"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    severity: Severity
    found: str
    why: str = ""
    """Why it matters here."""
    run: str = ""
    """What to run, in SQL or in a shell."""

    def __post_init__(self) -> None:
        assert self.severity is Severity.GOOD or (self.why and self.run), self.what


def good(what: str, found: str) -> Finding:
    """Return that there is nothing to complain of."""
    return Finding(what, Severity.GOOD, found)
