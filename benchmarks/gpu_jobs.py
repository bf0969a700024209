"""Drawn training jobs, with the distributions that the Gavel paper gives.

Rates: over models, a V100 is 0.66 to 11.6 times as fast as a K80 and 0.43 to 1.84 times as fast as
a P100; 26 models. Two jobs that share a GPU run at 0.6 of their own rates each on average, and 7 %
of pairs do not fit. Durations: 80 % are 60 x 10^U(1.5, 3) seconds, 20 % 60 x 10^U(3, 4).
"""

from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from omega.model.arrays import Counts, Index
from schedulers.ml_gpu.problem import Problem
from schedulers.ml_gpu.replay import Trace
from schedulers.ml_gpu.throughputs import PairRates, Throughputs

TYPES: Final = ("k80", "p100", "v100")
MODELS: Final = 26
GPUS_A_JOB: Final = 0.75
"""GPUs per job, of all types together: a quarter of each of the three types."""


def drawn_problem(jobs: int, rng: np.random.Generator) -> Problem:
    """Return so many partly done jobs of one GPU each, and GPUs for three quarters of them."""
    table = drawn_table(rng)
    kind = rng.integers(0, MODELS, jobs)
    total = _steps(table, kind, rng).astype(np.float64)
    remaining = np.ceil(total * rng.uniform(0.05, 1.0, jobs))
    of_each = max(1, round(jobs * GPUS_A_JOB / len(TYPES)))
    return Problem(
        types=TYPES,
        gpus=np.full(len(TYPES), of_each),
        table=table.rates,
        gang=table.gangs,
        kind=kind,
        weight=np.ones(jobs),
        total_steps=total,
        remaining_steps=remaining,
        age_s=rng.uniform(0, 3_600, jobs),
        cost_per_hour=np.array([0.135, 0.43, 0.74]),
        pairs=table.pairs,
    )


def without_last(problem: Problem) -> Problem:
    """Return the problem without its last job."""
    return replace(
        problem,
        kind=problem.kind[:-1],
        weight=problem.weight[:-1],
        total_steps=problem.total_steps[:-1],
        remaining_steps=problem.remaining_steps[:-1],
        age_s=problem.age_s[:-1],
    )


def drawn_trace(
    table: Throughputs, jobs: int, rate_per_s: float, rng: np.random.Generator
) -> Trace:
    """Return jobs of random kinds of the table, with exponential gaps between arrivals."""
    row = rng.integers(0, len(table.kinds), jobs)
    return Trace(
        row=row,
        steps=_steps(table, row, rng),
        weight=np.ones(jobs),
        arrival_s=np.cumsum(rng.exponential(1 / rate_per_s, jobs)),
    )


def drawn_table(rng: np.random.Generator) -> Throughputs:
    """Return a table of drawn rates."""
    rates = _rates(rng)
    kinds = tuple((f"model {number}", 1) for number in range(MODELS))
    return Throughputs(TYPES, kinds, rates, rates, PairRates(_beside(rates, rng)))


def _steps(table: Throughputs, row: Index, rng: np.random.Generator) -> Counts:
    """Return the steps of jobs of these kinds, from drawn durations on a V100."""
    jobs = len(row)
    long = rng.random(jobs) < 0.2  # noqa: PLR2004 - the paper's
    exponent = np.where(long, rng.uniform(3, 4, jobs), rng.uniform(1.5, 3, jobs))
    steps = np.ceil(60 * 10**exponent * table.rates[row, table.types.index("v100")])
    return np.asarray(steps, np.int64)


def _rates(rng: np.random.Generator) -> NDArray[np.float64]:
    k80 = 10 ** rng.uniform(-1, 1.5, MODELS)
    v100 = k80 * np.exp(rng.uniform(np.log(0.66), np.log(11.6), MODELS))
    p100 = v100 / np.exp(rng.uniform(np.log(0.43), np.log(1.84), MODELS))
    return np.stack([k80, p100, v100], axis=1)


def _beside(table: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Return the rates of pairs; the two jobs of a pair of one kind slow down alike."""
    slowed = np.clip(rng.normal(0.6, 0.15, (MODELS, MODELS, len(TYPES))), 0.1, 1.0)
    fits = rng.random((MODELS, MODELS, len(TYPES))) >= 0.07  # noqa: PLR2004 - the paper's
    fits = np.triu(fits.transpose(2, 0, 1)).transpose(1, 2, 0)
    fits |= fits.transpose(1, 0, 2)
    return np.asarray(slowed * fits * table[:, np.newaxis, :])
