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
from omega.model.arrays import Amounts, Index, integers
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
                self._fall(job)
                named.append((claim, job, int(claims.task[claim])))
            if row < 0:
                continue  # it will be refused
            for victim in self._victims(row, demand[claim] - self._free[row]):
                named.append((claim, victim, self._task(victim, row)))
                self._fall(victim)
            self._free[row] -= demand[claim]
        if not named:
            return claims
        claim_of, jobs, tasks = zip(*named, strict=True)
        evictions = Evictions(np.array(claim_of, np.intp), integers(jobs), np.array(tasks, np.intp))
        return replace(claims, evictions=evictions)

    def _victims(self, row: int, short: Amounts) -> list[int]:
        """Return gangs on this machine whose fall makes up for what is short, and none too many.

        Nobody falls where all of them would not do: the claim will be refused anyhow.
        """
        chosen: list[tuple[int, Amounts]] = []
        for job in self._here.get(row, ()):
            if not (short > 0).any():
                break
            if job in self._rows and (held := self._held(job, row))[short > 0].any():
                chosen.append((job, held))
                short = short - held
        if (short > 0).any():
            return []
        needed = []
        for job, held in chosen:  # one that fell for CPU may be spared by one that fell for a GPU
            if (short + held > 0).any():
                needed.append(job)
            else:
                short = short + held
        return needed

    def _held(self, job: int, row: int) -> Amounts:
        its = self._rows[job]
        return np.asarray(self._running.amounts[its[self._at[its] == row]].sum(axis=0))

    def _task(self, job: int, row: int) -> int:
        """Return a task of a gang on this machine: the claim that names it ends all of them."""
        its = self._rows[job]
        return int(self._running.task[its[self._at[its] == row][0]])

    def _fall(self, job: int) -> None:
        its = self._rows.pop(job)
        known = its[self._at[its] >= 0]
        np.add.at(self._free, self._at[known], self._running.amounts[known])
