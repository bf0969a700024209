"""What jobs held over a time, and which hold room idly: what a store returns to audits.

Goal     One value type for each answer, equal for every store.
Promise  Sums are exact integers. Live, ended and evicted tasks all count from when their place was
         granted until it was lost.
Source   Omega (EuroSys 2013), section 3.4: limits that are checked after the fact;
         docs/decisions/0041-audits.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from omega.model.quotas import Budget, QuotaScope

RESOURCES: Final = tuple(budget for budget in Budget if budget.kinds)
"""What a share is measured in: the budgets of quotas that are charged by amount."""

US_PER_MS: Final = 1_000

ResourceAmounts = tuple[int, ...]
"""An amount of each of RESOURCES, in this order."""


@dataclass(frozen=True)
class Holding:
    """What the jobs of a tenant held, or those submitted for one kind of scheduler."""

    scope: QuotaScope
    name: str
    runs: int
    """Allocations that were there within the time; a task that was evicted and placed again has
    several."""
    held_us: ResourceAmounts
    """Amounts times microseconds."""


@dataclass(frozen=True)
class Holdings:
    """What all jobs held from one moment to another."""

    since_ms: int
    until_ms: int
    """When the store was asked, by its clock."""
    capacity: ResourceAmounts
    """Of the machines that are not gone, as they are now."""
    by: Sequence[Holding]
    """Of tenants, then of kinds, each by name. Each run counts for its tenant and for its kind. Of
    either there are at most LIMITS.holders_max: those of the largest shares."""
    left_out: Mapping[QuotaScope, int] = field(default_factory=dict)
    """How many more tenants and kinds held something."""
    unknown: int = 0
    """Runs that are on record and not counted: their jobs were pruned with what they asked for."""


class IdleCause(Enum):
    """Why the room that a job holds is idle, as far as a store knows."""

    UNPLACED_SIBLINGS = "unplaced_siblings"
    """Some of its tasks have places, others have none."""
    NO_STEP = "no_step"
    """Its work is counted in steps, all its tasks run, and none has been reported."""


@dataclass(frozen=True)
class IdleJob:
    """A job that holds room and does not get on."""

    job: int
    name: str
    tenant: str
    scheduler: str
    cause: IdleCause
    running: int
    unplaced: int
    since_ms: int
    """When a task of it last got a place or lost one."""
    held: ResourceAmounts
    """What its running tasks hold."""
