"""One simulation in a process of its own: a script for `benchmarks.sim_speed`.

It runs the code of the checkout that is first on the path, which may be an earlier revision. It
reads an order as JSON from standard input, and writes the result to standard output.
"""

import json
import resource
import sys
from dataclasses import replace
from typing import Any, Final

from benchmarks.sim_speed import Run, Size, experiment_of

LOADING: Final = Size(machines=100, hours=1.0, tasks=1_000, tasks_a_job=5)
"""The size of a run that loads the compiled code first."""


def simulate(order: dict[str, Any]) -> dict[str, Any]:
    """Simulate an order; the time is only that of the run, without drawing jobs or loading code."""
    design, seed = order["design"], order["seed"]
    experiment = experiment_of(Size(**order["size"]), design, seed)
    if order["compiled"]:
        replace(experiment_of(LOADING, design, seed), compiled=True).run()
        experiment = replace(experiment, compiled=True)
    began_s = _cpu_s()
    result = experiment.run()
    run = Run(_cpu_s() - began_s, result)
    return {
        "cpu_s": run.took_s,
        "checksum": run.checksum,
        "attempts": run.attempts,
        "tasks_placed": result.tasks_placed,
        "events": result.events,
        "jobs": sum(int(told["jobs"]) for told in result.workloads.values()),
        "conflicts": sum(int(row["transactions_conflicted"]) for row in result.schedulers),
    }


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    json.dump(simulate(json.load(sys.stdin)), sys.stdout)
