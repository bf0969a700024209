"""Feasibility: which machines take a task of a group, and how many each.

Goal     Find the rows of the view that matter to a task group, reading only the kinds of resource
         that it asks for.
Promise  A machine is in a group's room if and only if it takes claims (`View.open`), meets every
         constraint, takes one more task in every kind of resource, GPUs included, and runs no task
         of the group if these must run on different machines. No machine is in the room of a group
         that is spread over an attribute that the cell lacks.
Source   Constraints after Sharma et al. (SoCC 2011); filters before scores, as in Kubernetes.
"""

from collections.abc import Callable
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
    """The machines that take at least one more task of a group; placement chooses among them."""

    view: View
    job: LeasedJob
    group: int
    """Number of the group in the job."""
    at: Index
    """The machines' rows in the view, ascending."""
    tasks: Counts
    """How many more tasks of the group each machine takes, at least 1: (machines,)."""

    @property
    def task_group(self) -> TaskGroup:
        """The group for which this is the room."""
        return self.job.spec.groups[self.group]

    @cached_property
    def total(self) -> int:
        """How many tasks all machines take together."""
        return int(self.tasks.sum())


Choose = Callable[[Room, int, np.random.Generator], Counts]
"""Returns how many tasks each machine of the room gets, (machines,). The number wanted is at least
one and less than the room's total; the result must sum to it."""


def room(view: View, job: LeasedJob, group: int) -> Room:
    """Return the machines of the view with room for a group, which is given by its number."""
    tasks = room_on(view, job, group, slice(None))
    at = tasks.nonzero()[0]
    return Room(view, job, group, at, tasks if len(at) == len(tasks) else tasks[at])


def room_on(view: View, job: LeasedJob, group: int, at: Index | slice) -> Counts:
    """Return how many more tasks of a group each machine in rows `at` of the view takes: (at,).

    `at` is row numbers, or `slice(None)` for all machines.
    """
    task_group = job.spec.groups[group]
    free, demand = view.free, task_group.demand
    takes = view.open[at]
    if task_group.constraints or task_group.spread_over:
        takes = takes & matching(view, task_group)[at]
    if task_group.different_machines:
        runs = np.zeros(len(view), dtype=np.bool_)
        taken = view.where(job.machines_of(group)[0])
        runs[taken[taken >= 0]] = True
        takes = takes & ~runs[at]

    tasks = takes * np.int64(1 if task_group.different_machines else LIMITS.tasks_per_job_max)
    for kind in demand.nonzero()[0].tolist():
        np.minimum(tasks, free[:, kind][at] // int(demand[kind]), out=tasks)
    if task_group.gpus:
        likely = (tasks > 0).nonzero()[0]
        rows = np.arange(len(view))[at][likely]
        units = gpus_left(free_devices(free, rows), task_group.gpu_slices).sum(axis=1)
        tasks[likely] = np.minimum(tasks[likely], units // task_group.gpus)
    # `free` is negative where a machine shrank below its use.
    return np.maximum(tasks, 0, out=tasks)


def matching(view: View, group: TaskGroup) -> Mask:
    """Return which machines, open or not, meet a group's constraints: (machines,).

    No machine matches a group that is to be spread over an attribute that the cell does not have:
    this is a mistake in the job and must not be ignored.
    """
    mask = np.ones(len(view), dtype=np.bool_)
    if group.spread_over is not None and view.catalogue.column(group.spread_over) is None:
        mask[:] = False
    for constraint in group.constraints:
        mask &= meets(view, constraint)
    return mask


def meets(view: View, constraint: Constraint) -> Mask:
    """Return which machines meet one constraint: (machines,).

    A machine that lacks the attribute meets `not_in` and `missing`.
    """
    column = view.catalogue.column(constraint.attribute)
    if column is None:
        all_meet = constraint.operator in (Operator.NOT_IN, Operator.MISSING)
        return np.full(len(view), all_meet, dtype=np.bool_)
    # By code: 0 is a machine without the attribute, n one that has the nth value.
    wanted = np.zeros(len(view.catalogue.values[column]) + 1, dtype=np.bool_)
    match constraint.operator:
        case Operator.IN | Operator.NOT_IN:
            wanted[view.catalogue.codes(column, constraint.values)] = True
        case Operator.EXISTS | Operator.MISSING:
            wanted[1:] = True
    if constraint.operator in (Operator.NOT_IN, Operator.MISSING):
        wanted = ~wanted
    return np.asarray(wanted[view.codes[:, column]])
