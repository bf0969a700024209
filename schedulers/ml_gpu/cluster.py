"""GPUs by type, as a view shows them, and what training jobs need of them.

Goal     Turn machines with attributes and device slots into the few numbers that policies count.
Promise  Counted is a whole GPU on an open machine that is free or held by a training job; a job
         can run on a type if the type has as many GPUs as it needs, on machines that it may use and
         that are large enough for it.
Source   Gavel (OSDI 2020), section 3.1; docs/papers/gavel.md, live.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from omega.cell.view import View
from omega.model.allocations import Allocations
from omega.model.arrays import Counts, Ids, Index, Mask
from omega.model.jobs import Constraint, JobSpec, LeasedJob, Operator, TaskGroup
from omega.model.resources import DEVICES, GPU_SLICES
from omega.placement.feasibility import matching
from omega.placement.gangs import in_one_rack

CONSOLIDATED: Final = in_one_rack("rack")
"""Where the tasks of a gang go: they talk to each other."""
NO_TYPE: Final = ""
"""Of machines that do not say what GPUs they have."""


@dataclass(frozen=True, eq=False)
class Cluster:
    """The GPUs that training jobs share."""

    attribute: str
    """Of machines: what tells the type."""
    types: tuple[str, ...]
    gpus: Counts
    """GPUs of each type."""
    type_of: Index
    """Of each machine of the view, the place of its type; -1 without GPUs."""

    @classmethod
    def of(cls, view: View, attribute: str, training: Allocations) -> "Cluster":
        """Count the GPUs of a view; `training` is what training jobs have running."""
        names = _names(view, attribute)
        has: Mask = np.asarray((view.capacity[:, DEVICES] >= GPU_SLICES).any(axis=1))
        types = tuple(sorted({name for name, some in zip(names, has, strict=True) if some}))
        place = {name: at for at, name in enumerate(types)}
        type_of = np.array(
            [place[name] if some else -1 for name, some in zip(names, has, strict=True)], np.intp
        )
        free = view.free[:, DEVICES].copy()
        at = view.where(training.machine)
        np.add.at(free, at[at >= 0], training.amounts[at >= 0][:, DEVICES])
        usable = (free >= GPU_SLICES).sum(axis=1) * view.open
        gpus = np.zeros(len(types), np.int64)
        np.add.at(gpus, type_of[has], usable[has])
        return cls(attribute, types, gpus, type_of)

    def types_of(self, view: View, machine: Ids) -> Index:
        """Return the place of the type of each of these machines; -1 for one that is not known."""
        at = view.where(machine)
        return np.where(at >= 0, self.type_of[np.maximum(at, 0)], -1)

    def fits(self, view: View, spec: JobSpec) -> Mask:
        """Say on which types a job can run at all."""
        fits = size_of(spec) <= self.gpus
        has = self.type_of >= 0
        for group in spec.groups:
            tasks = np.zeros(len(self.types), np.int64)
            np.add.at(tasks, self.type_of[has], _takes_empty(view, group)[has])
            fits = fits & (tasks >= group.tasks)
        return np.asarray(fits)

    def only_on(self, type_: int, job: LeasedJob) -> LeasedJob:
        """Return the job as a gang whose tasks, but those that are over, go to one type."""
        name = self.types[type_]
        where = (
            Constraint(self.attribute, Operator.IN, (name,))
            if name != NO_TYPE
            else Constraint(self.attribute, Operator.MISSING)
        )
        groups = tuple(
            replace(group, constraints=(*group.constraints, where)) for group in job.spec.groups
        )
        spec = replace(job.spec, groups=groups, minimum=job.spec.tasks)
        tasks = np.union1d(job.unplaced, job.placed_task)
        over = job.spec.tasks - len(tasks)
        return LeasedJob(job.id, job.token, spec, tasks, placed=over)


def _takes_empty(view: View, group: TaskGroup) -> Counts:
    """Return how many tasks of a group each open machine takes if nothing else runs there."""
    most = 1 if group.different_machines else group.tasks
    tasks = (matching(view, group) & view.open) * np.int64(most)
    for kind in group.demand.nonzero()[0].tolist():
        np.minimum(tasks, view.capacity[:, kind] // int(group.demand[kind]), out=tasks)
    if group.gpus:
        devices = (view.capacity[:, DEVICES] >= group.gpu_slices).sum(axis=1)
        np.minimum(tasks, devices // group.gpus, out=tasks)
    return tasks


def size_of(spec: JobSpec) -> int:
    """Return how many GPUs a job uses at once."""
    return sum(group.tasks * group.gpus for group in spec.groups)


def goes_by_rounds(job: LeasedJob) -> bool:
    """Say whether a job can be interrupted between rounds: it trains, as one gang on whole GPUs."""
    spec = job.spec
    whole = all(group.gpu_slices == GPU_SLICES for group in spec.groups if group.gpus)
    together = spec.tasks in {1, spec.minimum}
    return spec.work is not None and together and whole and size_of(spec) > 0


def _names(view: View, attribute: str) -> Sequence[str]:
    """Return the type of each machine's GPUs."""
    column = view.catalogue.column(attribute)
    if column is None:
        return [NO_TYPE] * len(view)
    values = (NO_TYPE, *view.catalogue.values[column])
    return [values[code] for code in view.codes[:, column].tolist()]


def kinds_of(jobs: Sequence[LeasedJob]) -> tuple[list[tuple[str, int]], Index]:
    """Return the kinds of these jobs, (model, GPUs), and which is whose."""
    place: dict[tuple[str, int], int] = {}
    kind = np.zeros(len(jobs), np.intp)
    for at, job in enumerate(jobs):
        work = job.spec.work
        assert work is not None
        kind[at] = place.setdefault((work.kind, size_of(job.spec)), len(place))
    return list(place), kind
