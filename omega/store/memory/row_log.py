"""Which rows of a table the latest transactions wrote.

Goal     Let a read of what is new find it without a look at every row.
Promise  The log has all rows of the transactions that it covers, and says which it does not cover.
         Its size is bounded.
Source   docs/decisions/0020-deltas-look-up-what-changed.md.
"""

from bisect import bisect_right

import numpy as np

from omega.model.arrays import Index, distinct, integers

LOGGED_MAX = 4_096
"""The number of transactions for which the log keeps the rows."""


class RowLog:
    """The rows that the latest transactions wrote."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._rows: list[Index] = []
        self._from = -1
        """The rows of transactions up to this number were dropped."""

    def note(self, at: Index, number: int) -> None:
        """Note the rows that a transaction wrote; numbers never fall."""
        if len(self._numbers) == LOGGED_MAX:
            half = LOGGED_MAX // 2
            self._from = self._numbers[half - 1]
            del self._numbers[:half], self._rows[:half]
        self._numbers.append(number)
        self._rows.append(at)

    def since(self, number: int) -> Index | None:
        """Return the rows written after a number, distinct, ascending; None if dropped."""
        if number < self._from:
            return None
        first = bisect_right(self._numbers, number)
        if first == len(self._numbers):
            return integers()
        return distinct(np.concatenate([integers(), *self._rows[first:]]))
