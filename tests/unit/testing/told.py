"""Histories made by hand: what workers were told of a cell of two machines with four cores."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from omega.errors import InvariantBroken
from omega.model.allocations import Allocations
from omega.model.arrays import integers
from omega.model.claims import ConflictRule, Transaction
from omega.model.jobs import LeasedJob
from omega.model.machines import MachineRows
from omega.model.outcomes import Outcome, Verdict
from omega.model.resources import KINDS, Kind
from omega.testing.builders import (
    JobAndClaims,
    a_cell,
    a_transaction,
    claims_of_job,
    evicting,
    some_claims,
)
from omega.testing.recorder import NEVER, Ended, Event, History, Judged, Moment
from omega.testing.serial import serial_order

YES, FULL, STALE, BROKEN = (
    Verdict.ACCEPTED,
    Verdict.OVERCOMMIT,
    Verdict.STALE,
    Verdict.GANG_BROKEN,
)
TAKEN, LOST = Verdict.ALREADY_PLACED, Verdict.LEASE_LOST

Row = tuple[int, int, int]
"""Cores used, sequence, revision."""

NEW: Row = (0, 0, 0)
MACHINES = 2
CORES = 4


def rows(told: Mapping[int, Row]) -> MachineRows:
    """Machines of four cores."""
    machines = sorted(told)
    used = np.zeros((len(machines), KINDS), dtype=np.int64)
    used[:, Kind.CPU_MILLI] = [told[machine][0] * 1_000 for machine in machines]
    return MachineRows(
        id=integers(machines),
        capacity=a_cell(len(machines), cpu_milli=CORES * 1_000).capacity.astype(np.int64),
        used=used,
        sequence=integers([told[machine][1] for machine in machines]),
        revision=integers([told[machine][2] for machine in machines]),
        state=np.zeros(len(machines), dtype=np.int8),
    )


def moment(told: Mapping[int, Row], runs: Mapping[tuple[int, int], tuple[int, int]]) -> Moment:
    """A cell at rest; `runs` gives machine and cores by job and task."""
    amounts = np.zeros((len(runs), KINDS), dtype=np.int64)
    amounts[:, Kind.CPU_MILLI] = [cores * 1_000 for _, cores in runs.values()]
    none = integers([0] * len(runs))
    return Moment(
        rows(told),
        Allocations(
            job=integers([job for job, _ in runs]),
            task=np.array([task for _, task in runs], dtype=np.intp),
            machine=integers([machine for machine, _ in runs.values()]),
            amounts=amounts,
            started_ms=none,
            duration_ms=none.copy(),
        ),
    )


def claims(
    job: LeasedJob,
    *wanted: tuple[int, int],
    cores: int = 1,
    minimum: int = 0,
    seen: int = 0,
    evicts: tuple[int, int] | None = None,
) -> JobAndClaims:
    """One job's claims as (task, machine); the first may evict a task of some job."""
    tasks, machines = [task for task, _ in wanted], [machine for _, machine in wanted]
    wants = some_claims(tasks, machines, seen=seen, cpu_milli=cores * 1_000)
    if evicts is not None:
        wants = evicting(wants, (0, *evicts))
    return claims_of_job(job, wants, minimum=minimum)


def judged(
    worker: str,
    when: tuple[float, float],
    what: JobAndClaims | Sequence[JobAndClaims],
    verdicts: Sequence[Verdict],
    fresh: Mapping[int, Row],
    rule: ConflictRule = ConflictRule.FIT,
) -> Judged:
    """A transaction, and what its worker was told."""
    claims_by_job = [what] if isinstance(what, tuple) else what
    transaction: Transaction = a_transaction(*claims_by_job, rule=rule, replica=worker)
    outcome = Outcome(
        verdicts=np.array(verdicts, dtype=np.int8),
        machine=transaction.claims.machine.copy(),
        evicted_job=integers(),
        evicted_task=np.zeros(0, dtype=np.intp),
        fresh=rows(fresh),
    )
    started, answered = when
    return Judged(
        worker=worker,
        started=started,
        answered=answered,
        transaction=transaction,
        outcome=outcome,
    )


def having_evicted(event: Judged, *tasks: tuple[int, int]) -> Judged:
    """The same answer, with what fell by it, by job and task."""
    fell = replace(
        event.outcome,
        evicted_job=integers([job for job, _ in tasks]),
        evicted_task=np.array([task for _, task in tasks], dtype=np.intp),
    )
    return replace(event, outcome=fell)


def over(
    worker: str, when: tuple[float, float], job: LeasedJob, *tasks: int, ended: int | None = None
) -> Ended:
    """An end of tasks, by default of all that are told."""
    return Ended(
        worker=worker,
        started=when[0],
        answered=when[1],
        job=integers([job.id] * len(tasks)),
        task=np.array(tasks, dtype=np.intp),
        ended=len(tasks) if ended is None else ended,
    )


def unanswered(worker: str, asked: float, job: LeasedJob, *tasks: int) -> Ended:
    """An end of tasks whose answer never came."""
    return replace(over(worker, (asked, asked), job, *tasks), answered=NEVER, ended=None)


def history(
    *events: Event,
    jobs: Sequence[LeasedJob],
    after: Mapping[int, Row],
    runs: Mapping[tuple[int, int], tuple[int, int]],
) -> History:
    """What happened to two unused machines."""
    workers: dict[str, list[Event]] = {}
    for event in events:
        workers.setdefault(event.worker, []).append(event)
    before = moment(dict.fromkeys(range(1, MACHINES + 1), NEW), {})
    return History(
        before,
        tuple(jobs),
        tuple(map(tuple, workers.values())),
        moment({2: NEW} | dict(after), runs),
    )


def accepted(told: History) -> list[str]:
    """Check a history that is sound; return its events' workers, in order."""
    return [event.worker for event in serial_order(told)]


def rejected(told: History) -> str:
    """Check a history that is not; return what is said of it."""
    with pytest.raises(InvariantBroken) as broken:
        serial_order(told)
    return str(broken.value)
