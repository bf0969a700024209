"""The leases of jobs: what a scheduler takes from the queue, and how it gives it back.

Goal     Let many schedulers share one queue.
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


@dataclass(frozen=True)
class HandBack:
    """A job given back to the queue with tasks left."""

    job: int
    token: UUID
    delay_ms: int
    """How long nobody should take it."""
    progressed: bool
    """Whether the attempt placed anything; resets the count of fruitless attempts."""


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
    """A parked job, with enough of it to tell whether it would fit now."""

    id: int
    spec: JobSpec
    reason: ParkReason
    unplaced: Index
    placed_task: Index
    """Tasks that run now, where placement must know it, as in a lease ..."""
    placed_machine: Ids
    """... and the id of the machine of each."""
    placed: int
    running: int
    """Of those, how many are not over."""
    generation: int
    """The cell's generation when it was parked: permanent reasons hold until it moves."""


class JobLeases(Protocol):
    """The queue as schedulers see it: jobs to take, to hold and to give back."""

    def lease(
        self, scheduler: str, *, holder: str, jobs_max: int, lease_ms: int
    ) -> list[LeasedJob]:
        """Take up to `jobs_max` pending jobs of a kind, highest precedence first, then oldest.

        A job has one lease at a time; its expiry is on the store's clock.
        """
        ...

    def renew(self, leases: Mapping[int, UUID], *, lease_ms: int) -> set[int]:
        """Prolong the leases (token by job); return the jobs whose lease is still held."""
        ...

    def hand_back(self, jobs: Sequence[HandBack]) -> int:
        """Give jobs back; those whose lease is no longer held are passed over. Returns a count."""
        ...

    def park(self, jobs: Sequence[Parking]) -> int:
        """Set jobs aside; those whose lease is no longer held are passed over."""
        ...

    def parked(self, scheduler: str, *, jobs_max: int) -> list[ParkedJob]:
        """Return parked jobs of a kind, highest precedence first, then oldest."""
        ...

    def wake(self, jobs: Sequence[int]) -> int:
        """Move parked jobs back to pending; return how many were parked."""
        ...

    def rescue(self) -> list[int]:
        """Move jobs whose lease has run out back to pending; return them."""
        ...
