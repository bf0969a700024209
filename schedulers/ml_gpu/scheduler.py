"""The ML-GPU scheduler: gangs, whole GPUs and fractions of them.

Goal     Keep gangs together and whole GPUs whole.
Promise  Tasks with whole GPUs, and gangs, come on the fewest machines; a fraction goes to the
         fullest slot that takes it; tasks without GPUs stay off machines whose GPUs are free.
Source   Gandiva's packing of shared GPUs; Omega (EuroSys 2013), section 5, specialised schedulers.
"""

import numpy as np

from omega.cell.view import View
from omega.framework.scheduler import Scheduler
from omega.model.arrays import Counts
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.model.resources import GPU_SLICES
from omega.placement.best_fit import best_fit, best_fit_slots
from omega.placement.feasibility import Room
from omega.placement.gangs import on_fewest_machines
from omega.placement.groups import place_groups


class MlGpuScheduler(Scheduler):
    """Fewest machines for gangs, fullest slots for fractions."""

    kind = "ml-gpu"
    jobs_per_transaction = 8

    def place(self, view: View, job: LeasedJob, chance: np.random.Generator) -> Claims:
        """Claim machines and device slots."""
        return place_groups(view, job, _choose, chance)


def _choose(room: Room, wanted: int, chance: np.random.Generator) -> Counts:
    if room.job.lacking > 1:
        return on_fewest_machines(room, wanted, chance)
    if not room.asked.gpus:
        return best_fit(room, wanted, chance)
    if room.asked.gpu_slices < GPU_SLICES:
        return best_fit_slots(room, wanted, chance)
    return on_fewest_machines(room, wanted, chance)
