"""The leases of jobs: how a scheduler takes jobs from the queue, and gives them back.

Goal     Many schedulers share one queue.
Promise  A job has one lease at a time, under a token that only its holder knows; its expiry is on
         the store's clock.
Source   docs/decisions/0004-the-job-queue.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from omega.lifecycle.states import ParkReason
from omega.model.arrays import Ids, Index
from omega.model.jobs import JobSpec, LeasedJob
from omega.model.lanes import Lane


@dataclass(frozen=True)
class HandBack:
    """A job given back to the queue with tasks left."""

    job: int
    token: UUID
    delay_ms: int
    """How long the job may not be leased."""
    progressed: bool
    """Whether the attempt placed a task, or its job will have waited out its patience; this resets
    the count of fruitless attempts."""


@dataclass(frozen=True)
class Parking:
    """A job set aside until something changes that could help."""

    job: int
    token: UUID
    reason: ParkReason
    detail: str
    """One sentence for the user that names what is missing."""


@dataclass(frozen=True, eq=False)
class ParkedJob:
    """A parked job, with what is needed to decide whether it would fit now."""

    id: int
    spec: JobSpec
    reason: ParkReason
    unplaced: Index
    placed_task: Index
    """Running tasks, where placement needs to know them, as in a lease ..."""
    placed_machine: Ids
    """... and the id of the machine of each."""
    placed: int
    running: int
    """How many of the placed tasks have not ended."""
    generation: int
    """The cell's generation when the job was parked: a permanent reason holds until it changes."""


class JobLeases(Protocol):
    """The queue's calls for schedulers: lease jobs, renew leases and give jobs back."""

    def lease(
        self,
        scheduler: str,
        *,
        holder: str,
        jobs_max: int,
        lease_ms: int,
        lanes: Mapping[Lane, int] | None = None,
        by_key: bool = False,
    ) -> list[LeasedJob]:
        """Lease up to `jobs_max` pending jobs of a kind, highest precedence first, then oldest.

        With `by_key`, jobs of one precedence are leased by their keys, the smallest first. With
        `lanes`, at most so many of each of these are leased, and no others. A job has one
        lease at a time. It expires after `lease_ms` on the store's clock.
        """
        ...

    def renew(self, leases: Mapping[int, UUID], *, lease_ms: int) -> set[int]:
        """Prolong the leases (token by job); return the jobs whose leases are still held."""
        ...

    def hand_back(self, jobs: Sequence[HandBack]) -> int:
        """Give jobs back; return how many. Jobs whose leases are no longer held are skipped."""
        ...

    def park(self, jobs: Sequence[Parking]) -> int:
        """Park jobs; return how many. Jobs whose leases are no longer held are skipped."""
        ...

    def parked(self, scheduler: str, *, jobs_max: int, by_lane: bool = False) -> list[ParkedJob]:
        """Return parked jobs of a kind, highest precedence first, then oldest.

        With `by_lane`, at most `jobs_max` divided by the number of lanes that have such jobs, but
        at least one, are of one lane.
        """
        ...

    def wake(self, jobs: Sequence[int]) -> list[int]:
        """Move parked jobs back to pending; return these, ascending.

        Jobs that are not parked, or held, are left, and so are those that another transaction has
        locked: nobody is waited for.
        """
        ...

    def rescue(self) -> list[int]:
        """Move jobs whose leases have expired back to pending; return these jobs."""
        ...
