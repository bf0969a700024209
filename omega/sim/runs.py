"""Both kinds of runs: with the open simulator's queue rules, or with the live queue.

Goal     Start either kind of run by one call.
Promise  Both kinds report the same measures by the same names.
Source   docs/decisions/0031-one-process-two-drivers.md.
"""

from enum import StrEnum

from omega.sim.experiment import Advance, Experiment, Run
from omega.sim.live_run import LiveRun, SyncConfig


class Queueing(StrEnum):
    """Which queue the jobs are in."""

    OPEN = "open"
    """The open simulator's: first come, first served, again after a second, given up at last."""
    LIVE = "live"
    """The live queue: by precedence, with leases, delays, parking and waking."""


def begin(
    experiment: Experiment, queueing: Queueing, sync: SyncConfig, advance: Advance
) -> Run | LiveRun:
    """Return a run before its first event."""
    if queueing is Queueing.LIVE:
        return LiveRun(experiment, sync, advance)
    return experiment.begin(advance)
