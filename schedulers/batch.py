"""The batch scheduler: many small jobs, placed fast.

Goal     Place jobs whose tasks run anywhere, as many per second as the store commits.
Promise  A task group is placed in one vectorised step. Replicas choose at random, so that they
         rarely conflict; machines that tasks with constraints must have are drawn last.
         `spread_over` has no effect, as long as the cell has the attribute.
Source   Omega (EuroSys 2013), section 4: randomised first fit, incremental commits.
"""

from collections.abc import Mapping
from typing import Self

import numpy as np

from omega.cell.view import View
from omega.framework.scheduler import Scheduler
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.placement.alternates import with_random_alternates
from omega.placement.groups import draw_groups, random_first_fit
from omega.placement.scarcity import draw_cheap_groups
from schedulers.settings import BatchSettings, read_settings


class BatchScheduler(Scheduler):
    """Randomised first fit."""

    kind = "batch"
    jobs_per_transaction = 32

    def __init__(self, *, preempts: bool = False, alternates: int = 0) -> None:
        self.preempts = preempts
        self.alternates = alternates

    @classmethod
    def configured(cls, settings: Mapping[str, str]) -> Self:
        """Return a scheduler with these settings, by name and as text; raises BadInput."""
        read = read_settings(BatchSettings, settings)
        return cls(preempts=read.preempts, alternates=read.alternates)

    def places_at_random(self, job: LeasedJob) -> bool:
        """Return whether `place` is `draw_groups`, which names no alternates."""
        return not self.alternates and super().places_at_random(job)

    @random_first_fit
    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        """Return claims on random machines that have room.

        If the view's signals tell of tasks with constraints, only machines that these need least
        are drawn. Simulations that place by compiled loops give no signals.
        """
        if view.signals.demand.tells_apart:
            claims = draw_cheap_groups(view, job, rng)
        else:
            claims = draw_groups(view, job, rng)
        return with_random_alternates(view, job, claims, self.alternates, rng)
