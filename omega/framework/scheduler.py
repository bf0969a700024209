"""What a scheduler is: two functions of a view.

Goal     Let a stranger write a scheduler in twenty lines.
Promise  A scheduler sees a view and returns claims; it cannot reach a store, so it cannot cheat.
Source   the four seams: ordering x placement x synchronisation x commit (ARCHITECTURE.md).
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from omega.cell.view import View
from omega.errors import BadInput
from omega.framework.rounds import Rounds
from omega.model.claims import Claims, ConflictRule, Granularity
from omega.model.jobs import LeasedJob
from omega.ordering.precedence import precedence
from omega.placement.groups import is_random_first_fit


@dataclass(frozen=True, kw_only=True)
class DecisionTime:
    """How long a decision takes: t_job + t_task x tasks (Omega, section 4).

    Benchmarks and the simulator set them.
    """

    job_s: float = 0.0
    task_s: float = 0.0

    def of(self, tasks: int) -> float:
        """Return the seconds that deciding on so many tasks takes."""
        return self.job_s + self.task_s * tasks

    def of_job(self, job: LeasedJob) -> float:
        """Return the seconds that deciding on a job's unplaced tasks takes."""
        return self.of(len(job.unplaced))


NO_DECISION_TIME = DecisionTime()
"""As in production: thinking takes as long as it takes."""


class Scheduler(ABC):
    """Base: highest precedence first, fit rule, incremental. Override `place`, and what differs.

    A scheduler keeps no state that decides placements: planning twice from the same view, job and
    chance gives the same claims.
    """

    kind: str = ""
    """Which jobs it takes from the queue; the name it is registered under."""
    rule: ConflictRule = ConflictRule.FIT
    granularity: Granularity = Granularity.INCREMENTAL
    jobs_per_transaction: int = 1
    """How many jobs are planned on one view and committed together."""
    claims_per_transaction: int = 1_000
    """How many tasks they may have between them; a job with more is planned by itself.

    Large commits are cheaper a task, and make others wait and conflict:
    docs/decisions/0014-the-size-of-a-transaction.md.
    """

    learns_from_refusals: bool = True
    """Whether the rows of machines that refused a claim enter the view with the answer; False: only
    those of machines that granted one do, and the others stay as the last refresh left them."""

    rounds: Rounds | None = None
    """How it plans all its jobs at once, if it does so; None: job by job, by `place`."""

    @classmethod
    def configured(cls, settings: Mapping[str, str]) -> Self:
        """Return the scheduler as an operator wants it, by settings of its own.

        Raises BadInput for a setting that it does not have, or cannot use.
        """
        for name in settings:
            raise BadInput(f"there is no setting {name!r}: {cls.kind} has none", field="--set")
        return cls()

    def order(self, jobs: Sequence[LeasedJob], view: View) -> Sequence[LeasedJob]:
        """Return the jobs in the order in which they are to be placed.

        The queue hands them out highest precedence first, then oldest, and so they stay.
        """
        return precedence(jobs)

    def places_at_random(self, job: LeasedJob) -> bool:
        """Return whether `place` is `draw_groups` for a job, which a simulation may compile."""
        del job
        return is_random_first_fit(self.place)

    @abstractmethod
    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        """Return claims for as many of the job's unplaced tasks as there is room for in the view.

        The view already counts the claims of jobs placed before it in the same transaction. For a
        gang (`job.lacking` > 0) return at least that many claims or none.
        """
