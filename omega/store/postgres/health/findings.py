"""The findings of an examination.

Goal     One form for all findings about a server.
Promise  A finding that is not good says why it matters to a cell, and what to run.
Source   `omega db doctor`.
"""

from dataclasses import dataclass
from enum import Enum


class Severity(Enum):
    """How bad a finding is, from worst to best."""

    UNSAFE = "unsafe"
    SLOW = "costs speed"
    LOOK = "worth a look"
    HIDDEN = "not seen"
    """This login may not read it."""
    GOOD = "good"


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    what: str
    severity: Severity
    found: str
    why: str = ""
    """Why it matters here."""
    run: str = ""
    """What to run, as SQL or in a shell."""

    def __post_init__(self) -> None:
        assert self.severity is Severity.GOOD or (self.why and self.run), self.what


def good(what: str, found: str) -> Finding:
    """Return a finding without anything to complain of."""
    return Finding(what, Severity.GOOD, found)
