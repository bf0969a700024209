"""What a policy is asked, and what it answers: arrays over jobs and GPU types.

Goal     State once what all policies share: who wants what, how fast each job runs where, and the
         quantities that objectives are made of.
Promise  Frozen. Rates are steps/s of a job's whole gang; shares are fractions of wall-clock time.
         Identical jobs are told apart by their number alone, so policies may group them.
Source   Gavel (OSDI 2020), section 3.1; docs/papers/gavel.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from omega.model.arrays import Counts, Index, Score, freeze
from schedulers.ml_gpu.throughputs import PairRates, Rates

Shares = NDArray[np.float64]
"""Fractions of time: (jobs, types)."""

NOBODY = -1
"""In place of a job or group: there is no other."""
NOWHERE = -1
"""In place of a type: on none."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Problem:
    """Jobs that are to share GPUs of several types."""

    types: tuple[str, ...]
    gpus: Counts | Score
    """GPUs of each type; a fraction if others have some of its time."""
    table: Rates
    """Rates of each kind of job: (kinds, types); 0 where it cannot run, as on no GPUs at all."""
    gang: Counts
    """GPUs that each kind of job uses at once."""
    kind: Index
    """Row of the table for each job. Jobs are in order of arrival."""
    weight: Score
    total_steps: Score
    remaining_steps: Score
    age_s: Score
    """Seconds since each job came."""
    isolated_s: Score | None = None
    """Seconds that the steps done would have taken on a fair share of its own, job by job; None:
    the share that the job has now, all along."""
    entity: Index = field(default_factory=lambda: np.zeros(0, np.intp))
    """Entity of each job; none given, all jobs are of one."""
    entity_weight: Score = field(default_factory=lambda: np.ones(1))
    entity_is_fifo: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(1, np.bool_))
    """Entities that serve their own jobs in order of arrival, not fairly."""
    cost_per_hour: Score | None = None
    """Dollars for an hour of a GPU of each type."""
    due_s: Score | None = None
    """Seconds that each job has left until its deadline; infinite without one."""
    pairs: PairRates | None = None
    """Rates when two jobs share GPUs; None: they don't."""
    runs_on: Index | None = None
    """Type on which each job runs now, or NOWHERE; what policies that never move jobs keep."""
    partner: Index | None = None
    """Job that was paired with each job last, or NOBODY; what policies that keep pairs keep."""

    def __post_init__(self) -> None:
        assert self.table.shape == (len(self.gang), len(self.types))
        jobs = len(self.kind)
        per_job = (self.weight, self.total_steps, self.remaining_steps, self.age_s)
        assert all(len(column) == jobs for column in per_job)
        assert len(self.entity) in {0, jobs}
        assert len(self.entity_weight) == len(self.entity_is_fifo)
        # A rate on a type without GPUs is one that nobody can have: no bound may count on it.
        nowhere = self.gpus == 0
        if nowhere.any():
            object.__setattr__(self, "table", np.where(nowhere, 0.0, self.table))
            if self.pairs is not None:
                there = PairRates(np.where(nowhere, 0.0, self.pairs.of))
                object.__setattr__(self, "pairs", there)
        freeze(self.gpus, self.table, self.gang, self.kind, *per_job)

    @property
    def jobs(self) -> int:
        """How many jobs there are."""
        return len(self.kind)

    @cached_property
    def rate(self) -> Rates:
        """Steps/s of each job on each type."""
        return np.asarray(self.table[self.kind])

    @cached_property
    def size(self) -> Counts:
        """GPUs that each job uses at once."""
        return np.asarray(self.gang[self.kind])

    @cached_property
    def slot_rates(self) -> Score:
        """Rate of each kind in one slot of the average cluster; does not depend on who else is."""
        return np.asarray(self.table @ self.gpus / self.gpus.sum())

    @cached_property
    def proportional(self) -> Score:
        """Rate of each job in one slot of the average cluster: what rates are compared with."""
        return np.asarray(self.slot_rates[self.kind])

    @cached_property
    def isolated_share(self) -> Shares:
        """Share of each job if everybody had an equal part of every type."""
        even = self.gpus / (max(self.jobs, 1) * self.size[:, np.newaxis])
        return np.asarray(even / np.maximum(1.0, even.sum(axis=1, keepdims=True)))

    @cached_property
    def isolated(self) -> Score:
        """Steps/s of each job under that share."""
        return np.asarray((self.rate * self.isolated_share).sum(axis=1))

    @cached_property
    def fair_s(self) -> Score:
        """Seconds from its arrival to its end that each job would take by itself on that share."""
        past = self.isolated_s
        if past is None:
            past = (self.total_steps - self.remaining_steps) / self.isolated
        return np.asarray(past + self.remaining_steps / self.isolated)

    @cached_property
    def entity_of(self) -> Index:
        """Entity of each job."""
        return self.entity if len(self.entity) else np.zeros(self.jobs, np.intp)

    def only(self, jobs: Index, gpus: Counts | Score, *, runs_on: Index | None = None) -> "Problem":
        """Return the problem of some of the jobs, on so many GPUs of each type.

        It knows nothing of the others, nor of their kinds.
        """
        kinds, kind = np.unique(self.kind[jobs], return_inverse=True)
        pairs = None if self.pairs is None else PairRates(self.pairs.of[np.ix_(kinds, kinds)])
        return replace(
            self,
            gpus=gpus.copy(),
            table=self.table[kinds],
            gang=self.gang[kinds],
            kind=kind.ravel(),
            pairs=pairs,
            weight=self.weight[jobs],
            total_steps=self.total_steps[jobs],
            remaining_steps=self.remaining_steps[jobs],
            age_s=self.age_s[jobs],
            isolated_s=None if self.isolated_s is None else self.isolated_s[jobs],
            entity=self.entity[jobs] if len(self.entity) else self.entity,
            due_s=None if self.due_s is None else self.due_s[jobs],
            runs_on=runs_on,
            partner=None,
        )

    def agnostic(self) -> "Problem":
        """Return the problem as it looks to who counts GPUs and does not ask which."""
        return replace(self, table=np.ones_like(self.table), pairs=None)

    def as_on(self, column: int) -> "Problem":
        """Return the problem as it looks to who takes all types for this one.

        A kind that this one cannot run counts with its fastest.
        """
        one = np.where(self.table[:, column] > 0, self.table[:, column], self.table.max(axis=1))
        table = np.repeat(one[:, np.newaxis], len(self.types), axis=1)
        return replace(self, table=table, pairs=None)

    @cached_property
    def reference_type(self) -> int:
        """The type that is fastest over all: what agnostic policies take durations from."""
        ratio = self.table / np.maximum(self.table.max(axis=1, keepdims=True), 1e-300)
        return int(np.argmax(ratio.mean(axis=0)))


@dataclass(frozen=True, eq=False)
class Allocation:
    """What a policy answers: how much of its time each job is to spend on each type."""

    share: Shares
    """Time on each type, alone or with another: (jobs, types)."""
    progress: Rates
    """Steps/s of each job that come of its time on each type: (jobs, types)."""
    used: Score
    """GPUs of each type that are busy, on average; two jobs on one GPU keep one GPU busy."""
    solves: int = 1
    """Linear programs solved for it."""
    together: "JobPairs | None" = None
    """Who shares GPUs with whom; None where nobody does."""
    assignment_cost: float | None = None
    """Sum of finish times, where that is what a policy minimises."""

    @property
    def throughput(self) -> Score:
        """Steps/s of each job."""
        return np.asarray(self.progress.sum(axis=1))

    def spread_over(self, problem: Problem) -> "Allocation":
        """Return the allocation with each job's time on all types, as there are GPUs of each.

        For policies to whom all types are one: it is as good to them, and no more than there is of
        any type, as the GPUs used of all types together are not more than there are.
        """
        part = problem.gpus / problem.gpus.sum()
        share = self.share.sum(axis=1, keepdims=True) * part
        return Allocation.alone(problem, share, solves=self.solves)

    @classmethod
    def alone(cls, problem: Problem, share: Shares, *, solves: int = 1) -> "Allocation":
        """Return the allocation of jobs that do not share GPUs."""
        return cls(
            share=share,
            progress=problem.rate * share,
            used=problem.size @ share,
            solves=solves,
        )


@dataclass(frozen=True, eq=False)
class JobPairs:
    """Pairs of jobs on the same GPUs, and the fraction of time that each pair has on a type."""

    first: Index
    second: Index
    type: Index
    share: Score


def normalised(problem: Problem, throughput: Score) -> Score:
    """Return each job's rate over the one it has in a slot of the average cluster."""
    return np.asarray(throughput / problem.proportional)


def fair_value(problem: Problem) -> Rates:
    """Return what a step/s of each job on each type adds to the sum of all s_i norm_i."""
    value = problem.size / problem.proportional
    return np.repeat(value[:, np.newaxis], len(problem.types), axis=1)


def measures(problem: Problem, allocation: Allocation) -> Mapping[str, float]:
    """Return what the objectives of all policies come to under an allocation."""
    norm = normalised(problem, allocation.throughput)
    with np.errstate(divide="ignore", invalid="ignore"):
        left_s = problem.remaining_steps / allocation.throughput
        left_s = np.where(problem.remaining_steps > 0, left_s, 0.0)
        found = {
            "level": (problem.size * norm / problem.weight).min(),
            "level_agnostic": (problem.size / problem.weight * allocation.share.sum(axis=1)).min(),
            "mean": norm.mean(),
            "min": norm.min(),
            "rho": ((problem.age_s + left_s) / problem.fair_s).max(),
            "makespan_s": left_s.max(),
            "sum_throughput": allocation.throughput.sum(),
        }
    if allocation.assignment_cost is not None:
        found["assignment_cost"] = allocation.assignment_cost
    if problem.cost_per_hour is not None:
        found["sum_throughput_per_cost"] = _per_cost(problem, allocation)
    return {name: float(value) for name, value in found.items()}


def _per_cost(problem: Problem, allocation: Allocation) -> float:
    assert problem.cost_per_hour is not None
    return float((allocation.progress / problem.cost_per_hour).sum())
