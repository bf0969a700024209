"""One scheduler for the jobs of several kinds.

Goal     One process takes all jobs, and decides on each as the scheduler of its kind does.
Promise  Placement and decision time are those of the job's kind; rule and granularity are common.
Source   Omega (EuroSys 2013), sections 3.1 and 4.1: monolithic schedulers, single-path and
         multi-path.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from omega.cell.view import View
from omega.errors import InvariantBroken
from omega.framework.scheduler import DecisionTime, Scheduler
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob


@dataclass(frozen=True, kw_only=True)
class DecisionTimeByKind(DecisionTime):
    """Decision times by the kind of scheduler that a job asks for."""

    by_kind: Mapping[str, DecisionTime] = field(default_factory=dict)

    def of_job(self, job: LeasedJob) -> float:
        """Return the seconds that a decision on a job's unplaced tasks takes."""
        return self.by_kind[job.spec.scheduler].of(len(job.unplaced))


class Monolithic(Scheduler):
    """Places each job as the scheduler of its kind does."""

    def __init__(self, by_kind: Mapping[str, Scheduler]) -> None:
        first, *others = by_kind.values()
        self.kind = "+".join(by_kind)
        self.rule, self.granularity = first.rule, first.granularity
        if any((one.rule, one.granularity) != (self.rule, self.granularity) for one in others):
            raise InvariantBroken("one process commits all its jobs alike")
        self._by_kind = by_kind

    def places_at_random(self, job: LeasedJob) -> bool:
        """Return what the scheduler of the job's kind returns."""
        return self._by_kind[job.spec.scheduler].places_at_random(job)

    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        """Return the claims of the scheduler of the job's kind."""
        return self._by_kind[job.spec.scheduler].place(view, job, rng)


def combined_scheduler(by_kind: Mapping[str, Scheduler]) -> Scheduler:
    """Return one scheduler for the jobs of all these kinds; if there is one kind, its own."""
    first, *others = by_kind.values()
    return Monolithic(by_kind) if others else first
