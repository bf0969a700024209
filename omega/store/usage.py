"""What tenants, kinds of schedulers or jobs used over a time: what a store returns to accounting.

Goal     One value type for each answer, equal for every store.
Promise  Sums are exact integers. What a store does not keep over time is not in them: only the
         first wait of a job is, and of an eviction only that it happened.
Source   docs/decisions/0056-usage-and-dashboards.md; omega/store/holdings.py.
"""

from dataclasses import dataclass
from enum import Enum

from omega.store.holdings import RESOURCES, ResourceAmounts


class UsageBy(Enum):
    """Whose use is summed up."""

    TENANT = "tenant"
    SCHEDULER = "scheduler"
    JOB = "job"


@dataclass(frozen=True, kw_only=True)
class Used:
    """What one of them used, or all together."""

    runs: int = 0
    """Allocations that were there within the time; a task that was evicted and placed again has
    several."""
    held_us: ResourceAmounts = (0,) * len(RESOURCES)
    """Amounts times microseconds, of each of RESOURCES."""
    evicted: int = 0
    """Runs that a commit ended within the time: for another task, or to move this one."""
    lost: int = 0
    """Runs that ended within the time because the machine failed, left or shrank."""
    attempted: int = 0
    """Jobs whose first attempt began within the time ..."""
    waited_us: int = 0
    """... how long they had waited for it since their submission, added up ..."""
    waited_longest_us: int = 0
    """... and the longest of these waits."""
    unattempted: int = 0
    """Jobs that wait for their first attempt now."""


@dataclass(frozen=True)
class Consumer:
    """A tenant, a kind of scheduler or a job."""

    name: str
    job: int | None = None
    """The number of the job, of which `name` is the name."""
    tenant: str | None = None
    scheduler: str | None = None
    """Whose the job is; None unless it is one."""


@dataclass(frozen=True)
class Usage:
    """What was used from one moment to another."""

    by: UsageBy
    since_ms: int
    until_ms: int
    """When the store was asked, by its clock."""
    rows: tuple[tuple[Consumer, Used], ...]
    """The largest shares of the cell first, then by name or number; at most LIMITS.holders_max."""
    total: Used
    """Of all, also of those that are left out."""
    left_out: int = 0
    """How many more used something, waited or were evicted."""
    unknown: int = 0
    """Runs that are on record and not counted: their jobs were pruned with what they asked for."""
    oldest_ms: int | None = None
    """When the oldest run on record ended; what ended earlier was pruned, or never was."""
