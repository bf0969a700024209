"""The ML-GPU scheduler: gangs, whole GPUs and fractions of them.

Goal     Keep gangs together, whole GPUs whole, and free GPUs of use to those who come later.
Promise  A lone task with GPUs goes where it costs least future room; other tasks with whole GPUs,
         and gangs, come on the fewest machines, fractions to the fullest slots that take them;
         tasks without GPUs stay off machines whose GPUs are free. All take machines last that tasks
         with constraints must have, gangs only where that takes no more machines.
Source   Gandiva's packing of shared GPUs; fragmentation gradient descent (docs/papers/fgd.md);
         Omega (EuroSys 2013), section 5, specialised schedulers.
"""

from collections.abc import Mapping
from typing import Final, Self

import numpy as np

from omega.cell.view import View
from omega.errors import SettingsError
from omega.framework.scheduler import Scheduler
from omega.model.arrays import Counts
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob, TaskGroup
from omega.model.resources import GPU_SLICES
from omega.placement.best_fit import best_fit, best_fit_slots
from omega.placement.feasibility import Room
from omega.placement.fragmentation import TypicalTasks, place_alone
from omega.placement.gangs import on_fewest_machines
from omega.placement.groups import place_groups, waiting_groups
from omega.placement.scarcity import cheap_first, cheap_if_as_few, dear_last
from omega.placement.scores import most_allocated
from schedulers.ml_gpu.cluster import CONSOLIDATED

SOLVERS: Final = frozenset({"highspy", "scipy"})
"""What rounds need beyond omega itself."""
PLAIN: Final = TypicalTasks.of(
    (
        TaskGroup(tasks=1, gpus=1, gpu_slices=GPU_SLICES // 4),
        TaskGroup(tasks=2, gpus=1, gpu_slices=GPU_SLICES // 2),
        TaskGroup(tasks=4, gpus=1),
        TaskGroup(tasks=1, gpus=2),
        TaskGroup(tasks=1, gpus=4),
        TaskGroup(tasks=1, gpus=8),
    ),
    popular=1.0,
)
"""What may be asked for where nobody has counted: a guess, of GPUs alone. A count of a cell's own
jobs is worth several times as much (benchmarks/findings/fragmentation.md)."""


class MlGpuScheduler(Scheduler):
    """Least fragmentation for lone tasks, fewest machines for gangs, fullest slots for the rest."""

    kind = "ml-gpu"
    preempts = True
    jobs_per_transaction = 8

    def __init__(self, typical: TypicalTasks | None = PLAIN) -> None:
        """Keep room for tasks that are typical; for None, lone tasks go where the others go."""
        self._typical = typical

    @classmethod
    def configured(cls, settings: Mapping[str, str]) -> Self:
        """Return the scheduler with rounds as an operator wants them: see `settings.py`."""
        scheduler = super().configured({})
        if settings:
            try:
                # Rounds ask a solver, which is an optional extra.
                from schedulers.ml_gpu.settings import rounds_of  # noqa: PLC0415
            except ModuleNotFoundError as error:
                if (error.name or "").partition(".")[0] not in SOLVERS:
                    raise
                raise SettingsError(
                    ["rounds need omega-scheduler[ml-gpu] to be installed"]
                ) from error
            scheduler.rounds = rounds_of(settings, scheduler.place)
        return scheduler

    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        """Claim machines and device slots."""
        if self._typical is not None and len(job.unplaced) == 1 and job.lacking <= 1:
            (group,) = waiting_groups(job)
            if job.spec.groups[group].gpus:
                return place_alone(view, job, self._typical, rng)
        return place_groups(view, job, _choose, rng)


_PREFER: Final = dear_last(most_allocated)
_GANG: Final = cheap_if_as_few(CONSOLIDATED)
_WHOLE: Final = cheap_if_as_few(on_fewest_machines)
_FRACTIONS: Final = cheap_first(best_fit_slots)


def _choose(room: Room, wanted: int, rng: np.random.Generator) -> Counts:
    if room.job.lacking > 1:
        return _GANG(room, wanted, rng)
    if not room.task_group.gpus:
        return best_fit(room, wanted, rng, prefer=_PREFER)
    if room.task_group.gpu_slices < GPU_SLICES:
        return _FRACTIONS(room, wanted, rng)
    return _WHOLE(room, wanted, rng)
