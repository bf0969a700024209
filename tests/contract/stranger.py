"""A scheduler of one's own: tasks go to the machines that have room for many."""

import numpy as np

from omega.cell.view import View
from omega.framework.scheduler import Scheduler
from omega.model.arrays import Counts
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.placement.best_fit import fill
from omega.placement.feasibility import Room
from omega.placement.groups import place_groups


def roomiest_first(room: Room, wanted: int, rng: np.random.Generator) -> Counts:
    return fill(np.argsort(-room.tasks), room.tasks, wanted)


class RoomiestScheduler(Scheduler):
    kind = "roomiest"

    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        return place_groups(view, job, roomiest_first, rng)
