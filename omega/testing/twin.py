"""The slow twin: the commit rule claim by claim, as plainly as it can be written.

Goal     A reference that a reader can check against the rule, and tests compare the judge with.
Promise  There is no array arithmetic and no shortcut: one loop over jobs, one over claims,
         dictionaries.
Source   docs/decisions/0003-the-commit-rule.md, 0015-evictions-alternates-machines.md,
         0016-quotas.md.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field

import numpy as np

from omega.cell.commit_context import CommitContext
from omega.model.arrays import Ids, Index, integers
from omega.model.claims import ConflictRule, Transaction
from omega.model.machines import MachineRows, MachineState
from omega.model.outcomes import Outcome, Verdict
from omega.testing.plain_quotas import PlainQuotas, plain_quotas

TaskName = tuple[int, int]
"""A job id and the index of a task."""


@dataclass
class PlainMachine:
    """One machine, as lists of integers."""

    capacity: list[int]
    used: list[int]
    sequence: int
    revision: int
    state: int

    def has_room_for(self, asked: list[int]) -> bool:
        """Return whether these amounts fit into the machine, in every kind."""
        return all(
            used + more <= capacity
            for used, more, capacity in zip(self.used, asked, self.capacity, strict=True)
        )

    def take(self, asked: list[int]) -> None:
        """Add amounts to what is used."""
        self.used = [used + more for used, more in zip(self.used, asked, strict=True)]

    def give_back(self, asked: list[int]) -> None:
        """Subtract amounts from what is used."""
        self.used = [used - less for used, less in zip(self.used, asked, strict=True)]


@dataclass(frozen=True)
class PlainOption:
    """A machine on which a claim may be granted: its own, or an alternate."""

    machine: int
    seen: int
    asked: list[int]
    evicts: list[TaskName]


@dataclass(frozen=True)
class PlainClaim:
    """One claim, and what the store knows of its job and its task."""

    job: int
    task: int
    precedence: int
    lease_held: bool
    unplaced: bool
    options: list[PlainOption]
    """The claim's own machine comes first."""


@dataclass(frozen=True)
class PlainVictim:
    """A job that may lose tasks."""

    yields_to: int
    minimum: int
    placed: int
    own_of: frozenset[int]
    """Jobs of its scheduler in the transaction, if the transaction holds its lease."""


@dataclass
class PlainCommit:
    """A cell during a commit. It is copied before each job's claims, in case its gang breaks."""

    rule: ConflictRule
    machines: dict[int, PlainMachine]
    victims: dict[int, PlainVictim]
    live: dict[TaskName, tuple[int, list[int]]]
    """Machine and amounts of tasks that ran when the commit began and were not evicted since."""
    quotas: PlainQuotas
    evicted: list[TaskName] = field(default_factory=list)
    """Evicted tasks in order of eviction."""
    left: set[int] = field(default_factory=set)
    """Machines from which tasks were evicted."""
    granted_to: set[int] = field(default_factory=set)
    """Jobs with an accepted claim."""
    granted: set[TaskName] = field(default_factory=set)

    def answer(self, claim: PlainClaim) -> tuple[Verdict, int]:
        """Judge a claim, and apply it if it is accepted; return its verdict and machine."""
        own = claim.options[0].machine
        name = (claim.job, claim.task)
        if not claim.lease_held:
            return Verdict.LEASE_LOST, own
        options = claim.options
        if name in self.granted:
            return Verdict.ALREADY_PLACED, own
        if not (claim.unplaced or name in self.evicted):
            options = options[:1]  # it runs: it can only move, with an eviction
            if name not in options[0].evicts:
                return Verdict.ALREADY_PLACED, own
        refusals = []
        for option in options:
            verdict = self._try(option, claim)
            if verdict is Verdict.ACCEPTED:
                self.granted.add(name)
                return Verdict.ACCEPTED, option.machine
            refusals.append(verdict)
        return refusals[0], own

    def _try(self, option: PlainOption, claim: PlainClaim) -> Verdict:
        """Judge a claim on one machine, first reason first, and apply it if it is accepted."""
        machine_verdict = self._machine_verdict(option)
        if machine_verdict is not Verdict.ACCEPTED:
            return machine_verdict

        trial = deepcopy(self)
        for name in option.evicts:
            if not trial.may_evict(name, option.machine, claim):
                return Verdict.PRECEDENCE
            trial.evict(name)
        for job in dict.fromkeys(job for job, _ in option.evicts):
            trial.fall_if_broken(job)
        if not trial.machines[option.machine].has_room_for(option.asked):
            return Verdict.OVERCOMMIT
        trial.quotas.take(claim.job, option.asked)
        if self.quotas.would_be_overdrawn(claim.job, trial.quotas):
            return Verdict.QUOTA
        trial.machines[option.machine].take(option.asked)
        self.machines, self.live = trial.machines, trial.live
        self.evicted, self.left, self.quotas = trial.evicted, trial.left, trial.quotas
        return Verdict.ACCEPTED

    def _machine_verdict(self, option: PlainOption) -> Verdict:
        """Return the verdict that the machine's state alone gives a claim."""
        machine = self.machines.get(option.machine)
        if machine is None or machine.state == MachineState.GONE:
            return Verdict.GONE
        if machine.state != MachineState.OPEN:
            return Verdict.CLOSED
        if self.rule is ConflictRule.SEQUENCE and option.seen != machine.sequence:
            return Verdict.STALE
        return Verdict.ACCEPTED

    def may_evict(self, name: TaskName, machine: int, claim: PlainClaim) -> bool:
        """Return whether a claim on that machine may evict a task."""
        if name not in self.live:
            return False
        if self.live[name][0] != machine and name[0] != claim.job:
            return False
        victim = self.victims[name[0]]
        if victim.minimum > 0 and name[0] in self.granted_to:
            return False  # this could break a gang that this transaction has granted tasks to
        return victim.yields_to <= claim.precedence or claim.job in victim.own_of

    def evict(self, name: TaskName) -> None:
        """Evict a task from its machine."""
        machine, amounts = self.live.pop(name)
        self.machines[machine].give_back(amounts)
        self.quotas.give_back(name[0], amounts)
        self.evicted.append(name)
        self.left.add(machine)

    def fall_if_broken(self, job: int) -> None:
        """Evict all running tasks of a job if evictions have brought it below its minimum."""
        if self.lost(job) and self.victims[job].placed - self.lost(job) < self.victims[job].minimum:
            for name in sorted(self.live):
                if name[0] == job:
                    self.evict(name)

    def lost(self, job: int) -> int:
        """Return how many tasks of a job were evicted."""
        return sum(name[0] == job for name in self.evicted)


def judge_slowly(rows: MachineRows, transaction: Transaction, context: CommitContext) -> Outcome:
    """Return what `omega.cell.judge.judge` returns, computed claim by claim."""
    claims = plain_claims(transaction, context)
    victims, live = plain_victims(transaction, context)
    quotas = plain_quotas(context)
    cell = PlainCommit(transaction.rule, plain_machines(rows), victims, live, quotas)
    answers: list[tuple[Verdict, int]] = []

    for number, part in enumerate(transaction.jobs):
        before = deepcopy(cell)
        job_claims = [cell.answer(claim) for claim in claims[part.claims]]
        granted = sum(verdict is Verdict.ACCEPTED for verdict, _ in job_claims)
        placed = int(context.placed[number]) - cell.lost(part.job)
        if granted < max(part.grants_min, int(context.minimum[number]) - placed):
            cell = before
            job_claims = [
                (Verdict.GANG_BROKEN, claim.options[0].machine)
                if verdict is Verdict.ACCEPTED
                else (verdict, machine)
                for claim, (verdict, machine) in zip(claims[part.claims], job_claims, strict=True)
            ]
        elif granted:
            cell.granted_to.add(part.job)
        answers += job_claims

    granted_on = {machine for verdict, machine in answers if verdict is Verdict.ACCEPTED}
    for machine in granted_on:
        cell.machines[machine].sequence += 1
    for machine in granted_on | cell.left:
        cell.machines[machine].revision += 1
    named = {option.machine for claim in claims for option in claim.options}
    fresh = {at: row for at, row in cell.machines.items() if at in named | cell.left}
    return Outcome(
        verdicts=np.array([verdict for verdict, _ in answers], dtype=np.int8),
        machine=integers([machine for _, machine in answers]),
        evicted_job=integers([job for job, _ in cell.evicted]),
        evicted_task=np.array([task for _, task in cell.evicted], dtype=np.intp),
        fresh=machine_rows(fresh),
    )


def plain_claims(transaction: Transaction, context: CommitContext) -> list[PlainClaim]:
    """Return the claims of a transaction as a list, in order."""
    claims = transaction.claims
    return [
        PlainClaim(
            job=part.job,
            task=int(claims.task[at]),
            precedence=int(context.precedence[number]),
            lease_held=bool(context.lease_held[number]),
            unplaced=bool(context.unplaced[at]),
            options=_options(transaction, at),
        )
        for number, part in enumerate(transaction.jobs)
        for at in range(part.claims.start, part.claims.stop)
    ]


def _options(transaction: Transaction, at: int) -> list[PlainOption]:
    claims, alternates = transaction.claims, transaction.claims.alternates
    evictions = claims.evictions
    evicts = [
        (int(job), int(task))
        for claim, job, task in zip(evictions.claim, evictions.job, evictions.task, strict=True)
        if claim == at
    ]
    asked = claims.shapes[claims.shape[at]].tolist()
    own = PlainOption(int(claims.machine[at]), int(claims.seen[at]), asked, evicts)
    others = [
        PlainOption(
            machine=int(alternates.machine[other]),
            seen=int(alternates.seen[other]),
            asked=claims.shapes[alternates.shape[other]].tolist(),
            evicts=[],
        )
        for other in range(len(alternates))
        if alternates.claim[other] == at
    ]
    return [own, *others]


def plain_victims(
    transaction: Transaction, context: CommitContext
) -> tuple[dict[int, PlainVictim], dict[TaskName, tuple[int, list[int]]]]:
    """Return the jobs that may lose tasks, and their running tasks."""
    victims = context.victims
    jobs = {
        int(job): PlainVictim(
            yields_to=int(victims.yields_to[at]),
            minimum=int(victims.minimum[at]),
            placed=int(victims.placed[at]),
            own_of=frozenset(
                part.job for part, own in zip(transaction.jobs, victims.own, strict=True) if own[at]
            ),
        )
        for at, job in enumerate(victims.distinct_job)
    }
    live = {
        (int(victims.job[at]), int(victims.task[at])): (
            int(victims.machine[at]),
            victims.amounts[at].tolist(),
        )
        for at in range(len(victims))
    }
    return jobs, live


def plain_machines(rows: MachineRows) -> dict[int, PlainMachine]:
    """Return the rows as a dictionary of machines by id."""
    return {
        int(rows.id[at]): PlainMachine(
            capacity=rows.capacity[at].tolist(),
            used=rows.used[at].tolist(),
            sequence=int(rows.sequence[at]),
            revision=int(rows.revision[at]),
            state=int(rows.state[at]),
        )
        for at in range(len(rows))
    }


def machine_rows(machines: dict[int, PlainMachine]) -> MachineRows:
    """Return machines by id as rows, ascending by id."""
    ids = sorted(machines)
    if not ids:
        return MachineRows.none()
    return MachineRows(
        id=integers(ids),
        capacity=integers([machines[machine].capacity for machine in ids]),
        used=integers([machines[machine].used for machine in ids]),
        sequence=integers([machines[machine].sequence for machine in ids]),
        revision=integers([machines[machine].revision for machine in ids]),
        state=np.array([machines[machine].state for machine in ids], dtype=np.int8),
    )


def differences(expected: Outcome, actual: Outcome) -> list[str]:
    """Return the differences between two outcomes of one transaction, as sentences."""
    found = [
        f"claim {claim}: {Verdict(int(want)).name} expected, {Verdict(int(got)).name} given"
        for claim, (want, got) in enumerate(zip(expected.verdicts, actual.verdicts, strict=True))
        if want != got
    ]
    found += [
        f"claim {claim}: on machine {want} expected, on {got} told"
        for claim, (want, got) in enumerate(zip(expected.machine, actual.machine, strict=True))
        if want != got
    ]
    if evicted_by(expected) != evicted_by(actual):
        found.append(f"evicted {evicted_by(expected)} expected, {evicted_by(actual)} told")
    return found + row_differences(expected.fresh, actual.fresh)


def evicted_by(outcome: Outcome) -> list[TaskName]:
    """Return job and task of every evicted task, in order of eviction."""
    return list(zip(outcome.evicted_job.tolist(), outcome.evicted_task.tolist(), strict=True))


def row_differences(expected: MachineRows, actual: MachineRows) -> list[str]:
    """Return the differences between two sets of rows, as sentences."""
    wanted, got = plain_machines(expected), plain_machines(actual)
    return [
        f"machine {machine}: {wanted.get(machine)} expected, {got.get(machine)} given"
        for machine in sorted(wanted.keys() | got.keys())
        if wanted.get(machine) != got.get(machine)
    ]


def jobs_and_tasks(names: Sequence[TaskName]) -> tuple[Ids, Index]:
    """Return names of tasks as the arrays that a store takes."""
    jobs, tasks = [job for job, _ in names], [task for _, task in names]
    return integers(jobs), np.array(tasks, dtype=np.intp)
