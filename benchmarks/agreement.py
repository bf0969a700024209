"""The results of live and simulated runs, and whether they agree."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean, stdev
from typing import Any, Final

import numpy as np

from omega.sim.experiment import Experiment
from omega.sim.results import Result

SDS: Final = 3.0
"""Standard deviations within which two means are the same."""
GRAIN: Final = 0.02
"""Allowed difference beside the random one: polling, commits and late wake-ups take time."""


def between(
    experiment: Experiment,
    from_s: float,
    to_s: float,
    run: Callable[[Experiment], Result] = Experiment.run,
) -> Mapping[str, Any]:
    """Simulate; return the figures of the time from `from_s` to `to_s`."""
    (kind,) = experiment.schedulers
    upto = [
        run(replace(experiment, horizon_s=horizon_s)).workloads[kind]
        for horizon_s in (from_s, to_s)
    ]
    counts = {
        name: upto[1][name] - upto[0][name]
        for name in ("transactions_conflicted", "transactions_ok", "tasks_placed")
    }
    thought_s = upto[1]["busy"] * to_s - upto[0]["busy"] * from_s
    clean = counts["transactions_ok"]
    return {
        "conflict_fraction": counts["transactions_conflicted"] / clean if clean else None,
        "busy": thought_s / (to_s - from_s),
        "tasks_placed": counts["tasks_placed"],
    }


def compared(
    names: Iterable[str],
    live: Sequence[Mapping[str, Any]],
    simulated: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """Return the means of both by name, and whether they agree."""
    compared: dict[str, Any] = {}
    for name in names:
        (mean, sd), (virtual, virtual_sd) = (
            _spread([one[name] or 0.0 for one in runs]) for runs in (live, simulated)
        )
        # Both are means: over the contests, and over the simulations of them.
        deviation = float(np.hypot(sd, virtual_sd))
        compared[name] = {
            "live": mean,
            "live_sd": sd,
            "simulated": virtual,
            "simulated_sd": virtual_sd,
            "agree": bool(abs(mean - virtual) <= SDS * deviation + GRAIN),
        }
    return compared


def _spread(values: Sequence[float]) -> tuple[float, float]:
    return fmean(values), stdev(values) if len(values) > 1 else 0.0
