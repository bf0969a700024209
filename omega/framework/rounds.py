"""Rounds: all jobs of a kind planned at once, those that run too, again and again.

Goal     Let a scheduler move and preempt its own work, and be two functions of a view all the same.
Promise  As for any scheduler: it sees a view and what its own jobs hold, and returns claims.
Source   Gavel (OSDI 2020), section 5; docs/decisions/0028-rounds-on-the-shared-cell.md.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from omega.cell.view import View
from omega.model.allocations import Allocations
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.model.progress import JobProgress


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundState:
    """What there is to plan."""

    number: int
    began_ms: int
    """By the store's clock."""
    memo: Mapping[str, object]
    """What this scheduler's last plan noted; empty the first time."""
    waiting: Sequence[LeasedJob]
    """Highest precedence first, then oldest."""
    running: Sequence[LeasedJob]
    """Each with all its running tasks."""
    allocations: Allocations
    """Of those that run, and of those that are away."""
    progress: JobProgress
    """How far those of them have come whose work is counted in steps."""
    away: Sequence[int] = ()
    """Unfinished jobs of the last plan that this round could not lease: parked, leased by another
    scheduler, or further back in the queue than a round looks. They may come back."""


@dataclass(frozen=True, eq=False)
class JobClaims:
    """Claims for one job, with what they evict."""

    job: LeasedJob
    claims: Claims
    minimum: int
    """Grants below which all claims of the job are refused; 0 for incremental."""


@dataclass(frozen=True, eq=False)
class RoundPlan:
    """What a scheduler decides."""

    claims: Sequence[JobClaims]
    """In order: what one evicts or takes, those after it find evicted or taken."""
    memo: Mapping[str, object]
    """For the next round, as JSON has it."""
    recall: Sequence[int]
    """Jobs that the next round is to plan anew if they run by then."""


class Rounds(ABC):
    """How a scheduler plans all its jobs at once."""

    length_ms: int
    """From the beginning of one round to the earliest beginning of the next."""

    @abstractmethod
    def plan(self, view: View, state: RoundState, rng: np.random.Generator) -> RoundPlan:
        """Say who is to run where next; evictions may name any of the jobs of the state."""

    @abstractmethod
    def again(
        self, view: View, refused: Sequence[LeasedJob], rng: np.random.Generator
    ) -> Sequence[JobClaims]:
        """Place refused jobs that wait, on a view brought up to date; evict nobody."""
