"""Usage: what tenants, kinds of schedulers or jobs used over a time, in hours.

Goal     Account for a cell: core-hours, GPU-hours, evictions and waits.
Promise  Amounts times time are exact integers; hours are these, divided. What is not on record is
         told as such, and never estimated.
Source   docs/decisions/0056-usage-and-dashboards.md.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from omega.model.quotas import Budget
from omega.model.resources import GPU_SLICES
from omega.reports.printable import short
from omega.reports.wording import HOUR_S, MIB_PER_GIB
from omega.store.holdings import RESOURCES
from omega.store.protocols import ReaderStore
from omega.store.usage import Consumer, Usage, UsageBy, Used

HOURS: Final = {
    Budget.CPU_MILLI: ("core_hours", 1_000),
    Budget.GPU_SLICES: ("gpu_hours", GPU_SLICES),
    Budget.MEMORY_MIB: ("memory_gib_hours", MIB_PER_GIB),
    Budget.DISK_MIB: ("disk_gib_hours", MIB_PER_GIB),
}
"""By resource: the name of its hours, and how many of its units make one of these."""
US_PER_S: Final = 1_000_000
DECIMALS: Final = 6
COUNTS: Final = ("runs", "evicted", "lost", "attempted", "unattempted")
FORMULAS: Final = ("=", "+", "-", "@")
"""What spreadsheets take for the beginning of a formula."""


@dataclass(frozen=True)
class UsageReport:
    """What was used from one moment to another."""

    usage: Usage

    @classmethod
    def read(cls, store: ReaderStore, over_ms: int, by: UsageBy) -> "UsageReport":
        """Read what was used in the last so many milliseconds."""
        return cls(store.usage(over_ms, by))

    @property
    def is_cut(self) -> bool:
        """Whether the record may begin within the time: nothing on it ended before."""
        oldest_ms = self.usage.oldest_ms
        return oldest_ms is not None and oldest_ms > self.usage.since_ms

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each tenant, kind or job, as JSON types."""
        return [
            {**named(consumer, self.usage.by), **figures(used), "held_us": exact(used)}
            for consumer, used in self.usage.rows
        ]

    def summary(self) -> dict[str, object]:
        """Return the time, the sum of all and what is not known, as JSON types."""
        usage = self.usage
        return {
            "by": usage.by.value,
            "since_ms": usage.since_ms,
            "until_ms": usage.until_ms,
            "left_out": usage.left_out,
            "runs_unknown": usage.unknown,
            "oldest_end_ms": usage.oldest_ms,
            "total": {**figures(usage.total), "held_us": exact(usage.total)},
        }

    def csv_text(self) -> str:
        """Return the rows as CSV, with a line of names; texts are printable and no formulas."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        by = self.usage.by
        writer.writerow([*named(Consumer(""), by), *figures(self.usage.total)])
        for consumer, used in self.usage.rows:
            whose = (_plain(it) for it in named(consumer, by).values())
            writer.writerow([*whose, *map(_number, figures(used).values())])
        return text.getvalue().rstrip("\n")


def hours(used: Used) -> Iterator[tuple[Budget, float]]:
    """Yield the hours of each resource: core-hours, GPU-hours, GiB-hours."""
    held = dict(zip(RESOURCES, used.held_us, strict=True))
    for resource, (_, unit) in HOURS.items():
        yield resource, float(Fraction(held[resource], unit * US_PER_S * HOUR_S))


def wait_mean_s(used: Used) -> float | None:
    """Return how long jobs waited for their first attempts, at the mean; None without any."""
    if not used.attempted:
        return None
    return float(Fraction(used.waited_us, used.attempted * US_PER_S))


def wait_longest_s(used: Used) -> float | None:
    """Return the longest of these waits; None without any."""
    return used.waited_longest_us / US_PER_S if used.attempted else None


def figures(used: Used) -> dict[str, float | int | None]:
    """Return the figures of one row, by name."""
    return {
        **{HOURS[resource][0]: round(its, DECIMALS) for resource, its in hours(used)},
        **{name: getattr(used, name) for name in COUNTS},
        "wait_mean_s": _rounded(wait_mean_s(used)),
        "wait_longest_s": _rounded(wait_longest_s(used)),
    }


def exact(used: Used) -> dict[str, int]:
    """Return amounts times microseconds by resource."""
    return {it.column: us for it, us in zip(RESOURCES, used.held_us, strict=True)}


def named(consumer: Consumer, by: UsageBy) -> Mapping[str, str | int | None]:
    """Return who it is: a tenant, a kind of scheduler, or a job with its name and whose it is."""
    if by is not UsageBy.JOB:
        return {by.value: consumer.name}
    return {
        "job": consumer.job,
        "name": consumer.name,
        "tenant": consumer.tenant,
        "scheduler": consumer.scheduler,
    }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, DECIMALS)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return str(value) if isinstance(value, int) else f"{value:.{DECIMALS}f}"


def _plain(value: str | int | None) -> str:
    text = short(str(value))
    return f"'{text}" if text.startswith(FORMULAS) else text
