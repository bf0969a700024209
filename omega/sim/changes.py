"""A log of the earlier contents of rows of a simulated cell.

Goal     Make the cost of showing an earlier moment depend only on the rows changed since then.
Promise  Changes are numbered from 0 and kept in order until they are dropped.
Source   docs/decisions/0030-looks-in-virtual-time.md.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from omega.model.arrays import Index

Columns = Sequence[NDArray[np.generic]]

ROOM: Final = 64
"""Initial capacity in changes; small, so that the arrays grow in tests."""


class ChangeLog:
    """Changed rows with their earlier contents; one change is one row."""

    def __init__(self, columns: Columns) -> None:
        """`columns` are the live arrays of the cell, each with an entry for each row."""
        self._columns = columns
        self.at: Index = np.zeros(ROOM, np.intp)
        self.were = [np.zeros((ROOM, *one.shape[1:]), one.dtype) for one in columns]
        self.kept = 0
        """How many changes are kept."""
        self._dropped = 0

    @property
    def number(self) -> int:
        """How many changes were ever logged: the number of the next one."""
        return self._dropped + self.kept

    def nth(self, number: int) -> int:
        """Return the position, among the changes kept, of the change with this number."""
        return number - self._dropped

    def reserve(self, changes: int) -> None:
        """Make room for so many more changes; the arrays may be replaced by larger ones."""
        needed = self.kept + changes
        if needed > len(self.at):
            more = max(needed, 2 * len(self.at)) - len(self.at)
            self.at = np.concatenate([self.at, np.zeros(more, np.intp)])
            self.were = [
                np.concatenate([one, np.zeros((more, *one.shape[1:]), one.dtype)])
                for one in self.were
            ]

    def keep(self, at: Index) -> None:
        """Log the contents of rows that are about to change."""
        self.reserve(len(at))
        new = slice(self.kept, self.kept + len(at))
        self.at[new] = at
        for were, column in zip(self.were, self._columns, strict=True):
            were[new] = column[at]
        self.kept = new.stop

    def since(self, number: int) -> tuple[Index, Columns]:
        """Return rows changed since a number and their earlier contents, latest change first."""
        since = slice(number - self._dropped, self.kept)
        return self.at[since][::-1], [were[since][::-1] for were in self.were]

    def drop(self, number: int) -> None:
        """Drop the changes before the one with this number."""
        dropped = number - self._dropped
        assert 0 <= dropped <= self.kept
        if dropped < self.kept:
            left = slice(dropped, self.kept)
            for one in (self.at, *self.were):
                one[: self.kept - dropped] = one[left].copy()
        self._dropped += dropped
        self.kept -= dropped
