"""A plan: where the tasks of a job that is not submitted would go, beside what runs now.

Goal     Show what a submission would do before it is made.
Promise  Every task of the job is told: with its machine and that machine's sequence, or as left
         over. What would be evicted is named. Rows are tasks; the summary has all the rest.
Source   docs/decisions/0053-plans-before-submission.md; nomad's `job plan`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from omega.model.claims import Claims
from omega.model.jobs import JobSpec
from omega.model.machines import Snapshot
from omega.model.quotas import QuotaUse
from omega.model.resources import named
from omega.model.wire import spec_to_wire
from omega.reports.quotas import row_of as quota_row
from omega.reports.why.report import WhyReport
from omega.store.protocols import JobReader
from omega.store.status import JobStatus


@dataclass(frozen=True)
class PlannedTask:
    """One task, and where it would go."""

    task: int
    group: int
    machine: str | None
    """None for a task that finds no place."""
    machine_id: int | None
    sequence: int | None
    """The machine's sequence in the view of the plan: it is what the sequence rule compares."""
    amounts: Mapping[str, int]
    evicts: tuple[tuple[int, int], ...]
    """Job and task of each task that its claim names to be evicted."""
    now: str | None
    """The machine of the task of this number in the job that runs under this name."""


@dataclass(frozen=True)
class PlannedEviction:
    """A task that would lose its place."""

    job: int
    name: str
    task: int


@dataclass(frozen=True, eq=False)
class PlanReport:
    """What a submission would do, as of one moment."""

    spec: JobSpec
    tasks: Sequence[PlannedTask]
    evictions: Sequence[PlannedEviction]
    quotas: Sequence[tuple[QuotaUse, QuotaUse]]
    """Those that it draws on, as they are and as they would be."""
    rest: WhyReport | None
    """Why tasks are left over; None if none is."""
    before: JobStatus | None
    """The newest job of this name, if it has not ended."""
    before_places: Mapping[int, str]

    @property
    def placed(self) -> int:
        """How many tasks would have a place."""
        return sum(task.machine is not None for task in self.tasks)

    @property
    def ends(self) -> Mapping[int, str]:
        """Tasks that run under this name now, and that the job would not have."""
        return {at: name for at, name in self.before_places.items() if at >= self.spec.tasks}

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each task, as JSON types."""
        return [asdict(task) for task in self.tasks]

    def summary(self) -> dict[str, object]:
        """Return all but the tasks, as JSON types."""
        return {
            "spec": spec_to_wire(self.spec),
            "tasks": len(self.tasks),
            "placed": self.placed,
            "evictions": [asdict(eviction) for eviction in self.evictions],
            "quotas": [
                {"now": quota_row(now), "then": quota_row(then)} for now, then in self.quotas
            ],
            "rest": None if self.rest is None else self.rest.summary(),
            "before": None
            if self.before is None
            else {
                "job": self.before.id,
                "state": self.before.state.value,
                "tasks": self.before.tasks,
                "ends": [{"task": at, "machine": name} for at, name in self.ends.items()],
            },
        }


def planned_tasks(
    spec: JobSpec, claims: Claims, snapshot: Snapshot, now: Mapping[int, str]
) -> Iterator[PlannedTask]:
    """Yield every task of a job in order, with its claim if there is one."""
    ends = np.cumsum([group.tasks for group in spec.groups])
    at = snapshot.rows.where(claims.machine)
    by_task = {task: number for number, task in enumerate(claims.task.tolist())}
    demand, named_by = claims.demand, claims.evictions
    evicts: dict[int, list[tuple[int, int]]] = {}
    for claim, job, victim in zip(
        named_by.claim.tolist(), named_by.job.tolist(), named_by.task.tolist(), strict=True
    ):
        evicts.setdefault(claim, []).append((job, victim))
    for task in range(spec.tasks):
        group, number = int(np.searchsorted(ends, task, side="right")), by_task.get(task)
        if number is None:
            yield PlannedTask(task, group, None, None, None, {}, (), now.get(task))
            continue
        yield PlannedTask(
            task,
            group,
            snapshot.names[at[number]],
            int(claims.machine[number]),
            int(claims.seen[number]),
            named(demand[number]),
            tuple(evicts.get(number, ())),
            now.get(task),
        )


def planned_evictions(
    store: JobReader, evicted: Sequence[tuple[int, int]]
) -> list[PlannedEviction]:
    """Return who would lose places, with the names of the jobs."""
    statuses = {job: store.job(job) for job in sorted({job for job, _ in evicted})}
    return [
        PlannedEviction(job, "" if (status := statuses[job]) is None else status.name, task)
        for job, task in evicted
    ]
