"""Which tasks a job of a tenant with a smaller share may evict, in an attempt.

Goal     Let a scheduler that otherwise evicts nobody evict tasks of tenants with larger shares.
Promise  Nobody is evicted for a job that has existed for less than a set time. One process of a
         cell reclaims at a time, under a lease, by a sum of use that was made under it, with what
         it has placed and evicted since. So no more is evicted than evens out tenants' shares,
         unless a process is held up between that and its commit for longer than its lease. If no
         tenant has a larger share than the job's, nothing is leased or read.
Source   docs/decisions/0063-reclaim.md.
"""

import math
from dataclasses import replace
from typing import Final
from uuid import UUID

import numpy as np

from omega.cell.view import View
from omega.clock import Clock
from omega.framework.effects import Effects, called
from omega.framework.fair_queue import FairQueue
from omega.model.arrays import Ids, Index
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.model.lanes import demand_left
from omega.model.occupants import Occupants
from omega.ordering.fair import by_resource
from omega.ordering.reclaim import Reclaimable, Shares, is_below
from omega.placement.victims import place_with_evictions

LEASE_MS: Final = 2_000


class Reclaiming:
    """Decides which tasks a job may evict, by the shares of a fair queue."""

    def __init__(
        self, queue: FairQueue, clock: Clock, kind: str, replica: str, holder: UUID, after_ms: int
    ) -> None:
        """`after_ms` is for how long a job must have existed."""
        self._queue = queue
        self._clock = clock
        self._kind = kind
        self._replica = replica
        self._holder = holder
        self._after_ms = after_ms
        self._since_s = math.inf
        """Since when this process has held the lease without a break."""
        self._until_s = -math.inf
        """When the lease runs out."""
        self._summed_s = -math.inf
        """When the sum of use was made that was read last under the lease."""

    def charge(self, job: LeasedJob, left: Index) -> None:
        """Count all tasks of a leased job but those left, (tasks,), as placed or claimed."""
        self._queue.charge_claims(job, demand_left(replace(job, unplaced=np.sort(left))))

    def may(self, job: LeasedJob) -> Effects[bool]:
        """Return whether the job may evict anybody now."""
        if job.age_ms < self._after_ms or not self._is_below(job):
            return False
        if not (yield from self._leased()):
            return False
        if self._summed_s < self._since_s:
            self._summed_s = yield from self._queue.read_use_anew()
        return self._summed_s >= self._since_s and self._is_below(job)

    def place(
        self,
        view: View,
        job: LeasedJob,
        machines: Ids,
        occupants: Occupants,
        rng: np.random.Generator,
    ) -> Claims:
        """Return claims with evictions for as many of the job's tasks as its tenant may have.

        Arguments are those of `place_with_evictions`. What is evicted counts as used no more, until
        use is read again.
        """
        best = Claims.none()
        shares = self._shares(job)
        if shares is None:
            return best
        at = view.where(machines)
        free = by_resource(view.free[at[at >= 0]].sum(axis=0))
        reclaimable = Reclaimable(shares, job, occupants, free)
        for tasks, may_go in reclaimable.options():
            if tasks <= len(best):
                break
            part = replace(job, unplaced=job.unplaced[:tasks])
            some = place_with_evictions(view, part, machines, occupants.only(may_go), rng)
            if len(some) > len(best) and reclaimable.allows(some):
                best = some
        self._note(occupants, best)
        return best

    def _note(self, occupants: Occupants, claims: Claims) -> None:
        gone = np.flatnonzero(occupants.named_in(claims.evictions))
        of = np.searchsorted(occupants.distinct_job, occupants.job[gone])
        amounts = by_resource(occupants.amounts[gone])
        for number in np.unique(of).tolist():
            self._queue.note_evicted(occupants.tenant[number], amounts[of == number].sum(axis=0))

    def _leased(self) -> Effects[bool]:
        """Return whether this process holds the lease, for half of its time at least."""
        asked_s = self._clock.now()
        if self._until_s - asked_s >= LEASE_MS / 2_000:
            return True
        granted = yield from called(
            "lease_reclaim",
            lambda store: store.lease_reclaim(
                self._kind, self._replica, holder=self._holder, lease_ms=LEASE_MS
            ),
        )
        if granted and asked_s >= self._until_s:
            self._since_s = self._clock.now()
        if granted:
            self._until_s = asked_s + LEASE_MS / 1_000
        return granted

    def _is_below(self, job: LeasedJob) -> bool:
        shares = self._shares(job)
        return shares is not None and len(job.unplaced) > 0 and is_below(shares, job)

    def _shares(self, job: LeasedJob) -> Shares | None:
        """Return the shares, if the job's tenant is among them."""
        shares = self._queue.shares()
        return shares if shares and job.spec.tenant in shares.nodes.position else None
