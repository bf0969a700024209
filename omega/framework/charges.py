"""Charges: what a process has leased, placed and evicted since use was summed up last.

Goal     Know what tenants use between two sums, without reading every allocation.
Promise  A lease is charged when it is taken. When its attempt ends, only what was placed stays
         charged. The store keeps one sum of tenants' use, which any replica may have had made. One
         that was made before the commit lacks what was placed. So the charge is dropped when a sum
         is read that was made after the end. The same holds of evictions, with negative amounts. No
         I/O, no clock.
Source   docs/decisions/0058-the-order-of-the-queue.md, 0063-reclaim.md.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from omega.model.arrays import Amounts
from omega.model.jobs import LeasedJob
from omega.model.lanes import demand_left


@dataclass(frozen=True)
class _Charge:
    """A correction to the last sum of a tenant's use: for a lease, or negative for evictions."""

    at_s: float
    """When the job was leased; once the attempt has ended, when it ended. Of evictions: when the
    attempt ended, infinite before that."""
    tenant: str
    demand: Amounts
    """(resources,) of the job's unplaced tasks; after its attempt, of those that were placed; of
    evicted tasks, negative."""
    claimed: Amounts | None = None
    """(resources,) of the tasks that the attempt has placed or claimed so far. None until the
    attempt ends, unless the scheduler reclaims."""
    is_over: bool = False
    """Whether the attempt has ended."""


class Charges:
    """The charges of one process.

    Times are seconds of its clock. (resources,) are amounts of each of
    `omega.store.holdings.RESOURCES`.
    """

    def __init__(self) -> None:
        self._charges: dict[UUID, _Charge] = {}
        """By token."""
        self._evicted: list[_Charge] = []
        """Negative amounts."""

    def lease(self, jobs: Sequence[LeasedJob], now_s: float) -> None:
        """Charge for all unplaced tasks of jobs that were leased."""
        for job in jobs:
            self._charges[job.token] = _Charge(now_s, job.spec.tenant, demand_left(job))

    def claim(self, job: LeasedJob, left: Amounts) -> None:
        """Note that an attempt has placed or claimed all of a job but `left` (resources,)."""
        charge = self._charges.get(job.token)
        if charge is not None:
            self._charges[job.token] = replace(charge, claimed=charge.demand - left)

    def evict(self, tenant: str, demand: Amounts) -> None:
        """Subtract the tasks that claims of an attempt evict; `demand` (resources,) is their sum.

        If the commit refuses these claims, the tasks stay subtracted until a sum is read that was
        made after the attempt.
        """
        self._evicted.append(_Charge(math.inf, tenant, -demand))

    def end(self, jobs: Sequence[LeasedJob], now_s: float) -> None:
        """Take back the charges for what attempts at these jobs, as they are now, did not place.

        Evictions without an end belong to these attempts: a process makes one at a time.
        """
        self._evicted = [replace(it, at_s=min(it.at_s, now_s)) for it in self._evicted]
        for job in jobs:
            charge = self._charges.get(job.token)
            if charge is not None:
                placed = charge.demand - demand_left(job)
                self._charges[job.token] = replace(
                    charge, at_s=now_s, demand=placed, claimed=placed, is_over=True
                )

    def drop(self, summed_s: float, *, unfinished_too: bool) -> None:
        """Drop the charges of ended attempts that a sum of use made at `summed_s` includes.

        With `unfinished_too`, older leases for which `end` was never called are dropped too. Pass
        it only before the next jobs are leased: by then all earlier ones were attempted or given
        up.
        """
        self._charges = {
            by: it
            for by, it in self._charges.items()
            if it.at_s >= summed_s or not (it.is_over or unfinished_too)
        }
        self._evicted = [it for it in self._evicted if it.at_s >= summed_s]

    def all(self) -> Iterator[tuple[str, Amounts]]:
        """Yield tenants, and each charge: of leased jobs, and of what was placed or evicted.

        Each is (resources,).
        """
        for charge in (*self._charges.values(), *self._evicted):
            yield charge.tenant, charge.demand

    def claimed(self) -> Iterator[tuple[str, Amounts]]:
        """Yield tenants, and what attempts have placed or claimed for them or evicted."""
        for charge in self._charges.values():
            if charge.claimed is not None:
                yield charge.tenant, charge.claimed
        for charge in self._evicted:
            yield charge.tenant, charge.demand
