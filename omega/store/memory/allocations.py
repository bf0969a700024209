"""The allocations of a memory store: a structured array whose free rows are reused.

Goal     Hold millions of short-lived allocations without an object for each.
Promise  A row's position (its slot) is fixed as long as the allocation exists.
Source   docs/glossary.md: sequence, revision, generation and mark.
"""

import numpy as np

from omega.model.allocations import Allocations
from omega.model.arrays import Ids, Index, freeze
from omega.model.resources import KINDS
from omega.store.memory.row_log import RowLog

ROW = np.dtype(
    [
        ("job", np.int64),  # 0 in a free row; job ids start from 1
        ("task", np.int64),
        ("machine", np.int64),
        ("amounts", np.int64, (KINDS,)),
        ("started_ms", np.int64),
        ("duration_ms", np.int64),
        ("granted_by", np.int64),  # number of the transaction
    ]
)
ROWS_AT_FIRST = 1_024


class AllocationTable:
    """All current allocations, one in each used slot."""

    def __init__(self) -> None:
        self.rows = np.zeros(ROWS_AT_FIRST, dtype=ROW)
        self._free = list(range(ROWS_AT_FIRST - 1, -1, -1))
        self._log = RowLog()
        """By number of the transaction that granted them. A slot may have been reused since."""

    def __len__(self) -> int:
        return len(self.rows) - len(self._free)

    def add(self, rows: np.ndarray[tuple[int], np.dtype[np.void]]) -> Index:
        """Add allocations of one transaction, the latest; return the slot of each."""
        while len(self._free) < len(rows):
            held = len(self.rows)
            self.rows = np.concatenate([self.rows, np.zeros(held, dtype=ROW)])
            self._free[:0] = range(2 * held - 1, held - 1, -1)
        kept = len(self._free) - len(rows)
        slots = np.array(self._free[kept:], dtype=np.intp)
        del self._free[kept:]
        self.rows[slots] = rows
        if len(slots):
            self._log.note(slots, int(rows["granted_by"][0]))
        return slots

    def end(self, slots: Index) -> None:
        """Free these slots."""
        self.rows[slots] = 0
        self._free.extend(slots.tolist())

    def on(self, machines: Ids) -> Index:
        """Return the slots of all allocations on these machines, ascending."""
        return np.flatnonzero(np.isin(self.rows["machine"], machines) & (self.rows["job"] > 0))

    def machines(self, slots: Index) -> Ids:
        """Return the machine of each allocation in these slots."""
        return np.asarray(self.rows["machine"][slots])

    def live(self, since: int = 0) -> Allocations:
        """Return a copy of the allocations granted by transactions with a number above `since`."""
        logged = self._log.since(since)
        if logged is not None and not len(logged):
            return NO_ALLOCATIONS
        rows = self.rows if logged is None else self.rows[logged]
        return _columns(rows[(rows["job"] > 0) & (rows["granted_by"] > since)])

    def read(self, slots: Index) -> Allocations:
        """Return a copy of the allocations in these slots."""
        return _columns(self.rows[slots])


def _columns(rows: np.ndarray[tuple[int], np.dtype[np.void]]) -> Allocations:
    columns = [
        rows[name].copy()
        for name in ("job", "task", "machine", "amounts", "started_ms", "duration_ms")
    ]
    freeze(*columns)
    return Allocations(*columns)


NO_ALLOCATIONS = _columns(np.zeros(0, dtype=ROW))
