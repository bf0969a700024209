"""What is committed together in a simulation, and schedulers that commit so.

Goal     Say once how the schedulers of an experiment are set up for its commit semantics.
Promise  A scheduler commits one job at a time, as the paper's open simulator does.
Source   Omega (EuroSys 2013), section 3.4 and figure 14.
"""

from collections.abc import Callable
from enum import StrEnum

from omega.framework.scheduler import Scheduler
from omega.model.claims import ConflictRule, Granularity


class CommitUnit(StrEnum):
    """What a refused claim does to its siblings, and whether a job is placed whole."""

    INCREMENTAL = "incremental"
    ALL_OR_NOTHING = "all-or-nothing"
    GANG = "gang"


def committing(
    make: Callable[[], Scheduler], rule: ConflictRule, unit: CommitUnit
) -> Callable[[], Scheduler]:
    """Return what makes the same scheduler, committing one job at a time by this rule and unit."""

    def made() -> Scheduler:
        scheduler = make()
        scheduler.rule = rule
        scheduler.granularity = (
            Granularity.ALL_OR_NOTHING
            if unit is CommitUnit.ALL_OR_NOTHING
            else Granularity.INCREMENTAL
        )
        scheduler.jobs_per_transaction = 1
        return scheduler

    return made
