"""Charges: what a process has leased, placed and evicted since use was summed up last.

Goal     Know what tenants use between two sums, without reading every allocation.
Promise  What is leased counts from the lease on, what was placed and evicted until a sum is known
         that was made after the attempt was over. A sum from before may lack it: another replica
         may have made it between the lease and the commit. No I/O, no clock.
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
    """What a lease adds to what a tenant uses."""

    at_s: float
    """When the job was leased, or its attempt was over."""
    tenant: str
    demand: Amounts
    """(resources,) of the job's unplaced tasks; after its attempt, of those that were placed."""
    claimed: Amounts | None = None
    """(resources,) of the tasks that the attempt has placed or claimed so far, once it has begun
    and if a tenant's share depends on it."""
    is_over: bool = False
    """Whether the attempt is over."""


class Charges:
    """The charges of one process. Times are seconds of its clock."""

    def __init__(self) -> None:
        self._charges: dict[UUID, _Charge] = {}
        """By token."""
        self._evicted: list[_Charge] = []
        """Negative; of an attempt that is not over, from the end of time."""

    def lease(self, jobs: Sequence[LeasedJob], now_s: float) -> None:
        """Charge for all unplaced tasks of jobs that were leased."""
        for job in jobs:
            self._charges[job.token] = _Charge(now_s, job.spec.tenant, demand_left(job))

    def claim(self, job: LeasedJob, left: Amounts) -> None:
        """Note that an attempt has placed or claimed all of a job but (resources,) left."""
        charge = self._charges.get(job.token)
        if charge is not None:
            self._charges[job.token] = replace(charge, claimed=charge.demand - left)

    def evict(self, tenant: str, demand: Amounts) -> None:
        """Take off tasks that an attempt evicts: (resources,) together."""
        self._evicted.append(_Charge(math.inf, tenant, -demand))

    def end(self, jobs: Sequence[LeasedJob], now_s: float) -> None:
        """Take back the charges for what attempts at these jobs, as they are now, did not place."""
        self._evicted = [replace(it, at_s=min(it.at_s, now_s)) for it in self._evicted]
        for job in jobs:
            charge = self._charges.get(job.token)
            if charge is not None:
                placed = charge.demand - demand_left(job)
                self._charges[job.token] = replace(
                    charge, at_s=now_s, demand=placed, claimed=placed, is_over=True
                )

    def drop(self, summed_s: float, *, open_too: bool) -> None:
        """Drop what a sum of use that was made then includes.

        Charges for attempts that are not over are dropped only if `open_too`.
        """
        self._charges = {
            by: it
            for by, it in self._charges.items()
            if it.at_s >= summed_s or not (it.is_over or open_too)
        }
        self._evicted = [it for it in self._evicted if it.at_s >= summed_s]

    def leased(self) -> Iterator[tuple[str, Amounts]]:
        """Yield tenants, and what was leased for them or evicted: (resources,)."""
        for charge in (*self._charges.values(), *self._evicted):
            yield charge.tenant, charge.demand

    def claimed(self) -> Iterator[tuple[str, Amounts]]:
        """Yield tenants, and what attempts have placed or claimed for them or evicted."""
        for charge in self._charges.values():
            if charge.claimed is not None:
                yield charge.tenant, charge.claimed
        for charge in self._evicted:
            yield charge.tenant, charge.demand
