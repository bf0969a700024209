"""What rows of a simulated cell were before they changed.

Goal     Let a look at the past cost what has changed since, in a few arrays.
Promise  Changes are numbered from the first on and kept in that order, until they are dropped.
Source   docs/decisions/0030-looks-in-virtual-time.md.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from omega.model.arrays import Index

Columns = Sequence[NDArray[np.generic]]

ROOM: Final = 64
"""Changes that there is room for in the beginning: few, so that tests see it grow."""


class ChangeLog:
    """Rows that changed, and what they were: a change is one row."""

    def __init__(self, columns: Columns) -> None:
        """`columns` are those of the cell, with an entry for each row."""
        self._columns = columns
        self.at: Index = np.zeros(ROOM, np.intp)
        self.were = [np.zeros((ROOM, *one.shape[1:]), one.dtype) for one in columns]
        self.kept = 0
        """How many are kept."""
        self._dropped = 0

    @property
    def number(self) -> int:
        """How many changes there have been: the number of the next."""
        return self._dropped + self.kept

    def nth(self, number: int) -> int:
        """Return which of those kept has this number."""
        return number - self._dropped

    def make_room(self, changes: int) -> None:
        """Have room for so many more, in other arrays if need be."""
        needed = self.kept + changes
        if needed > len(self.at):
            more = max(needed, 2 * len(self.at)) - len(self.at)
            self.at = np.concatenate([self.at, np.zeros(more, np.intp)])
            self.were = [
                np.concatenate([one, np.zeros((more, *one.shape[1:]), one.dtype)])
                for one in self.were
            ]

    def keep(self, at: Index) -> None:
        """Keep what rows are that are about to change."""
        self.make_room(len(at))
        new = slice(self.kept, self.kept + len(at))
        self.at[new] = at
        for were, column in zip(self.were, self._columns, strict=True):
            were[new] = column[at]
        self.kept = new.stop

    def since(self, number: int) -> tuple[Index, Columns]:
        """Return the rows that changed since, and what they were; the latest change first."""
        since = slice(number - self._dropped, self.kept)
        return self.at[since][::-1], [were[since][::-1] for were in self.were]

    def drop(self, number: int) -> None:
        """Forget the changes before this one."""
        dropped = number - self._dropped
        assert 0 <= dropped <= self.kept
        if dropped < self.kept:
            left = slice(dropped, self.kept)
            for one in (self.at, *self.were):
                one[: self.kept - dropped] = one[left].copy()
        self._dropped += dropped
        self.kept -= dropped
