"""The invariants of a memory store, each checked from scratch.

Goal     Find the trace of a bug, whatever caused it.
Promise  No sum that the store keeps is relied on: sums are computed from the allocations.
Source   docs/decisions/0003-the-commit-rule.md; the same invariants as `omega db verify`.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from omega.lifecycle.states import FINAL, State
from omega.model.allocations import Allocations
from omega.model.resources import COLUMNS
from omega.store.memory.allocations import AllocationTable
from omega.store.memory.job_records import OVER, UNPLACED, JobRecord
from omega.store.memory.machines import MachineTable
from omega.store.status import Violation


def broken_invariants(
    machines: MachineTable, table: AllocationTable, jobs: Iterable[JobRecord]
) -> list[Violation]:
    """Compare machines, allocations and jobs; return the violations."""
    live = table.live()
    by_id = {job.id: job for job in jobs}
    return [
        *_of_machines(machines, live),
        *_of_allocations(live, by_id),
        *(violation for job in by_id.values() for violation in _of_job(job, table)),
        *_of_helpers(by_id),
        *_of_evictions(by_id),
    ]


def _of_machines(machines: MachineTable, live: Allocations) -> Iterator[Violation]:
    sums = np.zeros_like(machines.used)
    np.add.at(sums, live.machine - 1, live.amounts)
    for at, kind in np.argwhere(sums != machines.used):
        yield Violation(
            "used is the sum of allocations",
            f"machine {machines.names[at]}",
            f"{COLUMNS[kind]}: {machines.used[at, kind]} used, {sums[at, kind]} allocated",
        )
    tolerated = machines.capacity.copy()
    for machine, notice in machines.notices.items():
        tolerated[machine - 1] += notice.tolerated
    outside = (machines.used < 0) | (machines.used > tolerated)
    for at, kind in np.argwhere(outside):
        yield Violation(
            "use is within capacity",
            f"machine {machines.names[at]}",
            f"{COLUMNS[kind]}: {machines.used[at, kind]} of {machines.capacity[at, kind]}",
        )


def _of_allocations(live: Allocations, jobs: dict[int, JobRecord]) -> Iterator[Violation]:
    tasks, times = np.unique(np.column_stack([live.job, live.task]), axis=0, return_counts=True)
    for job, task in tasks[times > 1]:
        yield Violation("a task has one place", f"job {job}, task {task}", "several allocations")
    for job in np.setdiff1d(live.job, [n for n, job in jobs.items() if job.state not in FINAL]):
        yield Violation("what runs belongs to a live job", f"job {job}", "it is over, or never was")


def _of_job(job: JobRecord, table: AllocationTable) -> Iterator[Violation]:
    subject = f"job {job.id}"
    if job.ended < job.placed < job.spec.minimum:
        detail = f"{job.placed} of at least {job.spec.minimum} tasks placed"
        yield Violation("a gang is there in full or not at all", subject, detail)
    if not _state_fits(job):
        detail = f"{job.state.value} with {job.placed} placed and {job.ended} over"
        yield Violation("a job's state follows from its tasks", subject, detail)
    if job.state in FINAL:
        return
    placed, ended = np.count_nonzero(job.slot != UNPLACED), np.count_nonzero(job.slot == OVER)
    if placed != job.placed or ended != job.ended:
        detail = f"{job.placed} placed and {job.ended} over; by count {placed} and {ended}"
        yield Violation("counts of tasks are right", subject, detail)
    rows = table.rows[job.slot[job.running]]
    if not ((rows["job"] == job.id) & (rows["task"] == job.running)).all():
        yield Violation("each running task has its allocation", subject, "another's is there")


def _of_helpers(jobs: dict[int, JobRecord]) -> Iterator[Violation]:
    workers = {job.id: job.spec.tasks for job in jobs.values()}
    for job in jobs.values():
        if job.parent is None or job.state in FINAL:
            continue
        if job.state in (State.PENDING, State.PARKED):
            yield Violation("helpers never wait", f"job {job.id}", job.state.value)
        if job.parent not in jobs or jobs[job.parent].state in FINAL:
            yield Violation("helpers end with their parent", f"job {job.id}", str(job.parent))
        else:
            workers[job.parent] += job.spec.tasks - job.ended
    for number, total in workers.items():
        elastic = jobs[number].spec.workers
        if elastic is not None and total > elastic.at_most:
            detail = f"{total} of {elastic.at_most}"
            yield Violation("a job has the workers that it may have", f"job {number}", detail)


def _of_evictions(jobs: dict[int, JobRecord]) -> Iterator[Violation]:
    for victim in jobs.values():
        if victim.evicted_by is None or victim.evicted_by not in jobs:
            continue
        spec, by = victim.spec, jobs[victim.evicted_by].spec
        # The gap of precedence may have been another one then; it was never less than 1.
        is_higher = spec.preemptible and by.precedence > spec.precedence
        changes_s = [it.precedence_set_s for it in (victim, jobs[victim.evicted_by])]
        was_changed = any(
            at_s is not None and victim.evicted_s is not None and victim.evicted_s < at_s
            for at_s in changes_s
        )
        if not is_higher and by.scheduler != spec.scheduler and not was_changed:
            yield Violation(
                "a job was evicted for a higher precedence, or by its own scheduler",
                f"job {victim.id}",
                f"for job {victim.evicted_by}",
            )


def _state_fits(job: JobRecord) -> bool:
    """Return whether counts, lease and park reason agree with the state."""
    leased = job.token is not None
    is_parked = job.park_reason is not None
    match job.state:
        case State.PENDING | State.PARKED:
            counts = job.placed < job.spec.tasks
        case State.PLANNING:
            counts = job.ended < job.spec.tasks
        case State.RUNNING:
            counts = job.ended < job.placed == job.spec.tasks
        case State.SUCCEEDED:
            counts = job.ended == job.placed == job.spec.tasks
        case State.CANCELLED:
            counts = job.ended == job.placed
        case State.FAILED:
            counts = job.failed > 0 and job.ended == job.placed
    if job.state is not State.FAILED and job.state is not State.CANCELLED:
        # A job that goes on may have lost tasks, a gang may not.
        counts = counts and not (job.failed and (job.spec.minimum or job.state is State.SUCCEEDED))
    return (
        counts
        and job.failed <= job.ended
        and leased == (job.state is State.PLANNING)
        and is_parked == (job.state is State.PARKED)
    )
