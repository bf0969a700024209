"""Steps: what a test does to a store, in one line each.

Goal     Let the contracts read as stories.
Promise  Each step is a call or two of the store's own interface, and asserts that it worked.
Source   omega/store/protocols.py.
"""

from collections.abc import Iterable

import numpy as np

from omega.model.arrays import integers
from omega.model.claims import ConflictRule
from omega.model.jobs import JobSpec, LeasedJob
from omega.model.machines import MachineRows
from omega.model.outcomes import Outcome, Verdict
from omega.store.leases import JobLeases
from omega.store.protocols import (
    CommitStore,
    JobReader,
    NodeStore,
    OwnerStore,
    ReaderStore,
    SnapshotSource,
    Store,
)
from omega.store.rounds import Round, RoundStore
from omega.store.status import JobStatus
from omega.testing.builders import a_cell, a_spec, a_transaction, claims_of_job, some_claims

LONG_MS = 600_000
"""A lease that no test outlives."""

OVER_AT_ONCE_MS = 0
"""A lease that has run out when it begins."""


def add_a_cell(
    store: OwnerStore, machines: int = 3, *, cpu_milli: int = 4_000, gpus: int = 0
) -> list[int]:
    """Add equal machines; return their ids."""
    return list(map(int, store.add_machines(a_cell(machines, cpu_milli=cpu_milli, gpus=gpus))))


def lease_all(
    store: JobLeases, *, scheduler: str = "batch", lease_ms: int = LONG_MS
) -> list[LeasedJob]:
    """Lease whatever is pending for a kind of scheduler."""
    return store.lease(scheduler, holder=f"{scheduler}-0", jobs_max=10_000, lease_ms=lease_ms)


def lease_ids(store: JobLeases, *, scheduler: str = "batch", jobs_max: int = 10_000) -> list[int]:
    """Lease up to so many jobs; return their ids in the order given."""
    jobs = store.lease(scheduler, holder="batch-0", jobs_max=jobs_max, lease_ms=LONG_MS)
    return [job.id for job in jobs]


def submit_and_lease(store: Store, *specs: JobSpec, lease_ms: int = LONG_MS) -> list[LeasedJob]:
    """Submit batch jobs and lease them; nothing else may be pending."""
    submitted = store.submit(specs)
    leased = {job.id: job for job in lease_all(store, lease_ms=lease_ms)}

    assert sorted(submitted) == sorted(leased)
    return [leased[job] for job in submitted]


def recall(
    store: RoundStore,
    jobs: Iterable[int] | None,
    *,
    scheduler: str = "batch",
    holder: str = "batch/0",
    lease_ms: int = LONG_MS,
) -> list[LeasedJob]:
    """Begin a round, which must be due, and recall jobs in it; all that run if they are None."""
    begun = store.begin_round(scheduler, holder=holder, length_ms=OVER_AT_ONCE_MS)

    assert isinstance(begun, Round)
    named = None if jobs is None else list(jobs)
    return store.recall(scheduler, begun.number, named, lease_ms=lease_ms)


def a_leased_job(
    store: Store, spec: JobSpec | None = None, *, lease_ms: int = LONG_MS
) -> LeasedJob:
    """Submit one batch job and lease it."""
    return submit_and_lease(store, spec or a_spec(), lease_ms=lease_ms)[0]


def claim(
    store: CommitStore,
    job: LeasedJob,
    tasks: Iterable[int],
    machines: Iterable[int],
    *,
    minimum: int = 0,
    rule: ConflictRule = ConflictRule.FIT,
    seen: int = 0,
    **named: int,
) -> Outcome:
    """Commit one job's claims of one shape; one core each if nothing is named."""
    claims = some_claims(tasks, machines, seen=seen, **named)
    return store.commit(a_transaction(claims_of_job(job, claims, minimum=minimum), rule=rule))


def grant(
    store: CommitStore, job: LeasedJob, tasks: Iterable[int], machines: Iterable[int], **named: int
) -> Outcome:
    """Commit claims that are sure to be granted."""
    claims = some_claims(tasks, machines, **named)
    outcome = store.commit(a_transaction(claims_of_job(job, claims)))

    assert outcome.accepted.all(), outcome.by_verdict()
    return outcome


def a_running_job(store: Store, spec: JobSpec, machines: Iterable[int], **named: int) -> LeasedJob:
    """Submit a job, lease it and place all its tasks, in order, on these machines."""
    job = a_leased_job(store, spec)
    grant(store, job, range(spec.tasks), machines, **named)
    return job


def evicted_tasks(outcome: Outcome) -> list[tuple[int, int]]:
    """Return job and task of whatever was evicted, in the order in which they fell."""
    return list(zip(outcome.evicted_job.tolist(), outcome.evicted_task.tolist(), strict=True))


def places(store: ReaderStore) -> dict[tuple[int, int], int]:
    """Return the machine of each task that runs, by job and task."""
    live = store.allocations()
    names = zip(live.job.tolist(), live.task.tolist(), strict=True)
    return dict(zip(names, live.machine.tolist(), strict=True))


def end(store: NodeStore, job: LeasedJob, *tasks: int) -> int:
    """End some tasks of one job; return how many were live."""
    return store.end_tasks(integers([job.id] * len(tasks)), np.array(tasks, dtype=np.intp))


def verdicts_of(outcome: Outcome) -> list[Verdict]:
    """Return the verdicts, by name, for a comparison that reads well."""
    return [Verdict(verdict) for verdict in outcome.verdicts.tolist()]


def row_of(store: SnapshotSource, machine: int) -> MachineRows:
    """Return one machine's row as it is now."""
    rows = store.snapshot().rows
    return rows.take(rows.where(integers([machine])))


def status_of(store: JobReader, job: LeasedJob | int) -> JobStatus:
    """Return the status of a job that must exist."""
    status = store.job(job if isinstance(job, int) else job.id)

    assert status is not None
    return status
