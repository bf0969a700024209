"""The base class of schedulers: two functions of a view, `order` and `place`.

Goal     Let users write a scheduler of their own in twenty lines.
Promise  A scheduler reads a view and returns claims. It has no access to a store, so all its
         placements go through the commit rule.
Source   the four seams: ordering x placement x synchronisation x commit (ARCHITECTURE.md).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from omega.cell.view import View
from omega.errors import BadInput
from omega.framework.elastic import Elastic
from omega.framework.rounds import Rounds
from omega.model.claims import Claims, ConflictRule, Granularity
from omega.model.jobs import LeasedJob
from omega.model.lanes import QueueOrder
from omega.ordering.precedence import precedence
from omega.placement.groups import is_random_first_fit


@dataclass(frozen=True, kw_only=True)
class DecisionTime:
    """What the effect `Think` adds to a decision: t_job + t_task x tasks (Omega, section 4).

    Benchmarks, the simulator, the demo and options set it; without them it is zero.
    """

    job_s: float = 0.0
    task_s: float = 0.0

    def of(self, tasks: int) -> float:
        """Return the decision time, in seconds, of one decision about so many tasks."""
        return self.job_s + self.task_s * tasks

    def of_job(self, job: LeasedJob) -> float:
        """Return the decision time, in seconds, of a job's unplaced tasks."""
        return self.of(len(job.unplaced))


RECLAIM: Final = "reclaim"
"""The setting `Scheduler.reclaim_after_s`, of kinds without rounds that do not preempt."""
RECLAIM_S_MAX: Final = 86_400

NO_DECISION_TIME = DecisionTime()
"""The default: nothing is added to the time that placement itself takes."""


class Scheduler(ABC):
    """The base class. Its defaults: highest precedence first, fit rule, incremental commits.

    Subclasses override `place`, and other members if the defaults do not suit. A scheduler should
    keep no state that affects placements: with the same view, job and random generator it should
    give the same claims, or its runs cannot be repeated.
    """

    kind: str = ""
    """The name under which it is registered; it leases the jobs submitted under this name."""
    rule: ConflictRule = ConflictRule.FIT
    granularity: Granularity = Granularity.INCREMENTAL
    jobs_per_transaction: int = 1
    """How many jobs are planned on one view and committed together."""
    claims_per_transaction: int = 1_000
    """How many unplaced tasks these jobs may have together; a job with more is planned by itself.

    Large commits cost less for each task, but make other commits wait and conflict:
    docs/decisions/0014-the-size-of-a-transaction.md.
    """

    learns_from_refusals: bool = True
    """Whether an outcome's fresh rows of machines that granted no claim are applied to the view.
    False: only rows of machines that granted a claim are; the next refresh updates the others."""

    preempts: bool = False
    """Whether tasks of lower precedence are evicted, whoever placed them, for a job that finds no
    room otherwise. A scheduler with `rounds` names these jobs: `RoundPlan.wanting`."""

    reclaim_after_s: float | None = None
    """With a fair order of the queue: after how many seconds a job that finds no room may evict
    tasks of lower precedence of tenants whose shares are larger than its own tenant's; None: never.
    A scheduler that preempts evicts tasks of all tenants, and has no use for it."""

    queue_order: QueueOrder | None = None
    """Which jobs of the whole queue it leases next; None: as the setting `queue_order` says. All
    replicas of a kind have the same. It has no effect on a scheduler with `rounds`, which leases
    all jobs."""

    elastic: Elastic | None = None
    """How it gives helpers to its elastic jobs; None: they keep the workers that were wanted."""

    rounds: Rounds | None = None
    """How it plans all its jobs at once; None: it plans job by job, by `place`."""

    @classmethod
    def configured(cls, settings: Mapping[str, str]) -> Self:
        """Return a scheduler with an operator's settings, by name and as text.

        Raises BadInput for a setting that the scheduler does not have, or a value that it refuses.
        """
        for name in settings:
            raise BadInput(f"there is no setting {name!r}: {cls.kind} has none", field="--set")
        return cls()

    def order(self, jobs: Sequence[LeasedJob], view: View) -> Sequence[LeasedJob]:
        """Return the jobs in the order in which they are to be placed.

        The default is highest precedence first, then oldest. Under a fair order, or one by start
        deadlines, jobs keep the order in which they were leased unless this is overridden.
        """
        return precedence(jobs)

    def places_at_random(self, job: LeasedJob) -> bool:
        """Return whether `place` is `draw_groups` for a job; a simulation may then compile it."""
        del job
        return is_random_first_fit(self.place)

    @abstractmethod
    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        """Return claims for as many of the job's unplaced tasks as the view has room for.

        In the view, the claims of jobs placed earlier in the same transaction are already taken.
        For a gang (`job.lacking` > 0) return at least `job.lacking` claims, or none.
        """


def has_its_own_order(scheduler: Scheduler) -> bool:
    """Return whether a scheduler overrides `order`."""
    return type(scheduler).order is not Scheduler.order
