"""Diagnosis: the main reason why nothing of a job can be placed, in a sentence.

Goal     Show a user what is missing, and let the queue know what could help.
Promise  There is a diagnosis if and only if there is no room. A permanent reason is given only if
         the job would not fit the empty cell with every machine up. If one group of a job can
         never fit and another could later, the diagnosis is that of the other.
Source   docs/decisions/0004-the-job-queue.md; "reasons" of the Kubernetes and Nomad schedulers.
"""

from dataclasses import dataclass, replace

import numpy as np

from omega.cell.view import View
from omega.errors import did_you_mean
from omega.lifecycle.states import ParkReason
from omega.model.arrays import Mask, integers
from omega.model.jobs import Constraint, LeasedJob, Operator, TaskGroup
from omega.model.machines import MachineRows, MachineState, Snapshot
from omega.model.resources import GPU_SLICES, Kind, named
from omega.placement.devices import free_devices, gpus_left
from omega.placement.feasibility import matching, meets, room
from omega.placement.groups import pack, waiting_groups

VALUES_SHOWN_MAX = 5


@dataclass(frozen=True)
class Diagnosis:
    """Why a job is parked."""

    reason: ParkReason
    detail: str
    """One sentence for the user that names what is missing."""


def has_room(view: View, job: LeasedJob) -> bool:
    """Return whether a task of the job, or what its gang lacks, could be placed now.

    True if and only if `place_groups` returns claims, for any `choose`.
    """
    groups = waiting_groups(job)
    if job.lacking <= 1:
        return any(len(room(view, job, group).at) for group in groups)
    if len(groups) == 1:
        takes = room(view, job, groups[0]).total
        return min(takes, len(job.unplaced)) >= job.lacking
    return len(pack(view, job)) >= job.lacking


def diagnose(view: View, job: LeasedJob) -> Diagnosis | None:
    """Return why no task of the job, or not what its gang lacks, can be placed; None if it can.

    Also None for a job with fewer unplaced tasks than its gang lacks: another replica has placed
    some since the lease, and the next lease will show it.
    """
    groups = waiting_groups(job)
    if len(job.unplaced) < max(1, job.lacking) or has_room(view, job):
        return None
    empty = emptied(view)
    anew = with_no_task_placed(job)
    hopeless = {group: _why_never(empty, anew, group) for group in groups}
    hopeful = [group for group in groups if hopeless[group] is None]
    if sum(len(job.unplaced_in(group)) for group in hopeful) < max(1, job.lacking):
        return next(found for found in hopeless.values() if found is not None)
    if not has_room(empty, anew):
        return Diagnosis(
            ParkReason.GANG_TOO_LARGE,
            f"the gang needs {_tasks(job.lacking)} at once; even the empty cell holds only"
            f" {len(pack(empty, anew))}",
        )
    if job.lacking > 1:
        return Diagnosis(
            ParkReason.NO_ROOM,
            f"the gang needs {_tasks(job.lacking)} at once; there is room for"
            f" {len(pack(view, job))} now",
        )
    return Diagnosis(ParkReason.NO_ROOM, _why_not_now(view, job, hopeful[0]))


def too_large_to_commit(job: LeasedJob, claims_max: int) -> Diagnosis | None:
    """Return that a gang lacks more tasks than one commit takes, however much room there is."""
    if job.lacking <= claims_max:
        return None
    return Diagnosis(
        ParkReason.GANG_TOO_LARGE,
        f"the gang needs {job.lacking:,} tasks placed at once, and a commit takes {claims_max:,}",
    )


def emptied(view: View) -> View:
    """Return a view of the cell as if nothing ran and every machine were up."""
    zeros = np.zeros_like(view.sequence)
    rows = MachineRows(
        id=view.id,
        capacity=view.capacity,
        used=np.zeros_like(view.capacity),
        sequence=zeros,
        revision=zeros,
        state=np.where(view.state == MachineState.GONE, view.state, np.int8(MachineState.OPEN)),
    )
    return View(Snapshot(rows, view.names, view.catalogue, view.codes, view.mark, view.generation))


def with_no_task_placed(job: LeasedJob) -> LeasedJob:
    """Return the job as if none of its tasks had a place, so that none excludes a machine."""
    return replace(job, placed_task=np.zeros(0, np.intp), placed_machine=integers())


def _why_never(empty: View, job: LeasedJob, group: int) -> Diagnosis | None:
    """Return why no task of a group fits even into the empty cell; None if one does."""
    asked = job.spec.groups[group]
    unknown = _unknown_attribute(empty, asked)
    if unknown is not None:
        somebodys = (name for name in empty.catalogue.names if _any_machine_has(empty, name))
        return Diagnosis(
            ParkReason.UNKNOWN_ATTRIBUTE,
            f"group {group} names the attribute {unknown!r}, which no machine has"
            f"{did_you_mean(unknown, somebodys)}",
        )
    matches = matching(empty, asked) & empty.open
    if not matches.any():
        return Diagnosis(ParkReason.NO_MACHINE_MATCHES, _mismatch(empty, asked, group))
    if not len(room(empty, job, group).at):
        detail = _shortage(empty, asked, group, matches, now=False)
        return Diagnosis(ParkReason.NEVER_FITS, detail)
    return None


def _unknown_attribute(empty: View, asked: TaskGroup) -> str | None:
    """Return an attribute that the group requires and no machine has; None if there is none."""
    for constraint in asked.constraints:
        needed = constraint.operator in (Operator.IN, Operator.EXISTS)
        if needed and not _any_machine_has(empty, constraint.attribute):
            return constraint.attribute
    spread = asked.spread_over
    return spread if spread is not None and empty.catalogue.column(spread) is None else None


def _any_machine_has(view: View, attribute: str) -> bool:
    return bool((meets(view, Constraint(attribute, Operator.EXISTS)) & view.open).any())


def _mismatch(empty: View, asked: TaskGroup, group: int) -> str:
    if not empty.open.any():
        return "the cell has no machines"
    for constraint in asked.constraints:
        if not (meets(empty, constraint) & empty.open).any():
            there_are = _values(empty, constraint.attribute)
            return f"group {group} asks for {constraint_text(constraint)}; {there_are}"
    together = " and ".join(constraint_text(constraint) for constraint in asked.constraints)
    return f"no machine meets at once all that group {group} asks for: {together}"


def constraint_text(constraint: Constraint) -> str:
    """Return a constraint as text, with only the first of its values if there are many."""
    more = len(constraint.values) - VALUES_SHOWN_MAX
    if more <= 0:
        return str(constraint)
    first = replace(constraint, values=constraint.values[:VALUES_SHOWN_MAX])
    return f"{first} and {more:,} more"


def _values(view: View, attribute: str) -> str:
    """Return a sentence with the values of an attribute that open machines have."""
    column = view.catalogue.column(attribute)
    assert column is not None, "an attribute that nobody has is met or unknown"
    codes = np.unique(view.codes[view.open, column])
    values = [str(view.catalogue.value(column, int(code))) for code in codes if code]
    shown = ", ".join(values[:VALUES_SHOWN_MAX])
    more = f" and {len(values) - VALUES_SHOWN_MAX} more" if len(values) > VALUES_SHOWN_MAX else ""
    return f"machines have {attribute} {shown}{more}"


def _why_not_now(view: View, job: LeasedJob, group: int) -> str:
    """Return why no task of a group fits now, although one fits into the empty cell."""
    asked = job.spec.groups[group]
    matches = matching(view, asked) & view.open
    if not matches.any():
        return f"every machine that group {group} may use is down or draining"
    if asked.different_machines and len(room(view, with_no_task_placed(job), group).at):
        return f"every machine with room for group {group} runs a task of it already"
    return _shortage(view, asked, group, matches, now=True)


def _shortage(view: View, asked: TaskGroup, group: int, among: Mask, *, now: bool) -> str:
    """Return a sentence with a kind of which no machine has enough, or that none has all kinds."""
    wanted = named(asked.demand)
    most = {kind: int(view.free[among, Kind[kind.upper()]].max()) for kind in wanted}
    if asked.gpus:
        gpus = gpus_left(free_devices(view.free, np.flatnonzero(among)), asked.gpu_slices).sum(
            axis=1
        )
        wanted[_gpus(asked)], most[_gpus(asked)] = asked.gpus, int(gpus.max())

    machine = f"{'open ' if now else ''}machine{' that matches' if asked.constraints else ''}"
    for what, amount in wanted.items():
        if amount > most[what]:
            has = f"{most[what]} free" if now else f"{most[what]}"
            return (
                f"group {group} asks for {amount} {what} a task;"
                f" the {'roomiest' if now else 'largest'} {machine} has {has}"
            )
    together = ", ".join(f"{amount} {what}" for what, amount in wanted.items())
    return (
        f"group {group} asks for {together} a task;"
        f" no one {machine} has all of that{' free' if now else ''}"
    )


def _gpus(asked: TaskGroup) -> str:
    """Return the name of the GPUs that a group asks for, to follow a number."""
    if asked.gpu_slices < GPU_SLICES:
        return f"GPU with {asked.gpu_slices} slices"
    return "whole GPUs" if asked.gpus > 1 else "whole GPU"


def _tasks(number: int) -> str:
    return f"{number} task{'s' if number > 1 else ''}"
