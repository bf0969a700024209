"""The history of ended tasks in a memory store: arrays, of bounded length.

Goal     Keep when each task ran, for audits, without an object for each.
Promise  Rows are in order of their ends. Of more than `kept_max` the oldest are dropped.
Source   The table ended_task of the Postgres store.
"""

from enum import IntEnum
from typing import Final

import numpy as np

from omega.model.arrays import Ids, Index

KEPT_MAX: Final = 1_000_000
"""Ended tasks of which a memory store knows; each takes 41 bytes."""
ROWS_AT_FIRST: Final = 1_024
ROW: Final = np.dtype(
    [
        ("job", np.int64),
        ("task", np.int64),
        ("machine", np.int64),
        ("started_ms", np.int64),
        ("ended_ms", np.int64),
        ("cause", np.int8),
    ]
)

Rows = np.ndarray[tuple[int], np.dtype[np.void]]


class EndCause(IntEnum):
    """Why a task lost its place."""

    ENDED = 0
    EVICTED = 1
    """By a commit: for another task, or to move this one."""
    LOST = 2
    """Its machine failed, left or shrank."""


class EndedTasks:
    """When tasks ran that have lost their places, by their end or by an eviction."""

    def __init__(self, kept_max: int = KEPT_MAX) -> None:
        self._kept_max = kept_max
        self._rows = np.zeros(min(ROWS_AT_FIRST, 2 * kept_max), dtype=ROW)
        self._used = 0

    @property
    def rows(self) -> Rows:
        """The rows that are kept, oldest first."""
        return self._rows[max(0, self._used - self._kept_max) : self._used]

    def add(
        self,
        job: Ids,
        task: Index,
        machine: Ids,
        started_ms: Ids,
        ended_ms: int,
        cause: EndCause = EndCause.ENDED,
    ) -> None:
        """Add tasks that end at one time, for one cause."""
        new = np.zeros(len(job), dtype=ROW)
        new["job"], new["task"], new["machine"] = job, task, machine
        new["started_ms"], new["ended_ms"], new["cause"] = started_ms, ended_ms, cause
        if self._used + len(new) > len(self._rows):
            kept = self.rows.copy()
            # Twice what is kept: rows are then moved once for each time that they are replaced.
            self._rows = np.zeros(2 * (len(kept) + len(new)), dtype=ROW)
            self._rows[: len(kept)] = kept
            self._used = len(kept)
        self._rows[self._used : self._used + len(new)] = new
        self._used += len(new)
