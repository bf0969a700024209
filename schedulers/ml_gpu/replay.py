"""A trace of training jobs in rounds, in virtual time, by Gavel's own rules.

Goal     Compare policies by what their jobs come to: completion times, makespan, utilisation.
Promise  The rules of the release, so that its figures can be met digit by digit; its defects are
         switches. One seed gives one result.
Source   Gavel (OSDI 2020), section 5 and the simulator of its release: docs/papers/gavel.md.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from omega.errors import InvariantBroken
from omega.model.arrays import Counts, Ids, Index, Score, integers, positions
from schedulers.ml_gpu.policies.named import Policy, solver_of
from schedulers.ml_gpu.problem import NOBODY, NOWHERE, Allocation, Problem, Shares
from schedulers.ml_gpu.rounds import Ledger, LeftoverPolicy, fastest_first, select
from schedulers.ml_gpu.throughputs import Rates, Throughputs


@dataclass(frozen=True, eq=False)
class Trace:
    """Training jobs in order of arrival."""

    row: Index
    """Of the table of rates."""
    steps: Counts
    weight: Score
    arrival_s: Score

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, kw_only=True)
class Rules:
    """How rounds go."""

    round_s: float = 360.0
    reset_s: float = 1_920.0
    """Least time between two allocations."""
    restart_s: float = 0.0
    """What a job loses when it begins a round on other GPUs than it had."""
    keeps_gpus: bool = True
    """Whether a job that goes on keeps its GPUs if it can: Gavel's lease extension."""
    shuffles_types: bool | None = None
    """Whether types are served in random order; None: for policies that count GPUs, as there."""
    leftovers: LeftoverPolicy = LeftoverPolicy.AS_MET
    """When jobs without a share of a type may have what is left over of it."""
    reserves_idle: bool = True
    """Whether a job picked before it has a share holds its GPUs and does not run, as there."""


@dataclass(eq=False)
class Tally:
    """What happened, counted."""

    rounds: int = 0
    dispatches: int = 0
    """Units that began a round."""
    solves: int = 0
    could_go_on: int = 0
    """Units of a round that were still there in the next ..."""
    extended: int = 0
    """... and kept exactly their GPUs: Gavel's lease extensions ..."""
    preempted: int = 0
    """... or had to make way, or to move."""

    def of_round(
        self,
        before: Mapping["Unit", tuple[int, Index]],
        now: Mapping["Unit", tuple[int, Index]],
        active: Ids,
    ) -> None:
        """Count one round."""
        self.rounds += 1
        self.dispatches += len(now)
        there = set(active.tolist())
        stays = [unit for unit in before if there & set(unit)]
        kept = sum(unit in now and _same(before[unit], now[unit]) for unit in stays)
        self.could_go_on += len(stays)
        self.extended += kept
        self.preempted += len(stays) - kept


@dataclass(frozen=True, eq=False)
class Replayed:
    """What came of it."""

    completion_s: Score
    """Of each job, from its arrival to its end."""
    makespan_s: float
    utilisation: float
    """Mean over all GPUs of the time charged to jobs, over the makespan."""
    tally: Tally


Unit = tuple[int, int]
"""A job and NOBODY, or two jobs."""
ROUNDING = 1e-9
"""Share that a job is left with when its pairs have all of it."""
STUCK_AFTER = 3
"""Rounds in which nothing runs and nobody is still to come."""


@dataclass(eq=False, kw_only=True)
class Replay:
    """One run; call `run`."""

    trace: Trace
    table: Throughputs
    gpus: Counts
    """GPUs of each of the table's types."""
    policy: Policy
    rng: np.random.Generator
    rules: Rules = field(default_factory=Rules)
    advance: Callable[[int], None] = lambda _: None
    """Told how many more jobs have ended."""

    def __post_init__(self) -> None:
        jobs = len(self.trace)
        self._jobs = _Progress(self.trace)
        self._ledger = Ledger.empty(len(self.gpus), self.rules.round_s / 2)
        self._active = integers()
        self._ran: dict[Unit, tuple[int, Index]] = {}
        """Type and GPUs of each unit in the last round."""
        self._partner = np.full(jobs, NOBODY)
        """Job that was paired with each job last, or NOBODY."""
        self._busy_s = [np.zeros(count) for count in self.gpus]
        self._tally = Tally()
        self._solve = solver_of(self.policy)
        self._order = fastest_first(self.table.rates)
        shuffles = self.rules.shuffles_types
        self._shuffles = self.policy.is_agnostic if shuffles is None else shuffles

    def run(self) -> Replayed:
        """Play the trace to its end."""
        now = last_reset_s = 0.0
        coming, idle, is_due = 0, 0, False
        arrivals = self.trace.arrival_s
        while coming < len(self.trace) or len(self._active):
            ended_s = now
            if not self._ran and coming < len(self.trace):
                now = max(now, float(arrivals[coming]))
            elif not self._ran:
                last_reset_s = 0.0  # nothing runs and nobody is to come: do not wait
            came = int(np.searchsorted(arrivals, now, side="right"))
            if came > coming:
                self._join(np.arange(coming, came))
                coming, is_due = came, True
            if is_due and (now - last_reset_s >= self.rules.reset_s or last_reset_s == 0):
                self._reset(now, now - last_reset_s)
                last_reset_s, is_due = now, False
            gone, now = self._round(now, ended_s)
            is_due |= gone > 0
            idle = 0 if self._ran or coming < len(self.trace) else idle + 1
            if idle > STUCK_AFTER:
                raise InvariantBroken(f"no round gives GPUs to job {self._active[0]}")
            self.advance(gone)
        return self._replayed()

    def _join(self, new: Ids) -> None:
        self._active = np.append(self._active, new)
        self._ledger = self._ledger.joined_by(new)

    def _reset(self, now: float, elapsed_s: float) -> None:
        """Ask the policy for shares, and settle what the last ones have come to."""
        jobs = self._active
        if not len(jobs):
            return
        past_s = self._jobs.isolated_s(jobs)
        problem = Problem(
            types=self.table.types,
            gpus=self.gpus,
            table=self.table.rates,
            gang=self.table.gangs,
            kind=self.trace.row[jobs],
            weight=self.trace.weight[jobs],
            total_steps=self.trace.steps[jobs].astype(np.float64),
            remaining_steps=self._jobs.left[jobs].astype(np.float64),
            age_s=now - self.trace.arrival_s[jobs],
            isolated_s=past_s,
            pairs=self.table.pairs if self.policy.shares_gpus else None,
            runs_on=self._given(),
            partner=self._partners(),
        )
        self._jobs.compare_with(jobs, problem.isolated, past_s)
        found = self._solve(problem, self.rng)
        self._tally.solves += found.solves
        if found.together is not None:
            self._partner[jobs] = NOBODY
            one, other = jobs[found.together.first], jobs[found.together.second]
            self._partner[one], self._partner[other] = other, one
        first, second, share = units(jobs, found)
        self._ledger = self._ledger.reset(first, second, share, elapsed_s)

    def _partners(self) -> Index:
        """Return the place of each job's partner, or NOBODY if it has none that is still there."""
        at = positions(self._active, self._partner[self._active])
        return np.where(at >= 0, at, NOBODY)

    def _given(self) -> Index:
        """Return the type that has all of each job's time, which some policies never change."""
        on = np.full(len(self.trace), NOWHERE, np.intp)
        unit, type_ = np.nonzero(self._ledger.share >= 1)
        on[self._ledger.first[unit]] = type_
        return on[self._active]

    def _round(self, now: float, ended_s: float) -> tuple[int, float]:
        """Play one round; return how many jobs ended in it, and when it was over."""
        ledger = self._ledger
        order = self.rng.permutation(self._order) if self._shuffles else self._order
        rate = self._rates(ledger)
        size = self.table.gangs[self.trace.row[ledger.first]]
        leftovers = self.rules.leftovers if self.policy.uses_leftovers else LeftoverPolicy.NEVER
        on = select(ledger, rate, size, self.gpus, order, leftovers)
        if self.rules.reserves_idle:
            on[~ledger.is_promised] = NOWHERE
        running = np.flatnonzero(on != NOWHERE)
        has = self._place(running, on, size)
        self._tally.of_round(self._ran, has, self._active)
        finish_s = np.full(len(running), now)
        for at, unit in enumerate(_keys(ledger, running)):
            type_, gpus = has[unit]
            keeps = unit in self._ran and _same(self._ran[unit], has[unit])
            lost_s = 0.0 if keeps else self.rules.restart_s
            finish_s[at] = now + self._work(unit, type_, lost_s, now)
            self._busy_s[type_][gpus] += finish_s[at] - ended_s
        self._ran = has
        self._ledger = ledger.charged(running, on[running], finish_s - ended_s)
        gone = self._active[self._jobs.left[self._active] == 0]
        self._ledger = self._ledger.without(gone)
        self._active = np.setdiff1d(self._active, gone)
        return len(gone), float(finish_s.max()) if len(running) else now

    def _rates(self, ledger: Ledger) -> Rates:
        """Return the rates of each unit's first job; a pair's, beside the other."""
        row = self.trace.row[ledger.first]
        rate = self.table.rates[row]
        pair = np.flatnonzero(ledger.second != NOBODY)
        other = self.trace.row[ledger.second[pair]]
        rate[pair] = self.table.pairs.of[row[pair], other]
        return np.asarray(rate)

    def _work(self, unit: Unit, type_: int, lost_s: float, now: float) -> float:
        """Let a unit's jobs make their steps; return the seconds until the last of them is done."""
        row = self.trace.row
        members = [unit] if unit[1] == NOBODY else [unit, unit[::-1]]
        longest = 0.0
        for job, other in members:
            rate = (
                self.table.rates[row[job], type_]
                if other == NOBODY
                else self.table.pairs.of[row[job], row[other], type_]
            )
            longest = max(longest, self._jobs.work(job, float(rate), self.rules, lost_s, now))
        return longest

    def _place(self, running: Index, on: Index, size: Counts) -> dict[Unit, tuple[int, Index]]:
        """Give each unit its GPUs: larger gangs first, and those first that can keep theirs."""
        free = [np.ones(count, np.bool_) for count in self.gpus]
        has: dict[Unit, tuple[int, Index]] = {}
        keys = dict(zip(running.tolist(), _keys(self._ledger, running), strict=True))
        for type_ in range(len(self.gpus)):
            mine = [unit for unit in running.tolist() if on[unit] == type_]
            for gang in sorted({int(size[unit]) for unit in mine}, reverse=True):
                same = [keys[unit] for unit in mine if size[unit] == gang]
                for unit in same if self.rules.keeps_gpus else ():
                    there, gpus = self._ran.get(unit, (NOWHERE, np.zeros(0, np.intp)))
                    if there == type_ and free[type_][gpus].all():
                        has[unit] = type_, gpus
                        free[type_][gpus] = False
                for unit in same:
                    if unit not in has:
                        gpus = np.flatnonzero(free[type_])[:gang]
                        has[unit] = type_, gpus
                        free[type_][gpus] = False
        return {unit: has[unit] for unit in keys.values()}

    def _replayed(self) -> Replayed:
        makespan_s = float(np.nanmax(self._jobs.end_s))
        busy_s = np.concatenate(self._busy_s)
        return Replayed(
            completion_s=self._jobs.end_s - self.trace.arrival_s,
            makespan_s=makespan_s,
            utilisation=float(busy_s.mean() / makespan_s),
            tally=self._tally,
        )


class _Progress:
    """How far each job is, and what that would have taken on a fair share of its own."""

    def __init__(self, trace: Trace) -> None:
        self.left = trace.steps.copy()
        self.end_s = np.full(len(trace), np.nan)
        self._past_s = np.zeros(len(trace))
        self._left_then = trace.steps.copy()
        self._rate_then = np.ones(len(trace))

    def isolated_s(self, jobs: Ids) -> Score:
        """Return the seconds that the jobs' steps would have taken at the rates told so far."""
        done = self._left_then[jobs] - self.left[jobs]
        return np.asarray(self._past_s[jobs] + done / self._rate_then[jobs])

    def compare_with(self, jobs: Ids, rate: Score, past_s: Score) -> None:
        """Count the steps from now on at these rates."""
        self._past_s[jobs] = past_s
        self._left_then[jobs] = self.left[jobs]
        self._rate_then[jobs] = rate

    def work(self, job: int, rate: float, rules: Rules, lost_s: float, now: float) -> float:
        """Make as many whole steps as a round has time for; return when they are made."""
        can = max(int((rules.round_s - lost_s) * rate), 1)
        steps = min(can, int(self.left[job]))
        self.left[job] -= steps
        took_s = lost_s + steps / rate
        if self.left[job] == 0:
            self.end_s[job] = now + took_s
        return took_s


def units(jobs: Ids, found: Allocation) -> tuple[Ids, Ids, Shares]:
    """Return the units of an allocation: each job by itself, and each pair that has a share."""
    share = found.share.copy()
    nobody = np.full(len(jobs), NOBODY)
    if found.together is None:
        return jobs, nobody, share
    pairs = found.together
    for one in (pairs.first, pairs.second):
        np.subtract.at(share, (one, pairs.type), pairs.share)
    pair, row = np.unique(
        np.stack([pairs.first, pairs.second], axis=1), axis=0, return_inverse=True
    )
    shared = np.zeros((len(pair), share.shape[1]))
    np.add.at(shared, (row.ravel(), pairs.type), pairs.share)
    first, second = jobs[pair[:, 0]], jobs[pair[:, 1]]
    alone = np.where(share > ROUNDING, share, 0.0)
    return np.append(jobs, first), np.append(nobody, second), np.vstack([alone, shared])


def _keys(ledger: Ledger, rows: Index) -> list[Unit]:
    return list(zip(ledger.first[rows].tolist(), ledger.second[rows].tolist(), strict=True))


def _same(one: tuple[int, Index], other: tuple[int, Index]) -> bool:
    return one[0] == other[0] and set(one[1].tolist()) == set(other[1].tolist())
