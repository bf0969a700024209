"""A sweep: one simulation for each point of a grid and each seed, on any executor.

Goal     Vary any setting, on as many cores or machines as there are, and keep finished trials when
         others fail or the sweep is stopped.
Promise  Results depend only on points and seeds, not on where or when a trial ran. A failed trial
         does not affect the others.
Source   concurrent.futures.Executor, which process pools and distributed engines have in common;
         Omega (EuroSys 2013), section 4: means over runs with their deviations.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass, field
from itertools import islice, product
from statistics import fmean, stdev
from typing import Any, Generic, TypeVar

from omega.workload.arrivals import BATCH, ML_GPU, SERVICE

WORKLOADS = (BATCH, ML_GPU, SERVICE)
"""Workloads whose figures a run may have, by name."""
DEVIATION = "deviation"
"""The key, in a row, of the standard deviations over seeds."""
LOOK_S = 0.5
"""Seconds between two checks whether the sweep is to stop."""
_Value = TypeVar("_Value")
_Work = TypeVar("_Work")

Figures = Mapping[str, Any]
"""The figures of a run by name: numbers, None for a missing one, or a mapping of the same kind."""


@dataclass(frozen=True)
class Trial(Generic[_Work]):
    """One run of a sweep."""

    point: int
    """Its position in the grid."""
    seed: int
    work: _Work = field(compare=False)
    """The argument of the function that simulates."""


def grid(axes: Mapping[str, Sequence[_Value]]) -> list[dict[str, _Value]]:
    """Return every combination of the values, the last axis changing fastest."""
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def run_trials(
    executor: Executor,
    simulate: Callable[[_Work], Figures],
    trials: Iterable[Trial[_Work]],
    *,
    at_once: int,
    settle: Callable[[Trial[_Work], Figures | Exception], None],
    stopped: Callable[[], bool] = lambda: False,
) -> bool:
    """Run trials on an executor, at most `at_once` at a time; return whether all are settled.

    `settle` is called with each trial and its figures or its error, in order of completion. Once
    `stopped` returns True, trials that have not begun are cancelled; the caller ends those that
    have begun, with the executor. Raises BrokenExecutor if a worker process ended.
    """
    waiting = iter(trials)
    running: dict[Future[Figures], Trial[_Work]] = {}
    while not stopped():
        for trial in islice(waiting, at_once - len(running)):
            running[executor.submit(simulate, trial.work)] = trial
        if not running:
            return True
        done, _ = wait(running, timeout=LOOK_S, return_when=FIRST_COMPLETED)
        for future in done:
            trial, error = running.pop(future), future.exception()
            if isinstance(error, BrokenExecutor) or not isinstance(error, Exception | None):
                raise error
            settle(trial, error if error is not None else future.result())
    for future in running:
        future.cancel()
    return False


def mean_and_deviation(runs: Sequence[Figures]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return for each figure its mean over the runs and its sample standard deviation.

    Runs without a figure are left out of it. For one run the figures are returned as they are.
    """
    means: dict[str, Any] = {}
    deviations: dict[str, Any] = {}
    for name, first in runs[0].items():
        values = [run[name] for run in runs]
        if isinstance(first, Mapping):
            means[name], deviations[name] = mean_and_deviation(values)
        elif len(values) == 1:
            means[name], deviations[name] = first, None
        else:
            there = [value for value in values if value is not None]
            means[name] = fmean(there) if there else None
            deviations[name] = stdev(there) if len(there) > 1 else None
    return means, deviations
