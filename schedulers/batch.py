"""The batch scheduler: many small jobs, placed fast.

Goal     Place jobs whose tasks run anywhere, as many per second as the store commits.
Promise  A task group is placed in one vectorised step. Replicas choose at random, so that they
         rarely conflict. `spread_over` has no effect, as long as the cell has the attribute.
Source   Omega (EuroSys 2013), section 4: randomised first fit, incremental commits.
"""

from collections.abc import Mapping
from typing import Self

import numpy as np

from omega.cell.view import View
from omega.errors import BadInput
from omega.framework.scheduler import Scheduler
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.placement.groups import draw_groups, random_first_fit


class BatchScheduler(Scheduler):
    """Randomised first fit."""

    kind = "batch"
    jobs_per_transaction = 32

    def __init__(self, *, preempts: bool = False) -> None:
        self.preempts = preempts

    @classmethod
    def configured(cls, settings: Mapping[str, str]) -> Self:
        """Return the scheduler; `preempts=true` has it evict lower precedences. Raises BadInput."""
        for name in settings:
            if name != "preempts":
                raise BadInput(f"there is no setting {name!r}; there is: preempts", field="--set")
        value = settings.get("preempts", "false")
        if value not in ("true", "false"):
            raise BadInput(f"preempts is true or false, not {value!r}", field="--set")
        return cls(preempts=value == "true")

    @random_first_fit
    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        """Return claims on random machines that have room."""
        return draw_groups(view, job, rng)
