"""Making room: which claims evict which running gangs, so that a plan can be one commit.

Goal     Turn claims, and a set of jobs that may be evicted, into evictions that the commit rule
         grants.
Promise  A gang is evicted by the first claim that needs its room, or by its own first claim, and
         only once. A gang whose room no claim needs keeps running. Claims are processed in the
         order in which they are judged.
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


def add_evictions(
    view: View,
    parts: Sequence[tuple[LeasedJob, Claims]],
    running: Allocations,
    preemptible: Iterable[int],
) -> list[Claims]:
    """Return the claims of each part, with the evictions that they need.

    `parts` has each job's claims. `running` has all allocations of the jobs `preemptible`, and
    perhaps of others. The jobs `preemptible` must be gangs that are evicted as a whole, and the
    transaction must present their leases.
    """
    room = _Room(view, running, frozenset(preemptible))
    return [room.taken_by(job.id, claims) for job, claims in parts]


class _Room:
    """What is free while claims are granted one after the other."""

    def __init__(self, view: View, running: Allocations, preemptible: frozenset[int]) -> None:
        self._view = view
        self._running = running
        self._free = view.free.copy()
        self._at = view.where(running.machine)
        self._rows: dict[int, Index] = {}
        """The positions in `running` of each gang that may still be evicted."""
        self._here: dict[int, list[int]] = {}
        """By a machine's row, the gangs that run there and may be evicted at the beginning."""
        for job in sorted(preemptible & set(running.job.tolist())):
            self._rows[job] = its = np.flatnonzero(running.job == job)
            for row in np.unique(self._at[its]).tolist():
                self._here.setdefault(row, []).append(job)

    def taken_by(self, job: int, claims: Claims) -> Claims:
        """Subtract what a job claims; return its claims with the evictions that they need."""
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
        """Return gangs on this machine whose eviction frees what is short, none of them needlessly.

        `short` (kinds,) is what the claim lacks. If evicting all of them does not suffice, the
        result is empty: the claim will be refused anyway.
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
        for job, held in chosen:  # a gang is needless if those chosen later free enough
            if (short + held > 0).any():
                needed.append(job)
            else:
                short = short + held
        return needed

    def _held(self, job: int, row: int) -> Amounts:
        its = self._rows[job]
        return np.asarray(self._running.amounts[its[self._at[its] == row]].sum(axis=0))

    def _task(self, job: int, row: int) -> int:
        """Return a task of a gang on this machine; naming it evicts the whole gang."""
        its = self._rows[job]
        return int(self._running.task[its[self._at[its] == row][0]])

    def _fall(self, job: int) -> None:
        its = self._rows.pop(job)
        known = its[self._at[its] >= 0]
        np.add.at(self._free, self._at[known], self._running.amounts[known])
