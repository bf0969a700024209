"""What a generator would have to be told to make work like a trace's.

Goal     Estimate, for each workload of a trace, the laws of gaps, tasks a job and durations, and
         draw a list of jobs from them.
Promise  Nothing is hidden that a generator of independent draws leaves out: how far each law is
         off, and how much sizes and durations go together, are part of what is found.
Source   Omega (EuroSys 2013), figures 3 and 4: the distributions that the paper shows of its cells.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final

import numpy as np

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.model.arrays import Score
from omega.workload.arrivals import BATCH, MS_PER_S, SERVICE, Arrival
from omega.workload.laws import PARAMETRIC, Empirical, Exponential, Law, Observed, distance
from omega.workload.recipe import BATCH_FIRST_ID, COLUMNS, DECIMALS, SERVICE_FIRST_ID

JOBS_MIN: Final = 3
"""Fewer jobs of a workload tell nothing of a law."""
DIGITS: Final = 3
"""To which two distances are equal."""
AT_RANDOM: Final = 1.36
"""Over the root of the number of jobs: a distance that chance exceeds once in twenty times."""
LASTS_S_MAX: Final = 1e9
"""A law without bounds may draw what no list can hold."""
DRAWN_MAX: Final = 5_000_000
"""Jobs of a list that is drawn: some hundred bytes each, in memory."""
LEAST_S: Final = 1e-9
"""A time that is not 0."""
GAP, TASKS, DURATION = "gap_s", "tasks", "duration_s"
QUANTITIES: Final = (GAP, TASKS, DURATION)
LISTED: Final = {BATCH: ("Batch", BATCH_FIRST_ID), SERVICE: ("Service", SERVICE_FIRST_ID)}
"""The workloads that a job list can hold, with their names there and their first job's id."""


@dataclass(frozen=True, eq=False)
class Fit:
    """One quantity of one workload: what was seen, and the laws that were fitted to it."""

    quantity: str
    seen: Observed
    laws: Mapping[str, Law]
    distances: Mapping[str, float]
    """Of each law."""

    @property
    def is_whole(self) -> bool:
        """Whether it is counted: a law's values are rounded up."""
        return self.quantity == TASKS

    @property
    def best(self) -> Law:
        """The nearest law that has parameters; the simplest of those that are equally near."""
        names = [law.name for law in PARAMETRIC]
        return self.laws[min(names, key=lambda name: round(self.distances[name], DIGITS))]

    @property
    def by_sampling(self) -> float:
        """A distance that would be no reason to doubt the law, had it not been fitted."""
        return float(AT_RANDOM / np.sqrt(len(self.seen)))

    def drawn(self, law: Law, number: int, rng: np.random.Generator) -> Score:
        """Draw from a law, in whole numbers where such are counted."""
        values = law.quantile(rng.random(number))
        return _in_whole(values) if self.is_whole else values

    def quantiles(self, law: Law, shares: Sequence[float]) -> list[float]:
        """Return a law's quantiles, in whole numbers likewise."""
        values = law.quantile(np.array(shares))
        rounded: list[float] = (_in_whole(values) if self.is_whole else values).tolist()
        return rounded


@dataclass(frozen=True, eq=False)
class FittedWorkload:
    """The jobs of one workload, as a generator would have to make them."""

    scheduler: str
    jobs: int
    fits: Mapping[str, Fit]
    shapes: Sequence[tuple[int, int]]
    """CPU and memory that a task of each job asks for."""
    size_and_duration: float
    """Rank correlation of tasks and duration, which independent draws do not have."""


def fitted(arrivals: Sequence[Arrival]) -> dict[str, FittedWorkload]:
    """Fit each workload that has a few jobs. Raises BadInput if none has, or all come at once."""
    ends_s = max((one.submit_s + (_lasts_s(one) or 0.0) for one in arrivals), default=0.0)
    by_kind: dict[str, list[Arrival]] = {}
    for arrival in arrivals:
        by_kind.setdefault(arrival.spec.scheduler, []).append(arrival)
    enough = {kind: jobs for kind, jobs in sorted(by_kind.items()) if len(jobs) >= JOBS_MIN}
    if not enough:
        raise BadInput(f"no workload has {JOBS_MIN} jobs, and fewer tell nothing")
    return {kind: _fit_workload(kind, jobs, ends_s) for kind, jobs in enough.items()}


def draw_list(
    workloads: Mapping[str, FittedWorkload],
    laws: Mapping[tuple[str, str], Law],
    horizon_s: float,
    rng: np.random.Generator,
) -> str:
    """Draw a job list as CSV; `laws` by workload and quantity. Streams are a workload's own.

    Raises BadInput for more jobs than DRAWN_MAX.
    """
    lines = [",".join(COLUMNS)]
    listed = [one for one in LISTED if one in workloads]
    for kind, stream in zip(listed, rng.spawn(len(listed)), strict=True):
        chosen = {name: laws[kind, name] for name in QUANTITIES}
        # No two jobs of a list have one id, however many there are.
        number = max(LISTED[kind][1], len(lines))
        rows = _rows(workloads[kind], chosen, horizon_s, stream, number)
        lines += islice(rows, DRAWN_MAX + 2 - len(lines))
        if len(lines) > DRAWN_MAX + 1:
            raise BadInput(f"more than {DRAWN_MAX:,} jobs would be drawn", field="--hours")
    return "\n".join(lines) + "\n"


def _fit_workload(kind: str, jobs: Sequence[Arrival], ends_s: float) -> FittedWorkload:
    gaps = np.array([later.submit_s - one.submit_s for one, later in pairwise(jobs)])
    if not gaps.any():
        raise BadInput(f"all jobs for {kind} come at once: there are no gaps to fit a law to")
    tasks = np.array([float(one.spec.tasks) for one in jobs])
    lasts = [_lasts_s(one) for one in jobs]
    goes_on = np.array([one is None for one in lasts])
    seen_s = np.array(
        [
            ends_s - job.submit_s if lasted is None else lasted
            for job, lasted in zip(jobs, lasts, strict=True)
        ]
    )
    seen = {
        GAP: Observed(_above_zero(gaps), np.zeros(len(gaps), np.bool_)),
        TASKS: Observed(tasks, np.zeros(len(tasks), np.bool_)),
    }
    if not goes_on.all():
        seen[DURATION] = Observed(_above_zero(seen_s), goes_on)
    return FittedWorkload(
        scheduler=kind,
        jobs=len(jobs),
        fits={name: _fit(name, one) for name, one in seen.items()},
        shapes=[_shape(one) for one in jobs],
        size_and_duration=_rank_correlation(tasks[~goes_on], seen_s[~goes_on]),
    )


def _fit(quantity: str, seen: Observed) -> Fit:
    whole = quantity == TASKS
    # A law's value in (k - 1, k] counts as k: it is fitted to the middle, and compared at k.
    between = Observed(seen.values - 0.5, seen.is_censored) if whole else seen
    laws: dict[str, Law] = {law.name: law.fitted(between) for law in PARAMETRIC}
    if whole:
        laws[Exponential.name] = _rounded_up(float(seen.values.mean()))
    laws[Empirical.name] = Empirical.fitted(seen)
    return Fit(
        quantity,
        seen,
        laws,
        {name: distance(seen, law, whole=whole) for name, law in laws.items()},
    )


def _rounded_up(mean: float) -> Exponential:
    """Return the exponential law whose values, rounded up, have this mean; it is geometric then."""
    more_than_one = max(mean, 1 + 1e-6)
    return Exponential(float(-1 / np.log1p(-1 / more_than_one)))


def _in_whole(values: Score) -> Score:
    return np.maximum(np.ceil(values), 1)


def _lasts_s(arrival: Arrival) -> float | None:
    """Return how long a job's largest group lasts; None if it was not seen to end."""
    group = max(range(len(arrival.spec.groups)), key=lambda at: arrival.spec.groups[at].tasks)
    if arrival.durations_s is not None:
        return arrival.durations_s[group]
    lasts_ms = arrival.spec.groups[group].duration_ms
    return None if lasts_ms is None else lasts_ms / MS_PER_S


def _shape(arrival: Arrival) -> tuple[int, int]:
    group = max(arrival.spec.groups, key=lambda one: one.tasks)
    return group.cpu_milli, group.memory_mib


def _above_zero(values: Score) -> Score:
    """Put what was measured as 0 halfway to the least that was measured as more.

    Less than a nanosecond is 0: the quotient of two times must be a float, too.
    """
    there = values[values >= LEAST_S]
    return np.maximum(values, there.min() / 2 if len(there) else 1 / MS_PER_S)


def _rank_correlation(left: Score, right: Score) -> float:
    ranks = [np.unique(one, return_inverse=True)[1] for one in (left, right)]
    if len(left) < JOBS_MIN or min(len(set(one.tolist())) for one in ranks) < 2:  # noqa: PLR2004 - no order among one
        return 0.0
    return float(np.corrcoef(_mean_ranks(left), _mean_ranks(right))[0, 1])


def _mean_ranks(values: Score) -> Score:
    """Return the rank of each, equal ones sharing the mean of theirs."""
    _, position, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((2 * last - counts - 1) / 2)[position]


def _rows(
    workload: FittedWorkload,
    laws: Mapping[str, Law],
    horizon_s: float,
    rng: np.random.Generator,
    number: int,
) -> Iterator[str]:
    name = LISTED[workload.scheduler][0]
    fits = workload.fits
    at_a_time = max(JOBS_MIN, workload.jobs)
    now_s = 0.0
    while True:
        gaps = fits[GAP].drawn(laws[GAP], at_a_time, rng).tolist()
        counts = fits[TASKS].drawn(laws[TASKS], at_a_time, rng)
        tasks = np.minimum(counts, LIMITS.tasks_per_job_max).astype(np.int64).tolist()
        durations_s = fits[DURATION].drawn(laws[DURATION], at_a_time, rng)
        lasts_s = np.minimum(durations_s, LASTS_S_MAX).tolist()
        shapes = rng.integers(len(workload.shapes), size=at_a_time).tolist()
        for gap_s, count, lasts, shape in zip(gaps, tasks, lasts_s, shapes, strict=True):
            now_s += gap_s
            if now_s >= horizon_s:
                return
            cpu_milli, memory_mib = workload.shapes[shape]
            asks = f"{cpu_milli / 1_000},{memory_mib / 1_024}"
            times = f"{round(now_s, DECIMALS)},{count},{round(lasts, DECIMALS)}"
            yield f"{number},{name},{times},{asks}"
            number += 1
