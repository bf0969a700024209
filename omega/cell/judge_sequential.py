"""The commit rule, claim by claim: for claims that evict, need alternates, or may exceed quotas.

Goal     Judge claims that evict by the same rule as claims that do not.
Promise  Nothing is ever rolled back: each job is judged on a copy of what is left, and the copy is
         either kept or discarded. All evictions of a claim are checked before any is applied.
Source   docs/decisions/0015-evictions-alternates-machines.md, 0016-quotas.md.
"""

from dataclasses import dataclass

import numpy as np

from omega.cell.commit_context import CommitContext, Victims, machine_verdicts
from omega.cell.quota_balances import QuotaBalances
from omega.model.arrays import Amounts, Ids, Index, Mask, Verdicts
from omega.model.claims import Claims, JobSlice, Transaction
from omega.model.machines import MachineRows
from omega.model.outcomes import Outcome, Verdict


@dataclass(frozen=True, eq=False)
class _Options:
    """All machines on which claims may be granted: of each claim its own, then its alternates."""

    first: Index
    """(claims + 1,): where each claim's options begin; the last entry is the number of options."""
    at: Index
    """Row of each option's machine; -1 for an unknown machine."""
    machine: Ids
    demand: Amounts
    machine_verdict: Verdicts

    @classmethod
    def of(cls, rows: MachineRows, transaction: Transaction) -> "_Options":
        claims, others = transaction.claims, transaction.claims.alternates
        claim = np.concatenate([np.arange(len(claims)), others.claim])
        order = np.argsort(claim, kind="stable")
        machine = claims.machines[order]
        at = rows.where(machine)
        seen = np.concatenate([claims.seen, others.seen])[order]
        shape = np.concatenate([claims.shape, others.shape])[order]
        return cls(
            first=np.searchsorted(claim[order], np.arange(len(claims) + 1)),
            at=at,
            machine=machine,
            demand=claims.shapes[shape],
            machine_verdict=machine_verdicts(rows, transaction.rule, at, seen),
        )


@dataclass(eq=False)
class _Left:
    """What earlier claims have left: room on machines, victims not yet evicted, quota balances."""

    free: Amounts
    live: Mask
    """For each task of `Victims`, whether it has not been evicted."""
    balances: QuotaBalances
    evicted: tuple[int, ...] = ()
    """Positions in `Victims` of evicted tasks, in the order of their eviction."""

    def copy(self) -> "_Left":
        return _Left(self.free.copy(), self.live.copy(), self.balances, self.evicted)

    def evict(self, these: Index, at: Index, amounts: Amounts) -> None:
        np.add.at(self.free, at[these], amounts[these])
        self.live[these] = False
        self.evicted += tuple(these.tolist())


class _SequentialJudge:
    """The state of one transaction while its claims are judged."""

    def __init__(self, rows: MachineRows, transaction: Transaction, context: CommitContext) -> None:
        self._claims = transaction.claims
        self._context = context
        self._victims = context.victims
        self._options = _Options.of(rows, transaction)
        self._at = rows.where(context.victims.machine)
        """Row of the machine on which each task of `Victims` runs."""
        self._position = _positions(context.victims)
        self._named = _named(transaction.claims)
        self._granted_to: set[int] = set()
        """The jobs judged so far that were granted a claim."""
        everyone = np.ones(len(context.victims), dtype=np.bool_)
        self.left = _Left(rows.free, everyone, context.quota_balances)
        self.verdicts = np.zeros(len(transaction.claims), dtype=np.int8)
        self.machine = transaction.claims.machine.copy()

    def judge_job(self, number: int, part: JobSlice) -> None:
        """Judge one job's claims in order, against what earlier jobs left."""
        left = self.left.copy()
        granted: set[int] = set()
        for claim in range(part.claims.start, part.claims.stop):
            task = int(self._claims.task[claim])
            self.verdicts[claim] = self._weigh(claim, number, part.job, granted, left)
            if self.verdicts[claim] == Verdict.ACCEPTED:
                granted.add(task)

        placed = int(self._context.placed[number]) - self._lost(part.job, left)
        if len(granted) >= max(part.grants_min, int(self._context.minimum[number]) - placed):
            self.left = left
            if granted:
                self._granted_to.add(part.job)
        else:
            mine = self.verdicts[part.claims]
            mine[mine == Verdict.ACCEPTED] = Verdict.GANG_BROKEN
            self.machine[part.claims] = self._claims.machine[part.claims]

    def _weigh(self, claim: int, number: int, job: int, granted: set[int], left: _Left) -> Verdict:
        """Judge one claim on its own machine, then on its alternates; if granted, update `left`.

        `number` is the position of the claim's job in the transaction, and `granted` has the tasks
        of that job that earlier claims were granted for.
        """
        task = int(self._claims.task[claim])
        if not self._context.lease_held[number]:
            return Verdict.LEASE_LOST
        named = self._named.get(claim, ())
        is_placed = not self._is_unplaced(claim, job, task, left)
        if task in granted or (is_placed and (job, task) not in named):
            return Verdict.ALREADY_PLACED

        first, end = self._options.first[claim : claim + 2]
        claimant = job, number
        verdict = self._take(first, left, named, claimant)
        if verdict is Verdict.ACCEPTED or is_placed:
            return verdict  # alternates evict nothing, so a placed task cannot move to one
        for option in range(first + 1, end):
            if self._take(option, left, (), claimant) is Verdict.ACCEPTED:
                self.machine[claim] = self._options.machine[option]
                return Verdict.ACCEPTED
        return verdict

    def _is_unplaced(self, claim: int, job: int, task: int, left: _Left) -> bool:
        running = self._position.get((job, task))
        evicted = running is not None and not left.live[running]
        return evicted or bool(self._context.unplaced[claim])

    def _take(
        self,
        option: int,
        left: _Left,
        named: tuple[tuple[int, int], ...],
        claimant: tuple[int, int],
    ) -> Verdict:
        """Judge a claim on one machine; if granted, update `left` with what it takes and evicts.

        `named` has job and task of each eviction; `claimant` is the id of the claim's job and that
        job's position in the transaction.
        """
        job, _ = claimant
        machine_verdict = Verdict(int(self._options.machine_verdict[option]))
        if machine_verdict is not Verdict.ACCEPTED:
            return machine_verdict
        at = int(self._options.at[option])
        these = self._evicted_by(named, at, claimant, left)
        if these is None:
            return Verdict.PRECEDENCE
        here = these[self._at[these] == at]
        victims, demand = self._victims, self._options.demand[option]
        if (demand > left.free[at] + victims.amounts[here].sum(axis=0)).any():
            return Verdict.OVERCOMMIT
        balances = left.balances.after(job, demand, victims.job[these], victims.amounts[these])
        if balances is None:
            return Verdict.QUOTA
        left.balances = balances
        left.evict(these, self._at, victims.amounts)
        left.free[at] -= demand
        return Verdict.ACCEPTED

    def _evicted_by(
        self, named: tuple[tuple[int, int], ...], at: int, claimant: tuple[int, int], left: _Left
    ) -> Index | None:
        """Return the positions in `Victims` of all that a claim evicts; None if it may not.

        The tasks that the claim names come first, then the other tasks of gangs that break by that.
        """
        claimant_job, number = claimant
        these: list[int] = []
        for job, task in named:
            victim = self._position.get((job, task))
            if victim is None or victim in these or not left.live[victim]:
                return None
            is_permitted_place = self._at[victim] == at or job == claimant_job
            if not is_permitted_place or not self._may_evict(job, number):
                return None
            these.append(victim)
        evicted = np.array(these, dtype=np.intp)
        for job in dict.fromkeys(job for job, _ in named):
            evicted = np.concatenate([evicted, self._rest_of_broken_gang(job, evicted, left)])
        return evicted

    def _may_evict(self, job: int, number: int) -> bool:
        """Return whether claims of the transaction's job `number` may evict tasks of `job`."""
        at = int(np.searchsorted(self._victims.distinct_job, job))
        if self._victims.minimum[at] > 0 and job in self._granted_to:
            return False  # its gang may have its minimum only by the grants of this transaction
        precedence = self._context.precedence[number]
        yields = self._victims.yields_to[at] <= precedence
        return bool(yields or self._victims.own[number, at])

    def _rest_of_broken_gang(self, job: int, these: Index, left: _Left) -> Index:
        """Return the other tasks of a job if evicting these breaks its gang; none otherwise."""
        at = int(np.searchsorted(self._victims.distinct_job, job))
        others = left.live & (self._victims.job == job)
        others[these] = False
        lost = self._lost(job, left) + int(np.count_nonzero(self._victims.job[these] == job))
        if self._victims.placed[at] - lost >= self._victims.minimum[at]:
            others[:] = False
        return np.flatnonzero(others)

    def _lost(self, job: int, left: _Left) -> int:
        """Return how many tasks of a job this transaction has evicted so far."""
        return int(np.count_nonzero((self._victims.job == job) & ~left.live))


def judge_sequentially(
    rows: MachineRows, transaction: Transaction, context: CommitContext
) -> Outcome:
    """Judge as `omega.cell.judge.judge` does, claim by claim, with evictions and alternates."""
    judging = _SequentialJudge(rows, transaction, context)
    for number, part in enumerate(transaction.jobs):
        judging.judge_job(number, part)

    victims, evicted = context.victims, np.array(judging.left.evicted, dtype=np.intp)
    granted = np.isin(rows.id, judging.machine[judging.verdicts == Verdict.ACCEPTED])
    lost = np.isin(rows.id, victims.machine[evicted])
    after = rows.after_commit(granted, granted | lost, rows.capacity - judging.left.free)
    named = np.isin(rows.id, transaction.claims.machines)
    return Outcome(
        verdicts=judging.verdicts,
        machine=judging.machine,
        evicted_job=victims.job[evicted],
        evicted_task=victims.task[evicted].astype(np.intp),
        fresh=after.take(np.flatnonzero(named | lost)),
    )


def _positions(victims: Victims) -> dict[tuple[int, int], int]:
    """Return the position in `Victims` of each running task, by job and task."""
    names = zip(victims.job.tolist(), victims.task.tolist(), strict=True)
    return {name: at for at, name in enumerate(names)}


def _named(claims: Claims) -> dict[int, tuple[tuple[int, int], ...]]:
    """Return, for each claim that evicts, the (job, task) pairs that it names, in order."""
    named: dict[int, tuple[tuple[int, int], ...]] = {}
    evictions = claims.evictions
    for claim, job, task in zip(
        evictions.claim.tolist(), evictions.job.tolist(), evictions.task.tolist(), strict=True
    ):
        named[claim] = (*named.get(claim, ()), (job, task))
    return named
