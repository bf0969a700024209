"""Failures of machines that are drawn for a simulation: `--machine-failures-every`.

Goal     Let the machines of any workload fail that records no failures of its own.
Promise  What cannot be simulated is BadInput before anything runs.
Source   omega.workload.machine_events.
"""

from dataclasses import replace
from typing import Final

from omega.errors import BadInput
from omega.framework.rng import rng_for
from omega.workload.arrivals import Workload
from omega.workload.machine_events import Failures

OPTION: Final = "--machine-failures-every"
FAILURES_MAX: Final = 1_000_000
"""Mean number of failures of all machines together up to the horizon."""


def with_failures(
    workload: Workload, failures: Failures, *, horizon_s: float, seed: int
) -> Workload:
    """Return the workload with failures up to the horizon.

    Raises BadInput for a workload that has machine events, and for too many failures.
    """
    if workload.machine_events:
        raise BadInput(
            "the trace has machine events of its own; leave them out with --trace-option"
            " machines=stay",
            field=OPTION,
        )
    machines = len(workload.machines)
    if failures.mean(machines, horizon_s) > FAILURES_MAX:
        raise BadInput(f"more than {FAILURES_MAX:,} failures would be simulated", field=OPTION)
    events = failures.draw(machines, horizon_s, rng_for(seed, "machine failures"))
    return replace(workload, machine_events=events)


def refuse_events_with_offers(workload: Workload, horizon_s: float) -> None:
    """Raise BadInput if a machine changes up to the horizon."""
    if any(event.time_s <= horizon_s for event in workload.machine_events):
        raise BadInput(
            "machine events are not simulated with offers; of a trace, leave them out with"
            " --trace-option machines=stay",
            field="--architecture",
        )
