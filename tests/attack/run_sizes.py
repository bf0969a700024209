"""How many examples a test tries, and where it counts them."""

from contextlib import AbstractContextManager
from typing import Protocol


class ExampleCount(Protocol):
    """Returns `short` in `make test` and `long` in `make prove`."""

    def __call__(self, short: int, long: int) -> int: ...


class Row(Protocol):
    """One row of the table that `make prove` prints."""

    tried: int
    survived: int


class ResultTable(Protocol):
    """Opens a row of that table."""

    def __call__(self, what: str, *, of: str) -> AbstractContextManager[Row]: ...
