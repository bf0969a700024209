"""The cell as it would be if something were otherwise: machines opened, tasks gone, notices over.

Goal     Find out what would help a job by supposing it, with the very functions that place jobs.
Promise  A supposition is a view of its own, or ends with its block; the given view is unchanged.
Source   docs/decisions/0054-why-a-job-waits.md; forced evictions: 0015.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from omega.cell.view import View
from omega.model.arrays import Amounts, Mask, States, any_kind
from omega.model.jobs import LeasedJob, TaskGroup
from omega.model.machines import MachineRows, MachineState, Snapshot
from omega.model.occupants import Occupants
from omega.model.resources import Kind
from omega.placement.diagnosis import has_room
from omega.reports.why.requirements import GPU
from omega.store.status import Notice


def opened(view: View) -> View:
    """Return the cell as if machines that are down or draining were open."""
    state = np.where(view.state == MachineState.GONE, view.state, np.int8(MachineState.OPEN))
    return _remade(view, view.capacity - view.free, state)


def emptied_where_open(view: View) -> View:
    """Return the cell as if nothing ran; machines that are closed stay so."""
    return _remade(view, np.zeros_like(view.capacity), view.state)


def after_notices(view: View, notices: Sequence[Notice], occupants: Occupants) -> View:
    """Return the cell as it is once the notices of machines that shrank are enforced.

    Of tasks of gangs that break only those on these machines are taken off.
    """
    used = view.capacity - view.free
    of = np.searchsorted(occupants.distinct_job, occupants.job)
    order = np.lexsort(
        (-occupants.task, -occupants.job, -occupants.started_ms, occupants.precedence[of])
    )
    for notice in notices:
        (at,) = view.where(np.array([notice.machine]))
        here = order[occupants.machine[order] == notice.machine]
        held = occupants.amounts[here]
        before = np.cumsum(held, axis=0) - held
        goes = any_kind((notice.excess > before) & (held > 0)) if len(here) else here > 0
        if at >= 0:
            used[at] -= held[goes].sum(axis=0)
    return _remade(view, np.maximum(used, 0), view.state)


def has_room_without(view: View, job: LeasedJob, occupants: Occupants, gone: Mask) -> bool:
    """Return whether there is room for a job once these of the occupants have lost their places."""
    with view.tentative():
        view.assume_removed(occupants.machine[gone], occupants.amounts[gone])
        return has_room(view, job)


def asking(job: LeasedJob, group: int, kind: str, amount: int) -> LeasedJob:
    """Return a job of which the tasks of one group ask for so much of a kind."""
    groups = list(job.spec.groups)
    groups[group] = _group_asking(groups[group], kind, amount)
    return replace(job, spec=replace(job.spec, groups=tuple(groups)))


def _group_asking(group: TaskGroup, kind: str, amount: int) -> TaskGroup:
    match kind:
        case Kind.CPU_MILLI.column:
            return replace(group, cpu_milli=amount)
        case Kind.MEMORY_MIB.column:
            return replace(group, memory_mib=amount)
        case Kind.DISK_MIB.column:
            return replace(group, disk_mib=amount)
    assert kind == GPU, "tasks ask for GPUs, not for slots of their own choice"
    return replace(group, gpus=amount)


def _remade(view: View, used: Amounts, state: States) -> View:
    rows = MachineRows(
        id=view.id,
        capacity=view.capacity,
        used=used,
        sequence=view.sequence,
        revision=view.revision,
        state=state,
    )
    return View(Snapshot(rows, view.names, view.catalogue, view.codes, view.mark, view.generation))
