"""A sweep: one simulation for each point of a grid and each seed, on any executor.

Goal     Vary anything, over as many cores or machines as there are, and lose nothing of what is
         done when the rest fails or is stopped.
Promise  What comes out depends on points and seeds alone, not on who simulated what, or when. A
         trial that fails takes no other with it.
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
"""Names under which a run's figures may have those of a workload."""
DEVIATION = "deviation"
"""The name in a row of the standard deviations over seeds."""
LOOK_S = 0.5
"""How often it is looked whether somebody wants the sweep to stop."""
_Value = TypeVar("_Value")
_Work = TypeVar("_Work")

Figures = Mapping[str, Any]
"""What came of a run: numbers by name, None for one that there is not, or more of the same."""


@dataclass(frozen=True)
class Trial(Generic[_Work]):
    """One run of a sweep."""

    point: int
    """Its position in the grid."""
    seed: int
    work: _Work = field(compare=False)
    """What is to be simulated, as the simulating function takes it."""


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
    """Have trials simulated, so many handed out at once; return whether all have been settled.

    `settle` is told of each what came of it, in order of completion. When it is to stop, what has
    not begun is cancelled; what has begun is the caller's to end, with the executor.
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


def folded(runs: Sequence[Figures]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the mean over runs and the sample deviation, figure by figure.

    Of a figure that some runs do not have, over those that do. Of one run its figures as they are.
    """
    means: dict[str, Any] = {}
    deviations: dict[str, Any] = {}
    for name, first in runs[0].items():
        values = [run[name] for run in runs]
        if isinstance(first, Mapping):
            means[name], deviations[name] = folded(values)
        elif len(values) == 1:
            means[name], deviations[name] = first, None
        else:
            there = [value for value in values if value is not None]
            means[name] = fmean(there) if there else None
            deviations[name] = stdev(there) if len(there) > 1 else None
    return means, deviations
