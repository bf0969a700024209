"""Feasibility: which machines take a task of a group, and how many each.

Goal     Turn a task group into the few rows of the view that matter, touching only the kinds that
         it asks for.
Promise  A machine is in a group's room if and only if it is open, meets every constraint and takes
         one more task in every kind, GPUs included.
Source   Constraints after Sharma et al. (SoCC 2011); filters before scores, as in Kubernetes.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from omega.cell.view import View
from omega.limits import LIMITS
from omega.model.arrays import Counts, Index, Mask
from omega.model.jobs import Constraint, LeasedJob, Operator, TaskGroup
from omega.placement.devices import free_devices, gpus_left


@dataclass(frozen=True, eq=False)
class Room:
    """The machines that take at least one more task of a group: what placement chooses from."""

    view: View
    job: LeasedJob
    group: int
    """Number of the group in the job."""
    at: Index
    """The machines' rows in the view, ascending."""
    tasks: Counts
    """How many more tasks of the group each of them takes: at least 1."""

    @property
    def asked(self) -> TaskGroup:
        """The group that the room is for."""
        return self.job.spec.groups[self.group]

    @cached_property
    def total(self) -> int:
        """How many tasks all the machines take together."""
        return int(self.tasks.sum())


def room(view: View, job: LeasedJob, group: int) -> Room:
    """Find the machines with room for a group, on the view as it is."""
    asked = job.spec.groups[group]
    demand = asked.demand
    kinds = np.flatnonzero(demand)
    free = view.free

    takes = view.open.copy()
    for kind in kinds:
        takes &= free[:, kind] >= demand[kind]
    if asked.constraints or asked.spread_over:
        takes &= matching(view, asked)
    if asked.different_machines:
        taken = view.where(job.machines_of(group)[0])
        takes[taken[taken >= 0]] = False

    at = np.flatnonzero(takes)
    tasks = np.full(len(at), LIMITS.tasks_per_job_max)
    for kind in kinds:
        # Mostly all machines have room: to pick them out would cost as much as the division.
        left = free[:, kind] if len(at) == len(view) else free[:, kind][at]
        np.minimum(tasks, left // demand[kind], out=tasks)
    if asked.gpus:
        units = gpus_left(free_devices(free, at), asked.gpu_slices).sum(axis=1)
        np.minimum(tasks, units // asked.gpus, out=tasks)
        at, tasks = at[tasks > 0], tasks[tasks > 0]
    if asked.different_machines:
        np.minimum(tasks, 1, out=tasks)
    return Room(view, job, group, at, tasks)


def matching(view: View, group: TaskGroup) -> Mask:
    """Say which machines, open or not, meet a group's constraints.

    To spread over an attribute that the cell has never heard of is a mistake in the job, not a
    wish that can be passed over in silence: no machine matches.
    """
    mask = np.ones(len(view), dtype=np.bool_)
    if group.spread_over is not None and view.catalogue.column(group.spread_over) is None:
        mask[:] = False
    for constraint in group.constraints:
        mask &= meets(view, constraint)
    return mask


def meets(view: View, constraint: Constraint) -> Mask:
    """Say which machines meet one constraint.

    A machine that lacks the attribute meets `not_in` and `missing`.
    """
    column = view.catalogue.column(constraint.attribute)
    if column is None:
        lacking = constraint.operator in (Operator.NOT_IN, Operator.MISSING)
        return np.full(len(view), lacking, dtype=np.bool_)
    wanted = np.zeros(len(view.catalogue.values[column]) + 1, dtype=np.bool_)
    match constraint.operator:
        case Operator.IN | Operator.NOT_IN:
            wanted[view.catalogue.codes(column, constraint.values)] = True
        case Operator.EXISTS | Operator.MISSING:
            wanted[1:] = True
    if constraint.operator in (Operator.NOT_IN, Operator.MISSING):
        wanted = ~wanted
    return np.asarray(wanted[view.codes[:, column]])
