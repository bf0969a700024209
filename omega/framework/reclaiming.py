"""Whom a job of a tenant below its fair share may evict, in an attempt.

Goal     Let a scheduler that otherwise evicts nobody evict tasks of tenants above their shares.
Promise  Nobody is evicted for a job that has existed for less than a set time. One process of a
         cell reclaims at a time, under a lease, by a sum of use that was made under it, with what
         it has placed and evicted since. So no more is evicted than brings tenants to their
         shares, unless a process is held up between that and its commit for longer than its lease.
         If no tenant has a larger share than the job's, nothing is leased or read.
Source   docs/decisions/0063-reclaim.md.
"""

import math
from dataclasses import replace
from typing import Final
from uuid import UUID

import numpy as np

from omega.clock import Clock
from omega.framework.effects import Effects, called
from omega.framework.fair_queue import FairQueue
from omega.model.arrays import Amounts
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.model.lanes import job_demand
from omega.model.occupants import Occupants
from omega.ordering.fair import by_resource
from omega.ordering.reclaim import Shares, is_below, reclaimable

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

    def charge(self, job: LeasedJob, tasks: int) -> None:
        """Count so many tasks as placed or claimed by the attempt at a leased job."""
        self._queue.charge_claims(job, job_demand(job.spec) // job.spec.tasks * tasks)

    def may(self, job: LeasedJob) -> Effects[bool]:
        """Return whether the job may evict anybody now."""
        if job.age_ms < self._after_ms or not self._is_below(job):
            return False
        if not (yield from self._leased()):
            return False
        if self._summed_s < self._since_s:
            self._summed_s = yield from self._queue.read_use_anew()
        return self._summed_s >= self._since_s and self._is_below(job)

    def narrowed(
        self, job: LeasedJob, occupants: Occupants, free: Amounts
    ) -> tuple[LeasedJob, Occupants]:
        """Return the job with the tasks for which it may evict, and the occupants that may go.

        `free` (machines, kinds) is what the machines have free. Other occupants run on, unlisted.
        """
        shares = self._shares(job)
        tasks, may_go = 0, np.zeros(len(occupants), dtype=np.bool_)
        if shares is not None:
            tasks, may_go = reclaimable(shares, job, occupants, by_resource(free.sum(axis=0)))
        return replace(job, unplaced=job.unplaced[:tasks]), occupants.only(may_go)

    def note(self, occupants: Occupants, claims: Claims) -> None:
        """Count what these claims evict as used no more, until use is read again."""
        gone = np.flatnonzero(occupants.named_in(claims.evictions))
        of = np.searchsorted(occupants.about, occupants.job[gone])
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
