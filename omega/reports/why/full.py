"""Why there is no room now for a job that could fit: one finding of those in the cell's hands.

Goal     Of a cell that is full for a job, say what is nearest to being room for it.
Promise  Each next step, done in the cell as it is, makes room for the job, unless it says to wait.
Source   docs/decisions/0054-why-a-job-waits.md.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from omega.cell.view import View
from omega.model.jobs import LeasedJob
from omega.model.machines import MachineState
from omega.model.resources import Kind
from omega.model.resources import named as named_amounts
from omega.placement.diagnosis import has_room, with_no_task_placed
from omega.placement.feasibility import room
from omega.placement.groups import pack, waiting_groups
from omega.reports.machines import state_name
from omega.reports.printable import short
from omega.reports.why.evictions import Evictions
from omega.reports.why.findings import Finding
from omega.reports.why.reasons import Reason
from omega.reports.why.requirements import GPU, measured
from omega.reports.why.suppositions import asking, emptied_where_open, opened
from omega.reports.wording import amounts, duration, things
from omega.store.status import Notice

NAMES_TOLD_MAX: Final = 5
NAMES_TYPED_MAX: Final = 20


def why_full(
    view: View,
    job: LeasedJob,
    evictions: Evictions,
    notices: Sequence[Notice],
    after_notices: View | None,
    group: int,
    *,
    patience_ms: int = 0,
) -> Finding:
    """Return why there is no room now for a job that would fit the empty cell.

    `patience_ms`: for how much longer it waits for machines that it prefers, and evicts nobody.
    """
    if evictions.preempts and evictions.makes_room:
        gangs = f"; of gangs all tasks go: {_jobs(evictions.gangs)}" if evictions.gangs else ""
        return Finding(
            Reason.TO_EVICT,
            f"What yields to precedence {job.spec.precedence} would make room{gangs}.",
            "Wait: its scheduler evicts for it"
            + (
                f" once its patience is over, in {duration(patience_ms / 1_000)}."
                if patience_ms
                else " at its next attempt."
            ),
        )
    found = (
        _closed(view, job),
        _over_notice(job, notices, after_notices),
        _one_per_machine(view, job, group),
        _protected(job, evictions),
        _gang_short(view, job),
        _one_kind_short(view, job, group),
    )
    first = next((finding for finding in found if finding is not None), None)
    return first or Finding(Reason.NO_ROOM, _nowhere(view, job, group), _when_full(evictions, job))


def _closed(view: View, job: LeasedJob) -> Finding | None:
    """Return that only machines which are down or draining could ever take the job."""
    if has_room(emptied_where_open(view), with_no_task_placed(job)):
        return None
    as_open = opened(view)
    fits_now = has_room(as_open, job)
    all_open = as_open if fits_now else emptied_where_open(as_open)
    at = np.unique(
        np.concatenate(
            [room(all_open, with_no_task_placed(job), g).at for g in waiting_groups(job)]
        )
    )
    closed = [
        row for row in at.tolist() if view.state[row] not in (MachineState.OPEN, MachineState.GONE)
    ]
    names = [short(view.names[row]) for row in closed[:NAMES_TYPED_MAX]]
    states = " or ".join(sorted({state_name(int(view.state[row])) for row in closed}))
    then = "" if fits_now else "; then it waits for room there"
    return Finding(
        Reason.MACHINES_CLOSED,
        f"It fits only with machines that are {states}: {things(len(closed), 'machine')},"
        f" {_some(names[:NAMES_TOLD_MAX], len(closed))}.",
        f"omega cell open {' '.join(names)}{then}",
    )


def _over_notice(
    job: LeasedJob, notices: Sequence[Notice], after_notices: View | None
) -> Finding | None:
    if after_notices is None or not has_room(after_notices, job):
        return None
    last_ms = max(notice.ends_in_ms for notice in notices)
    when = f"in {duration(last_ms / 1_000)}" if last_ms > 0 else "as soon as a scheduler looks"
    return Finding(
        Reason.OVER_NOTICE,
        f"It fits once notices have ended: {things(len(notices), 'machine')} shrank below what"
        f" runs there, and what is too much ends {when}.",
        f"Wait: tasks of the lowest precedence end {when}, if a scheduler is at work.",
    )


def _one_per_machine(view: View, job: LeasedJob, group: int) -> Finding | None:
    if not job.spec.groups[group].different_machines:
        return None
    here = room(view, with_no_task_placed(job), group)
    if not has_room(view, with_no_task_placed(job)) or not len(here.at):
        return None
    return Finding(
        Reason.ONE_PER_MACHINE,
        f"Group {group} puts one task on a machine, and {things(len(here.at), 'machine')} with"
        " room for another run one already.",
        "Wait for other machines to have room, or submit it anew without different_machines.",
    )


def _protected(job: LeasedJob, evictions: Evictions) -> Finding | None:
    if not (evictions.preempts and evictions.protected):
        return None
    first = evictions.protected[0]
    alone_or_all = (
        f"omega cancel {first}"
        if first in evictions.ends_suffice or len(evictions.protected) == 1
        else f"omega cancel {first}, and so on"
    )
    return Finding(
        Reason.NOT_PREEMPTIBLE,
        f"Precedence {job.spec.precedence} is high enough to evict what runs there, but"
        f" {_jobs(evictions.protected)} may not be evicted (preemptible: false).",
        f"Wait until it ends, or end it: {alone_or_all}",
    )


def _gang_short(view: View, job: LeasedJob) -> Finding | None:
    if job.lacking <= 1:
        return None
    takes = len(pack(view, job))
    if not takes:
        return None
    minimum = job.placed + takes
    return Finding(
        Reason.GANG_SHORT,
        f"The gang needs {things(job.lacking, 'task')} placed at once; there is room for {takes:,}"
        " now.",
        f"Wait for room for {things(job.lacking - takes, 'task')} more, or submit it anew with"
        f" minimum: {minimum}",
    )


def _one_kind_short(view: View, job: LeasedJob, group: int) -> Finding | None:
    """Return of which one kind alone too little is free, and with how much of it the job fits."""
    asked = job.spec.groups[group]
    wanted = named_amounts(asked.demand)
    if asked.gpus:
        wanted[GPU] = asked.gpus
    best: tuple[int, str] | None = None
    for kind in wanted:
        without = asking(job, group, kind, 0)
        if has_room(view, without):
            machines = len(room(view, without, group).at)
            best = max(best or (0, kind), (machines, kind), key=lambda one: one[0])
    if best is None or len(wanted) == 1:
        return None  # of a job that asks for one kind, this would say no more than that it is full
    machines, kind = best
    fits = _most(lambda amount: has_room(view, asking(job, group, kind, amount)), wanted[kind])
    named = "GPUs" if kind == GPU else kind.split("_")[0]
    less = (
        f"with at most {measured(kind, fits)} it would fit"
        if fits
        else "none of it is free on any of them"
    )
    step = f", or submit it anew with {_typed(kind, fits)}" if fits else ""
    return Finding(
        Reason.ONE_KIND_SHORT,
        f"But for {named} it would fit on {things(machines, 'machine')} now: a task of group"
        f" {group} asks for {measured(kind, wanted[kind])}, and {less}.",
        f"Wait for {named} to be freed{step}.",
    )


def _most(fits: Callable[[int], bool], below: int) -> int:
    """Return the largest amount below one that does not fit; 0 fits."""
    low, high = 0, below
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _nowhere(view: View, job: LeasedJob, group: int) -> str:
    asked = job.spec.groups[group]
    together = named_amounts(asked.demand)
    gpus = f" and {things(asked.gpus, 'GPU')}" if asked.gpus else ""
    could = len(room(emptied_where_open(view), with_no_task_placed(job), group).at)
    return (
        f"A task of group {group} asks for {amounts(together)}{gpus};"
        f" {things(could, 'open machine')} could hold one, and none has that free now."
    )


def _when_full(evictions: Evictions, job: LeasedJob) -> str:
    steps = ["Wait: it is tried again when room is freed"]
    if evictions.ends_suffice:
        steps.append(f"or end a job that is in the way: omega cancel {evictions.ends_suffice[0]}")
    needed = evictions.precedence_needed
    if evictions.preempts and needed is not None and needed > job.spec.precedence:
        steps.append(f"or submit it anew with precedence: {needed}")
    return f"{'; '.join(steps)}."


def _typed(kind: str, amount: int) -> str:
    """Return an amount as it is written in a spec."""
    match kind:
        case Kind.CPU_MILLI.column:
            return f"cpu: {amount}m"
        case Kind.MEMORY_MIB.column:
            return f"memory: {amount}MiB"
        case Kind.DISK_MIB.column:
            return f"disk: {amount}MiB"
    return f"gpus: {amount}"


def _jobs(jobs: Sequence[int]) -> str:
    return f"job {jobs[0]}" if len(jobs) == 1 else f"jobs {', '.join(map(str, jobs))}"


def _some(names: Sequence[str], of: int) -> str:
    more = f" and {of - len(names):,} more" if of > len(names) else ""
    return f"{', '.join(names)}{more}"
