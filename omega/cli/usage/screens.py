"""Usage as a person reads it.

Goal     Show at a glance who used how much, who was evicted and who waited.
Promise  Drawn from values alone: nothing here reads a store. A resource that nobody used has no
         column. What is not on record is said below the table.
Source   omega.reports.usage.
"""

from collections.abc import Iterator
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from omega.cli.job.screens import cut
from omega.model.quotas import Budget
from omega.reports.usage import UsageReport, hours, wait_longest_s, wait_mean_s
from omega.reports.wording import UNKNOWN, duration, moment, things
from omega.store.usage import UsageBy, Used

SHOWN: Final = 20
"""Rows of the table; documents have all."""
HEADERS: Final = {
    Budget.CPU_MILLI: "core-h",
    Budget.GPU_SLICES: "GPU-h",
    Budget.MEMORY_MIB: "GiB-h",
    Budget.DISK_MIB: "disk GiB-h",
}
ALWAYS: Final = Budget.CPU_MILLI


def usage_screen(report: UsageReport) -> RenderableType:
    """Return the whole screen."""
    usage = report.usage
    length = duration((usage.until_ms - usage.since_ms) / 1_000)
    return Group(
        Text(f"{length}, from {moment(usage.since_ms)} to {moment(usage.until_ms)}", "bold"),
        Text(),
        _table(report) if usage.rows else Text("Nothing was used."),
        *_notes(report),
    )


def _table(report: UsageReport) -> Table:
    usage = report.usage
    there = [resource for resource, its in hours(usage.total) if its or resource is ALWAYS]
    table = Table(box=None, pad_edge=False, header_style="bold")
    if usage.by is UsageBy.JOB:
        table.add_column("job", justify="right", no_wrap=True)
        table.add_column("name")
        table.add_column("tenant")
    else:
        table.add_column(usage.by.value, min_width=12)
    for header in (
        *(HEADERS[resource] for resource in there),
        "runs",
        "evicted",
        "lost",
        "jobs",
        "wait",
        "longest",
        "waiting",
    ):
        table.add_column(header, justify="right", no_wrap=True)
    for consumer, used in usage.rows[:SHOWN]:
        whose: list[Text] = [cut(consumer.name)]
        if usage.by is UsageBy.JOB:
            whose = [Text(str(consumer.job)), *whose, cut(consumer.tenant or UNKNOWN)]
        table.add_row(*whose, *_figures(used, there))
    if len(usage.rows) > 1:
        blank = [Text()] * (2 if usage.by is UsageBy.JOB else 0)
        table.add_row(
            *blank[:1], Text("all"), *blank[1:], *_figures(usage.total, there), style="bold"
        )
    return table


def _figures(used: Used, there: list[Budget]) -> Iterator[str]:
    held = dict(hours(used))
    yield from (_hours(held[resource]) for resource in there)
    yield from (f"{number:,}" for number in (used.runs, used.evicted, used.lost, used.attempted))
    yield duration(wait_mean_s(used))
    yield duration(wait_longest_s(used))
    yield f"{used.unattempted:,}"


def _hours(number: float) -> str:
    """Write hours so that neither a minute of a core nor a year of a cell is lost."""
    digits = 3 if number < 1 else 1 if number < 1_000 else 0  # noqa: PLR2004 - widths of a column
    return f"{number:,.{digits}f}"


def _notes(report: UsageReport) -> Iterator[Text]:
    usage = report.usage
    yield Text()
    more = len(usage.rows) + usage.left_out - SHOWN
    if more > 0:
        yield Text(
            f"... and {more:,} more; --json and --csv have those of the largest shares", "dim"
        )
    if usage.unknown:
        unknown = things(usage.unknown, "run")
        yield Text(f"Not counted, because their jobs were pruned: {unknown}.", "yellow")
    if report.is_cut:
        yield Text(f"No run on record ended before {moment(usage.oldest_ms)}.", "yellow")
    yield Text("wait, longest: for the first attempt, of the jobs that had it in the time", "dim")
    yield Text("waiting: jobs that still wait for it · evicted: by commits, moves included", "dim")
