"""Rounds: all jobs of a kind planned at once, running ones too, for the next minutes.

Goal     Let a scheduler that moves and preempts its own jobs consist of two functions of a view.
Promise  As for any scheduler: it reads a view and what its own jobs hold, and returns claims.
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
from omega.model.round_summary import RoundSummary
from omega.ordering.tenants import Tenant


@dataclass(frozen=True, eq=False, kw_only=True)
class RoundState:
    """The input of a round."""

    number: int
    began_ms: int
    """By the store's clock."""
    memo: Mapping[str, object]
    """The memo of this scheduler's last plan; empty in the first round."""
    waiting: Sequence[LeasedJob]
    """Highest precedence first, then oldest."""
    running: Sequence[LeasedJob]
    """Each with all its running tasks."""
    allocations: Allocations
    """Of those that run, and of those that are away."""
    progress: JobProgress
    """The progress of those of the waiting and running jobs whose work is counted in steps."""
    tenants: Sequence[Tenant] = ()
    """Those whose weights and parents were set."""
    away: Sequence[int] = ()
    """Unfinished jobs of the last plan that this round could not lease: parked, leased by another
    scheduler, or further back in the queue than a round looks. They may come back."""


@dataclass(frozen=True, eq=False)
class JobClaims:
    """Claims for one job, with their evictions."""

    job: LeasedJob
    claims: Claims
    grants_min: int
    """If fewer claims than this would be granted, all of the job's are refused; 0: incremental."""


@dataclass(frozen=True, eq=False)
class RoundPlan:
    """The output of a round."""

    claims: Sequence[JobClaims]
    """In order: each is judged after the grants and evictions of those before it."""
    memo: Mapping[str, object]
    """A JSON object for the next round."""
    recall: Sequence[int]
    """Jobs that the next round is to plan again if they run by then."""
    wanting: Sequence[LeasedJob] = ()
    """Jobs without room for all their tasks, in the order in which they are to be served: once the
    claims are committed, tasks of other kinds and of lower precedence that hold CPU, memory or disk
    are evicted for them, if the scheduler `preempts`. Each as it is to be placed: its constraints
    may be narrower than those that were submitted. A job may be there several times, with the
    better constraints first."""
    summary: RoundSummary | None = None
    """What people are told of the round."""


class Rounds(ABC):
    """How a scheduler plans all its jobs at once."""

    length_ms: int
    """Time from the beginning of one round to the earliest beginning of the next."""

    @abstractmethod
    def plan(self, view: View, state: RoundState, rng: np.random.Generator) -> RoundPlan:
        """Return the plan of a round; its evictions may name any of the state's running jobs."""

    @abstractmethod
    def again(
        self, view: View, refused: Sequence[LeasedJob], rng: np.random.Generator
    ) -> Sequence[JobClaims]:
        """Return claims, without evictions, for refused jobs on a view that was brought up to date.

        `refused` are jobs that still have unplaced tasks.
        """
