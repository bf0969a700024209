"""The rows of a simulated cell, with compiled loops for jobs of one plain group.

Goal     Draw machines for all tasks of a job and claim them in one call, without temporary arrays.
Promise  Draws, grants and rows are those of `CellRows` and `omega.placement.first_fit`. A job that
         is not granted whole is left to those two.
Source   docs/decisions/0034-compiled-loops.md. Needs the extra `fast`.
"""

from typing import Final

import numpy as np

from omega.model.arrays import Amounts, Ids, integers
from omega.model.jobs import LeasedJob
from omega.model.machines import Snapshot
from omega.sim import kernels
from omega.sim.kernels import NOT_CLAIMED, NOTHING_KEPT, STATE_WORDS, RowHistory, Rows, Scratch
from omega.sim.rows import CellRows, Look

NOT_SEEN: Final = integers()
"""Empty: under the fit rule claims compare no sequences."""


class CompiledRows(CellRows):
    """The rows of a simulated cell whose machines do not change."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot, machines_change=False)
        free = self._free[:, : self._kinds]
        self._rows = Rows(free, self._open, self._sequence, self._revision)
        self._scratch = Scratch(
            np.zeros(STATE_WORDS, np.uint64), integers(), np.zeros(len(self), np.int64)
        )

    def draw_and_claim(
        self, job: LeasedJob, seed: bytes, look: Look | None, *, by_sequence: bool
    ) -> Ids | None:
        """Draw a machine for each unplaced task and claim them all; return their ids, or None."""
        tasks = len(job.unplaced)
        if not len(self) or (look is not None and look.seen):
            return None
        log, machine = self._log, np.empty(tasks, np.int64)
        if len(self._scratch.seen) < tasks:
            self._scratch = self._scratch._replace(seen=np.zeros(2 * tasks, np.int64))
        kept = self._room_for(tasks)
        first = log.kept if look is None else log.nth(look.since)
        end = kernels.draw_and_claim(
            self._rows,
            kept,
            (first, log.kept, bool(self._looks)),
            job.spec.groups[0].demand,
            (np.frombuffer(seed, np.uint64), by_sequence),
            self._scratch,
            machine,
        )
        if end == NOT_CLAIMED:
            return None
        self._end_at(end)
        machine += 1
        return machine

    def claim_one_shape(self, machine: Ids, demand: Amounts) -> None:
        """Grant tasks of one shape, one an entry, all of which fit; the machine ids ascend."""
        kept = self._room_for(len(machine))
        end = kernels.claim(self._rows, kept, self._end, demand, NOT_SEEN, machine - 1)
        assert end != NOT_CLAIMED, "all of them fit"
        self._end_at(end)

    def release_one_shape(self, machine: Ids, demand: Amounts) -> None:
        """Free what tasks of one shape used, one an entry."""
        kept, at = self._room_for(len(machine)), machine - 1
        at.sort()
        self._end_at(kernels.release(self._rows, kept, self._end, demand, at))

    def move_free(self, machine: Ids, other: CellRows) -> int:
        """Move what is free of some machines to other rows of the same machines; return the CPU."""
        assert isinstance(other, CompiledRows), "of cells of one kind"
        return kernels.move_free(self._rows.free, other._rows.free, machine)  # noqa: SLF001 - of its own class

    @property
    def _end(self) -> int:
        return self._log.kept if self._looks else NOTHING_KEPT

    def _end_at(self, end: int) -> None:
        if end >= 0:
            self._log.kept = end

    def _room_for(self, changes: int) -> RowHistory:
        """Return the arrays of the log; they are new ones after it has grown."""
        log = self._log
        log.reserve(changes)
        return RowHistory(log.at, *log.were)
