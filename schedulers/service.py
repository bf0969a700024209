"""The service scheduler: few jobs that run for long, placed by the best score.

Goal     Keep services up when a failure domain fails, and leave machines with much room to others.
         Lower precedences make way for a service that finds no room.
Promise  Tasks are spread evenly over the values of the attribute that the group names. Within a
         value, and for groups that name none, each task goes to the machine with least left free,
         of those that others with constraints need least.
Source   Omega (EuroSys 2013), section 2.1: service jobs, where the quality of a placement pays.
"""

from collections.abc import Mapping
from typing import Final, Self

import numpy as np

from omega.cell.view import View
from omega.framework.scheduler import Scheduler
from omega.model.arrays import Counts
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.placement.alternates import with_alternates
from omega.placement.best_fit import best_fit, spread
from omega.placement.feasibility import Room
from omega.placement.groups import place_groups
from omega.placement.scarcity import dear_last
from omega.placement.scores import most_allocated
from schedulers.settings import ServiceSettings, read_settings

_PREFER: Final = dear_last(most_allocated)


class ServiceScheduler(Scheduler):
    """Spread over failure domains, best fit within them."""

    kind = "service"
    preempts = True

    def __init__(self, *, alternates: int = 0) -> None:
        self.alternates = alternates

    @classmethod
    def configured(cls, settings: Mapping[str, str]) -> Self:
        """Return a scheduler with these settings, by name and as text; raises BadInput."""
        return cls(alternates=read_settings(ServiceSettings, settings).alternates)

    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        """Return claims on the machines with the best scores for each group."""
        claims = place_groups(view, job, _choose, rng)
        return with_alternates(view, job, claims, _choose, self.alternates, rng)


def _choose(room: Room, wanted: int, rng: np.random.Generator) -> Counts:
    if room.task_group.spread_over is None:
        return best_fit(room, wanted, rng, prefer=_PREFER)
    return spread(room, wanted, rng, prefer=_PREFER)
