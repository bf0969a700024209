"""Runs of both kinds: by the open simulator's rules of waiting, or as jobs wait live.

Goal     Let whoever simulates take either by one call.
Promise  Both tell of themselves by the same names.
Source   docs/decisions/0031-one-process-two-drivers.md.
"""

from enum import StrEnum

from omega.sim.experiment import Advance, Experiment, Run
from omega.sim.live_run import LiveRun, Synchronising


class Queueing(StrEnum):
    """How jobs wait."""

    OPEN = "open"
    """As in the paper's open simulator: in line, again after a second, and given up in the end."""
    LIVE = "live"
    """As on a live cell: by precedence, leased, put off, parked and woken."""


def begin(
    experiment: Experiment, queueing: Queueing, sync: Synchronising, advance: Advance
) -> Run | LiveRun:
    """Return a run about to begin."""
    if queueing is Queueing.LIVE:
        return LiveRun(experiment, sync, advance)
    return experiment.begin(advance)
