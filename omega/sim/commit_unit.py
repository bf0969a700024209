"""What is committed together in a simulation, and schedulers that commit so.

Goal     Configure the schedulers of an experiment for its commit semantics in one place.
Promise  A scheduler that plans job by job commits one job in a transaction, as in the paper's open
         simulator. One that plans in rounds still commits many jobs in a transaction. A gang's
         minimum is set on its job, by the experiment.
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
    """Return a factory of the scheduler with this rule and unit, and one job in a transaction.

    A scheduler that plans in rounds ignores the number of jobs in a transaction.
    """

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
