"""Making room: which running gangs fall to which claims, so that a plan can be one commit.

Goal     Turn "these jobs go there, and those may go" into evictions that the commit rule grants.
Promise  A gang falls to the first claim that needs its room, or to its own first claim, and to no
         other; one whose room nobody needs runs on. Claims are taken in order, as they are judged.
Source   docs/decisions/0026-moves.md, 0028-rounds-on-the-shared-cell.md.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from omega.cell.view import View
from omega.model.allocations import Allocations
from omega.model.arrays import Amounts, Index, Mask, integers
from omega.model.claims import Claims, Evictions
from omega.model.jobs import LeasedJob


def make_room(
    view: View,
    parts: Sequence[tuple[LeasedJob, Claims]],
    running: Allocations,
    may_go: Iterable[int],
) -> list[Claims]:
    """Return the claims of each part with what they evict.

    `running` is what the jobs that may go have running, and perhaps others; those that may go are
    gangs that fall whole, and their leases are presented with the claims.
    """
    room = _Room(view, running, frozenset(may_go))
    return [room.taken_by(job.id, claims) for job, claims in parts]


class _Room:
    """What is free as claim after claim is granted."""

    def __init__(self, view: View, running: Allocations, may_go: frozenset[int]) -> None:
        self._view = view
        self._running = running
        self._free = view.free.copy()
        self._at = view.where(running.machine)
        self._rows: dict[int, Index] = {}
        """Of each gang that may still go, where its allocations stand among those running."""
        self._here: dict[int, list[int]] = {}
        """By row of a machine, the gangs that run there and may go."""
        for job in sorted(may_go & set(running.job.tolist())):
            self._rows[job] = its = np.flatnonzero(running.job == job)
            for row in np.unique(self._at[its]).tolist():
                self._here.setdefault(row, []).append(job)

    def taken_by(self, job: int, claims: Claims) -> Claims:
        """Take what a job claims; return its claims with the evictions that they need."""
        named: list[tuple[int, int, int]] = []
        at, demand = self._view.where(claims.machine), claims.demand
        for claim, row in enumerate(at.tolist()):
            if job in self._rows:
                named.append((claim, job, self._fall(job, None)))
            if row < 0:
                continue  # it will be refused
            while (short := demand[claim] > self._free[row]).any():
                victim = self._victim(row, short)
                if victim is None:
                    break
                named.append((claim, victim, self._fall(victim, row)))
            self._free[row] -= demand[claim]
        if not named:
            return claims
        claim_of, jobs, tasks = zip(*named, strict=True)
        evictions = Evictions(np.array(claim_of, np.intp), integers(jobs), np.array(tasks, np.intp))
        return replace(claims, evictions=evictions)

    def _victim(self, row: int, short: Mask) -> int | None:
        """Return a gang on this machine that holds some of what is short; None without any."""
        for job in self._here.get(row, ()):
            if job in self._rows and self._held(job, row)[short].any():
                return job
        return None

    def _held(self, job: int, row: int) -> Amounts:
        its = self._rows[job]
        return np.asarray(self._running.amounts[its[self._at[its] == row]].sum(axis=0))

    def _fall(self, job: int, row: int | None) -> int:
        """Free what a gang holds; return the task to be named, one on this machine if told."""
        its = self._rows.pop(job)
        known = its[self._at[its] >= 0]
        np.add.at(self._free, self._at[known], self._running.amounts[known])
        here = its if row is None else its[self._at[its] == row]
        return int(self._running.task[here[0]])
