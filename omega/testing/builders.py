"""Builders: cells, views, jobs, claims and transactions, each by one readable call.

Goal     A test names only what it is about; all else has a plain default.
Promise  The same call builds the same value, except for the id of a transaction, which is new.
Source   Machines are numbered from 1, as the stores number them; tasks from 0.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypedDict, Unpack
from uuid import UUID, uuid4

import numpy as np

from omega.cell.commit_context import CommitContext, Victims
from omega.cell.quota_balances import QuotaBalances
from omega.cell.view import View
from omega.model.allocations import Allocations
from omega.model.arrays import Sequences, every_kind, integers
from omega.model.claims import Alternates, Claims, ConflictRule, Evictions, Transaction
from omega.model.jobs import (
    NEVER_YIELDS,
    PRECEDENCE_GAP,
    Constraint,
    JobSpec,
    LeasedJob,
    Preference,
    StepWork,
    TaskGroup,
)
from omega.model.machines import Catalogue, MachineRows, Machines, MachineState, Snapshot
from omega.model.outcomes import Outcome, Verdict
from omega.model.programs import Program
from omega.model.quotas import BUDGETS, Budget, Quota, QuotaScope, cost
from omega.model.resources import KINDS, amounts, machine_capacity

JobAndClaims = tuple[int, UUID, int, Claims]
"""Job, lease token, minimum and claims: what `Transaction.of` takes."""

AmountsByMachine = Mapping[int, Mapping[str, int]]
"""By machine id, amounts by the name of their kind."""


@dataclass(frozen=True)
class KnownJob:
    """A job as a store holds it when a commit begins."""

    precedence: int = 0
    minimum: int = 0
    runs: Mapping[int, tuple[int, list[int]]] = field(default_factory=dict)
    """By task, its machine id and its amounts of all kinds."""
    over: frozenset[int] = frozenset()
    """Tasks that have ended."""
    tenant: str = "default"
    scheduler: str = "batch"
    preemptible: bool = True
    precedence_gap: int = PRECEDENCE_GAP
    """That of the cell."""

    @property
    def yields_to(self) -> int:
        """The least precedence for which its tasks may be evicted."""
        return self.precedence + self.precedence_gap if self.preemptible else NEVER_YIELDS

    @property
    def placed(self) -> set[int]:
        """Tasks that run or have ended."""
        return {*self.runs, *self.over}


UNKNOWN_JOB = KnownJob()


class GroupFields(TypedDict, total=False):
    """The fields of a task group that builders of jobs accept."""

    cpu_milli: int
    memory_mib: int
    disk_mib: int
    gpus: int
    gpu_slices: int
    duration_ms: int | None
    constraints: tuple[Constraint, ...]
    spread_over: str | None
    different_machines: bool
    program: Program | None
    preferences: tuple[Preference, ...]
    patience_ms: int


def a_cell(
    machines: int = 3,
    *,
    cpu_milli: int = 4_000,
    memory_mib: int = 16_384,
    disk_mib: int = 100_000,
    gpus: int = 0,
    first: int = 1,
    attributes: Mapping[str, Collection[str | None]] | None = None,
) -> Machines:
    """Return equal machines with the names machine-1, machine-2 and so on, counted from `first`."""
    capacity = machine_capacity(cpu_milli, memory_mib, disk_mib, gpus)
    return Machines(
        names=tuple(f"machine-{number}" for number in range(first, first + machines)),
        capacity=np.tile(capacity, (machines, 1)),
        attributes={name: tuple(values) for name, values in (attributes or {}).items()},
    )


def join_cells(*cells: Machines) -> Machines:
    """Return all the machines of these cells; a machine lacks the attributes of other cells."""
    attributes: dict[str, list[str | None]] = {
        name: [] for cell in cells for name in cell.attributes
    }
    for cell in cells:
        for name, values in attributes.items():
            values.extend(cell.attributes.get(name, [None] * len(cell)))
    return Machines(
        names=tuple(name for cell in cells for name in cell.names),
        capacity=np.concatenate([cell.capacity for cell in cells]),
        attributes=attributes,
    )


def some_rows(
    cell: Machines | None = None,
    *,
    used: AmountsByMachine | None = None,
    state: Mapping[int, MachineState] | None = None,
    sequence: Mapping[int, int] | None = None,
    revision: Mapping[int, int] | None = None,
) -> MachineRows:
    """Return a cell's rows with ids from 1; numbers that are not given are 0, states are open."""
    capacity = (a_cell() if cell is None else cell).capacity
    machines = len(capacity)
    used_rows = np.zeros_like(capacity)
    for machine, named in (used or {}).items():
        used_rows[machine - 1] = amounts(named)
    return MachineRows(
        id=np.arange(1, machines + 1, dtype=np.int64),
        capacity=capacity.astype(np.int64),
        used=used_rows,
        sequence=_by_machine(machines, sequence),
        revision=_by_machine(machines, revision),
        state=_by_machine(machines, state).astype(np.int8),
    )


def _by_machine(machines: int, told: Mapping[int, int] | None) -> Sequences:
    return integers([(told or {}).get(machine, 0) for machine in range(1, machines + 1)])


def a_snapshot(
    cell: Machines | None = None,
    *,
    used: AmountsByMachine | None = None,
    state: Mapping[int, MachineState] | None = None,
    sequence: Mapping[int, int] | None = None,
    mark: int = 0,
    generation: int = 1,
) -> Snapshot:
    """Return a snapshot of a cell."""
    cell = a_cell() if cell is None else cell
    catalogue, codes = Catalogue().encode(cell)
    rows = some_rows(cell, used=used, state=state, sequence=sequence)
    return Snapshot(rows, cell.names, catalogue, codes, mark, generation)


def a_view(
    cell: Machines | None = None,
    *,
    used: AmountsByMachine | None = None,
    state: Mapping[int, MachineState] | None = None,
    sequence: Mapping[int, int] | None = None,
) -> View:
    """Return a scheduler's view of a cell: `a_view(a_cell(5), used={2: {"cpu_milli": 500}})`."""
    return View(a_snapshot(cell, used=used, state=state, sequence=sequence))


def a_group(tasks: int = 1, **fields: Unpack[GroupFields]) -> TaskGroup:
    """Return a task group whose tasks ask for one core by default."""
    fields.setdefault("cpu_milli", 1_000)
    return TaskGroup(tasks=tasks, **fields)


def a_spec(
    tasks: int = 1,
    *,
    groups: Iterable[TaskGroup] = (),
    name: str = "job",
    scheduler: str = "batch",
    tenant: str = "default",
    precedence: int = 0,
    minimum: int = 0,
    work: StepWork | None = None,
    **fields: Unpack[GroupFields],
) -> JobSpec:
    """Return a job as submitted: of `groups`, or of one group of `tasks` with these fields."""
    return JobSpec(
        name=name,
        scheduler=scheduler,
        groups=tuple(groups) or (a_group(tasks, **fields),),
        tenant=tenant,
        precedence=precedence,
        minimum=minimum,
        work=work,
    )


def a_job(
    tasks: int = 1,
    *,
    spec: JobSpec | None = None,
    job: int = 1,
    minimum: int = 0,
    runs_on: Mapping[int, int] | None = None,
    fruitless: int = 0,
    waited_ms: int | None = None,
    age_ms: int = 0,
    **fields: Unpack[GroupFields],
) -> LeasedJob:
    """Return a leased job of `spec`, or of one group of `tasks` with these fields.

    `runs_on` has the machine id of each task that runs already; the others are unplaced.
    """
    spec = a_spec(tasks, minimum=minimum, **fields) if spec is None else spec
    runs_on = dict(sorted((runs_on or {}).items()))
    return LeasedJob(
        id=job,
        token=UUID(int=job),
        spec=spec,
        unplaced=np.setdiff1d(np.arange(spec.tasks), list(runs_on)).astype(np.intp),
        placed_task=np.array(list(runs_on), dtype=np.intp),
        placed_machine=integers(list(runs_on.values())),
        placed=len(runs_on),
        fruitless=fruitless,
        waited_ms=waited_ms,
        age_ms=age_ms,
    )


def a_claim(task: int = 0, *, machine: int = 1, seen: int = 0, **named: int) -> Claims:
    """Return one claim: `a_claim(3, machine=7, memory_mib=512)`; by default it is for one core."""
    return some_claims([task], [machine], seen=seen, **named)


def some_claims(
    tasks: Iterable[int], machines: Iterable[int], *, seen: int | Iterable[int] = 0, **named: int
) -> Claims:
    """Return claims of one shape: task by task, machine by machine, and the sequence seen there."""
    task = np.array(list(tasks), dtype=np.intp)
    machine = integers(list(machines))
    sequences = [seen] * len(task) if isinstance(seen, int) else list(seen)
    shape = amounts(named) if named else amounts(cpu_milli=1_000)
    return Claims(
        task, machine, integers(sequences), np.zeros(len(task), np.intp), shape[np.newaxis]
    )


def or_on(claims: Claims, *others: tuple[int, int], seen: int = 0) -> Claims:
    """Return the claims with alternates: (position of the claim, another machine), in order."""
    claim = np.array([claim for claim, _ in others], dtype=np.intp)
    alternates = Alternates(
        claim=claim,
        machine=integers([machine for _, machine in others]),
        seen=integers([seen] * len(others)),
        shape=claims.shape[claim],
    )
    return replace(claims, alternates=alternates)


def evicting(claims: Claims, *victims: tuple[int, int, int]) -> Claims:
    """Return the claims with evictions: (position of the claim, job, task), in order."""
    evictions = Evictions(
        claim=np.array([claim for claim, _, _ in victims], dtype=np.intp),
        job=integers([job for _, job, _ in victims]),
        task=np.array([task for _, _, task in victims], dtype=np.intp),
    )
    return replace(claims, evictions=evictions)


def claims_in(view: View, tasks: Iterable[int], machines: Iterable[int], **named: int) -> Claims:
    """Return claims of one shape that carry the sequences which the view shows."""
    machine = integers(list(machines))
    return some_claims(
        tasks, machine.tolist(), seen=view.sequence[view.where(machine)].tolist(), **named
    )


def claims_of_job(job: LeasedJob, *claims: Claims, minimum: int = 0) -> JobAndClaims:
    """Return one job's part of a transaction, an argument of `a_transaction`."""
    return job.id, job.token, minimum, Claims.of(claims)


def a_transaction(
    *claims_by_job: JobAndClaims,
    rule: ConflictRule = ConflictRule.FIT,
    scheduler: str = "batch",
    replica: str = "0",
) -> Transaction:
    """Return a transaction with a new id: `a_transaction(claims_of_job(job, a_claim(0)))`."""
    return Transaction.of(
        claims_by_job, id=uuid4(), scheduler=scheduler, replica=replica, rule=rule
    )


def an_outcome(*verdicts: Verdict) -> Outcome:
    """Return an outcome with these verdicts, on machine 1, without evictions."""
    return replace(
        Outcome.nothing(),
        verdicts=np.array(verdicts, dtype=np.int8),
        machine=np.ones(len(verdicts), dtype=np.int64),
    )


def a_context(
    transaction: Transaction,
    *,
    lost: Collection[int] = (),
    jobs: Mapping[int, KnownJob] | None = None,
    quotas: Sequence[Quota] = (),
) -> CommitContext:
    """Return a commit context; by default all leases are held and all tasks unplaced.

    `lost` are jobs of the transaction whose leases are not held. `jobs` says what is known of the
    transaction's jobs and of others. The balances of quotas follow from their running tasks.
    """
    known = jobs or {}
    unplaced = [
        task not in known[part.job].placed if part.job in known else True
        for part in transaction.jobs
        for task in transaction.claims.task[part.claims].tolist()
    ]
    about = [known.get(part.job, UNKNOWN_JOB) for part in transaction.jobs]
    held = {part.job for part in transaction.jobs} - set(lost)
    return CommitContext(
        lease_held=np.array([part.job in held for part in transaction.jobs], dtype=np.bool_),
        minimum=integers([job.minimum for job in about]),
        placed=integers([len(job.placed) for job in about]),
        precedence=integers([job.precedence for job in about]),
        unplaced=np.array(unplaced, dtype=np.bool_),
        victims=some_victims(transaction, known, held),
        quota_balances=some_balances(known, quotas),
    )


def some_balances(known: Mapping[int, KnownJob], quotas: Sequence[Quota]) -> QuotaBalances:
    """Return the balances of quotas after these jobs' use, and which jobs draw on which."""
    left = np.array([quota.row for quota in quotas], np.int64).reshape(-1, BUDGETS)
    drawn_by = {}
    for job, about in known.items():
        whose = {QuotaScope.TENANT: about.tenant, QuotaScope.SCHEDULER: about.scheduler}
        rows = [row for row, quota in enumerate(quotas) if quota.name == whose[quota.scope]]
        for _, held in about.runs.values():
            left[rows] -= cost(integers(held))
        left[rows, Budget.JOBS] -= bool(about.runs)
        if rows:
            drawn_by[job] = tuple(rows)
    return QuotaBalances(left, drawn_by, {job: len(known[job].runs) for job in drawn_by})


def some_victims(
    transaction: Transaction, known: Mapping[int, KnownJob], held: Collection[int]
) -> Victims:
    """Return the known jobs among those that evictions name, with their running tasks."""
    named = sorted(known.keys() & set(transaction.claims.evictions.job.tolist()))
    about = [known[job] for job in named]
    live = [(job, task, *place) for job in named for task, place in sorted(known[job].runs.items())]
    return Victims(
        job=integers([job for job, *_ in live]),
        task=np.array([task for _, task, *_ in live], dtype=np.intp),
        machine=integers([machine for _, _, machine, _ in live]),
        amounts=integers([amounts for *_, amounts in live]).reshape(-1, KINDS),
        distinct_job=integers(named),
        yields_to=integers([job.yields_to for job in about]),
        minimum=integers([job.minimum for job in about]),
        placed=integers([len(job.placed) for job in about]),
        own=np.array(
            [
                job in held and known.get(part.job, UNKNOWN_JOB).scheduler == known[job].scheduler
                for part in transaction.jobs
                for job in named
            ],
            dtype=np.bool_,
        ).reshape(len(transaction.jobs), len(named)),
    )


def within_capacity(rows: MachineRows) -> bool:
    """Return whether the use of every machine is within its capacity, in every kind."""
    return bool(every_kind((rows.used >= 0) & (rows.used <= rows.capacity)).all())


def no_allocations() -> Allocations:
    """Return empty allocations."""
    none = integers([])
    return Allocations(none, none, none, np.zeros((0, KINDS), np.int64), none, none)
