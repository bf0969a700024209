"""How much is tried, and where it is counted: what the fixtures `dose` and `tally` give."""

from contextlib import AbstractContextManager
from typing import Protocol


class Dose(Protocol):
    """Chooses between a little and much."""

    def __call__(self, short: int, long: int) -> int: ...


class Row(Protocol):
    """A line of the table."""

    tried: int
    survived: int


class Tally(Protocol):
    """Opens a line of the table."""

    def __call__(self, what: str, *, of: str) -> AbstractContextManager[Row]: ...
