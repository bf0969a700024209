"""Hypothesis strategies: small crowded cells, and transactions that compete for them.

Goal     Reach every verdict often, with examples that are small enough to read when one fails.
Promise  Amounts are small, so that room runs out, and ids overlap, so that claims conflict. Running
         tasks count in the machines' use. When the commit begins each gang is whole or has no task.
Source   docs/decisions/0003-the-commit-rule.md, 0015-evictions-alternates-machines.md,
         0016-quotas.md; Hypothesis shrinks towards less of everything.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from uuid import UUID

import numpy as np
from hypothesis import strategies as st

from omega.cell.commit_context import CommitContext
from omega.model.arrays import Ids, Sequences, integers
from omega.model.claims import (
    NO_ALTERNATES,
    Alternates,
    Claims,
    ConflictRule,
    Evictions,
    Transaction,
)
from omega.model.machines import MachineRows, MachineState
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.model.resources import KINDS, Kind
from omega.testing.builders import JobAndClaims, KnownJob, a_context, some_balances

CONTESTED = (Kind.CPU_MILLI, Kind.MEMORY_MIB, Kind.GPU_0, Kind.GPU_1)
"""The kinds that examples use; the others are 0, as on most machines."""

MACHINE_IDS = st.integers(1, 6)
JOB_IDS = st.integers(1, 5)
TASKS_MAX = 8
TASKS = st.integers(0, TASKS_MAX - 1)
TENANTS = st.sampled_from(["ann", "bob"])
SCHEDULERS = st.sampled_from(["batch", "batch", "service"])
PRECEDENCES = st.sampled_from([0, 9, 10, 20])
"""Nine is one too few, with the usual gap."""


@dataclass(frozen=True, eq=False)
class Case:
    """The arguments of a judge, and the jobs that a store must hold for them."""

    rows: MachineRows
    transaction: Transaction
    context: CommitContext
    jobs: Mapping[int, KnownJob]
    """All jobs by id, those of the transaction and others."""
    quotas: tuple[Quota, ...] = ()

    def __repr__(self) -> str:
        """Return what a reader needs to understand a failing example."""
        held = self.context.lease_held
        jobs = [
            f"job {part.job}, minimum sent {part.grants_min},"
            f" {'held' if held[number] else 'lost'}: claims {part.claims.start}-{part.claims.stop}"
            for number, part in enumerate(self.transaction.jobs)
        ]
        claims, others = self.transaction.claims, self.transaction.claims.alternates
        evictions = claims.evictions
        return "\n".join(
            [
                f"rule {self.transaction.rule.value}",
                *map(str, self.quotas),
                *jobs,
                *(f"known job {job}: {about}" for job, about in self.jobs.items()),
                *(
                    f"claim {at}: task {claims.task[at]} on {claims.machine[at]}"
                    f" (seen {claims.seen[at]}), asks {claims.demand[at].tolist()},"
                    f" unplaced {self.context.unplaced[at]}"
                    for at in range(len(claims))
                ),
                *(
                    f"claim {others.claim[at]} else on {others.machine[at]}"
                    f" (seen {others.seen[at]}), asks {claims.shapes[others.shape[at]].tolist()}"
                    for at in range(len(others))
                ),
                *(
                    f"claim {evictions.claim[at]} evicts"
                    f" task {evictions.task[at]} of job {evictions.job[at]}"
                    for at in range(len(evictions))
                ),
                *(
                    f"machine {self.rows.id[at]}: {self.rows.used[at].tolist()} used of"
                    f" {self.rows.capacity[at].tolist()}, sequence {self.rows.sequence[at]},"
                    f" state {MachineState(int(self.rows.state[at])).name}"
                    for at in range(len(self.rows))
                ),
            ]
        )


def in_every_kind(*some: int) -> st.SearchStrategy[list[int]]:
    """Draw amounts of all kinds, with one of `some` in each contested kind."""
    rows = []
    for chosen in product(some, repeat=len(CONTESTED)):
        row = [0] * KINDS
        for kind, amount in zip(CONTESTED, chosen, strict=True):
            row[kind] = amount
        rows.append(row)
    return st.sampled_from(rows)  # one draw: a draw for each kind would take too long


DEMANDS = in_every_kind(0, 0, 0, 1, 1, 2, 3)
ROOM_LEFT = in_every_kind(0, 1, 2, 3, 4)


@st.composite
def known_jobs(draw: st.DrawFn, machines: list[int]) -> dict[int, KnownJob]:
    """Draw jobs with tasks that run on these machines and tasks that have ended."""
    jobs = {}
    for job in draw(st.lists(JOB_IDS, unique=True, max_size=3)):
        tasks = draw(st.sets(TASKS, min_size=1, max_size=4))
        over = {task for task in tasks if draw(st.sampled_from([False, False, False, True]))}
        runs = {
            task: (draw(st.sampled_from(machines)), draw(DEMANDS)) for task in sorted(tasks - over)
        }
        gangs = [0, len(tasks), len(tasks), draw(st.integers(0, len(tasks) if runs else TASKS_MAX))]
        jobs[job] = KnownJob(
            precedence=draw(PRECEDENCES),
            preemptible=draw(st.sampled_from([True, True, True, False])),
            minimum=draw(st.sampled_from(gangs)),
            runs=runs,
            over=frozenset(over),
            tenant=draw(TENANTS),
            scheduler=draw(SCHEDULERS),
        )
    return jobs


def unplaced_jobs() -> st.SearchStrategy[KnownJob]:
    """Draw a job without running tasks, sometimes a gang of three."""
    return st.builds(
        KnownJob,
        precedence=st.sampled_from([30, 30, 0, 10, 19, 20]),
        minimum=st.sampled_from([0, 0, 1, 3]),
        tenant=TENANTS,
        scheduler=SCHEDULERS,
    )


@st.composite
def quotas_around(draw: st.DrawFn, jobs: Mapping[int, KnownJob]) -> tuple[Quota, ...]:
    """Draw quotas whose balances after these jobs' use are small, zero or negative."""
    if draw(st.sampled_from([False, False, True])):
        return ()
    subjects = [
        (QuotaScope.TENANT, "ann"),
        (QuotaScope.TENANT, "bob"),
        (QuotaScope.SCHEDULER, "batch"),
    ]
    nothing = [Quota(scope, name, dict.fromkeys(Budget, 0)) for scope, name in subjects]
    quotas = []
    for quota, left in zip(nothing, some_balances(jobs, nothing).left.tolist(), strict=True):
        limited = draw(st.sets(st.sampled_from(Budget), min_size=1, max_size=3))
        more = {
            budget: draw(st.sampled_from([-1, 0, 0, 1, 2, 3, 5, 200])) for budget in sorted(limited)
        }
        limits = {budget: max(0, more[budget] - left[budget]) for budget in more}
        quotas += [Quota(quota.scope, quota.name, limits)] * draw(st.sampled_from([0, 1, 1]))
    return tuple(quotas)


@st.composite
def machine_rows(draw: st.DrawFn, ids: list[int], jobs: Mapping[int, KnownJob]) -> MachineRows:
    """Draw machines with these jobs' use: some full, some above capacity, some not open."""
    used = np.zeros((len(ids), KINDS), dtype=np.int64)
    capacity = np.zeros_like(used)
    for job in jobs.values():
        for machine, amounts in job.runs.values():
            used[ids.index(machine)] += amounts
    for at in range(len(ids)):
        by_others, shrunk = draw(st.sampled_from([0, 0, 1])), draw(st.sampled_from([0] * 7 + [2]))
        used[at, CONTESTED] += by_others
        capacity[at] = np.maximum(0, used[at] + draw(ROOM_LEFT) - shrunk)
    states = st.sampled_from([MachineState.OPEN] * 9 + list(MachineState)[1:])
    sequence = [draw(st.integers(1, 3)) for _ in ids]
    ended = draw(st.integers(0, 2))
    return MachineRows(
        id=integers(ids),
        capacity=capacity,
        used=used,
        sequence=integers(sequence),
        revision=integers(sequence) + ended,
        state=np.array([draw(states) for _ in ids], dtype=np.int8),
    )


@st.composite
def claims_on(
    draw: st.DrawFn, rows: MachineRows, jobs: Mapping[int, KnownJob], job: int, *, exchange: bool
) -> Claims:
    """Draw a job's claims: current or stale, with repeated tasks and machines, some unknown."""
    shapes = draw(st.lists(DEMANDS, min_size=1, max_size=2))
    tasks = draw(st.lists(TASKS, max_size=6, unique=draw(st.booleans())))
    machine = integers([draw(machines_near(rows)) for _ in tasks])
    claims = Claims(
        task=np.array(tasks, dtype=np.intp),
        machine=machine,
        seen=draw(sequences_seen(rows, machine)),
        shape=np.array([draw(st.integers(0, len(shapes) - 1)) for _ in tasks], dtype=np.intp),
        shapes=np.array(shapes, dtype=np.int64),
    )
    if not exchange:
        return claims
    return replace(
        claims,
        alternates=draw(st.just(NO_ALTERNATES) | alternates_for(rows, claims)),
        evictions=draw(evictions_for(claims, jobs, job)),
    )


def machines_near(rows: MachineRows) -> st.SearchStrategy[int]:
    """Draw a machine id, mostly one that exists."""
    return st.sampled_from([*rows.id.tolist() * 6, 6])


@st.composite
def sequences_seen(draw: st.DrawFn, rows: MachineRows, machine: Ids) -> Sequences:
    """Draw the sequences that a view shows for these machines: current, or one less."""
    now = dict(zip(rows.id.tolist(), rows.sequence.tolist(), strict=True))
    return integers([now.get(m, 0) - draw(st.sampled_from([0, 0, 1])) for m in machine.tolist()])


@st.composite
def alternates_for(draw: st.DrawFn, rows: MachineRows, claims: Claims) -> Alternates:
    """Draw up to two other machines for each claim."""
    named = [
        (claim, machine)
        for claim, own in enumerate(claims.machine.tolist())
        for machine in draw(st.lists(machines_near(rows), unique=True, max_size=2))
        if machine != own
    ]
    machine = integers([machine for _, machine in named])
    return Alternates(
        claim=np.array([claim for claim, _ in named], dtype=np.intp),
        machine=machine,
        seen=draw(sequences_seen(rows, machine)),
        shape=np.array(
            [draw(st.integers(0, len(claims.shapes) - 1)) for _ in named], dtype=np.intp
        ),
    )


@st.composite
def evictions_for(
    draw: st.DrawFn, claims: Claims, jobs: Mapping[int, KnownJob], mover: int
) -> Evictions:
    """Draw evictions for a job's claims, most of tasks that run on the claim's machine.

    Some evict a task of the job itself, the claim's or another, which moves it. A few name tasks
    that may not run.
    """
    named: list[tuple[int, int, int]] = []
    for claim, machine in enumerate(claims.machine.tolist()):
        here = [
            (job, task)
            for job, about in jobs.items()
            for task, (place, _) in about.runs.items()
            if place == machine
        ]
        victims = draw(st.sets(st.sampled_from(here), max_size=3)) if here else ()
        named += [(claim, *victim) for victim in victims]
        runs = [int(claims.task[claim]), *jobs[mover].runs]
        if draw(st.sampled_from([False, False, True])):
            named.append((claim, mover, draw(st.sampled_from(runs))))
        if draw(st.sampled_from([False] * 9 + [True])):
            named.append((claim, draw(JOB_IDS), draw(TASKS)))
    return Evictions(
        claim=np.array([claim for claim, _, _ in named], dtype=np.intp),
        job=integers([job for _, job, _ in named]),
        task=np.array([task for _, _, task in named], dtype=np.intp),
    )


@st.composite
def cells(draw: st.DrawFn) -> tuple[MachineRows, dict[int, KnownJob]]:
    """Draw one to four machines and the jobs that run on them."""
    ids = sorted(draw(st.sets(MACHINE_IDS, min_size=1, max_size=4)))
    jobs = draw(known_jobs(ids))
    return draw(machine_rows(ids, jobs)), jobs


@st.composite
def cases(draw: st.DrawFn, rule: ConflictRule | None = None, *, exchange: bool = True) -> Case:
    """Draw a crowded cell, a transaction of one to three jobs, and its commit context.

    Without `exchange` there are no evictions and no alternates.
    """
    rows, jobs = draw(cells())
    planned = draw(st.lists(JOB_IDS, unique=True, min_size=1, max_size=3))
    for job in planned:
        jobs.setdefault(job, draw(unplaced_jobs()))
    claims_by_job: list[JobAndClaims] = []
    for job in planned:
        claims = draw(claims_on(rows, jobs, job, exchange=exchange))
        minimums = [0, 0, len(claims), draw(st.integers(0, len(claims) + 1))]
        claims_by_job.append((job, UUID(int=job), draw(st.sampled_from(minimums)), claims))
    transaction = Transaction.of(
        claims_by_job,
        id=UUID(int=draw(st.integers(0, 2**64))),
        scheduler="batch",
        replica="0",
        rule=rule or draw(st.sampled_from(ConflictRule)),
    )
    lost = [job for job in planned if draw(st.sampled_from([False] * 7 + [True]))]
    quotas = draw(quotas_around(jobs))
    context = a_context(transaction, lost=lost, jobs=jobs, quotas=quotas)
    return Case(rows, transaction, context, jobs, quotas)


@st.composite
def single_claims(draw: st.DrawFn) -> Case:
    """Draw a case with one claim of one job, for comparing the two conflict rules."""
    rows, jobs = draw(cells())
    jobs[1] = KnownJob(precedence=draw(PRECEDENCES))
    claims = draw(claims_on(rows, jobs, 1, exchange=True).filter(len))
    transaction = Transaction.of(
        [(1, UUID(int=1), draw(st.integers(0, 1)), first_claims(claims, 1))],
        id=UUID(int=1),
        scheduler="batch",
        replica="0",
        rule=ConflictRule.SEQUENCE,
    )
    return Case(rows, transaction, a_context(transaction, jobs=jobs), jobs)


def first_claims(claims: Claims, number: int) -> Claims:
    """Return the first so many claims, with their alternates and evictions."""
    others, evictions = claims.alternates, claims.evictions
    near, here = others.claim < number, evictions.claim < number
    return Claims(
        claims.task[:number],
        claims.machine[:number],
        claims.seen[:number],
        claims.shape[:number],
        claims.shapes,
        Alternates(others.claim[near], others.machine[near], others.seen[near], others.shape[near]),
        Evictions(evictions.claim[here], evictions.job[here], evictions.task[here]),
    )
