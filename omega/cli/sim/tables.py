"""What `omega sim run` shows of a result.

Goal     Show the measures that most questions are about, a line for each workload.
Promise  The figures are those of the JSON document. What is not known is a dash.
Source   omega.sim.results.
"""

from collections.abc import Mapping
from typing import Any, Final

from rich.table import Table

from omega.reports.wording import UNKNOWN
from omega.sim.live_run import START
from omega.sim.results import Result

Column = tuple[str, int]
"""A measure, and the digits after the point."""
OF_WORKLOADS: Final[Mapping[str, Column]] = {
    "jobs": ("jobs", 0),
    "unfinished": ("jobs_unfinished", 0),
    "tasks placed": ("tasks_placed", 0),
    "busy": ("busy", 3),
    "conflicts": ("conflict_fraction", 3),
    "wait s": ("wait_mean_s", 3),
    "p90 s": ("wait_p90_s", 3),
}
OF_EVICTIONS: Final[Mapping[str, Column]] = {
    "evicted": ("tasks_evicted", 0),
    "an hour": ("evictions_per_hour", 1),
    "of jobs": ("jobs_evicted", 0),
    "whole again s": ("whole_again_mean_s", 3),
    "p90 s": ("whole_again_p90_s", 3),
    "not yet": ("jobs_not_whole_again", 0),
}


def workloads_table(workloads: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return the measures of each workload."""
    table = _empty("workload", [*OF_WORKLOADS])
    for name, told in workloads.items():
        table.add_row(name, *_figures(told, OF_WORKLOADS))
    return table


def evictions_table(result: Result) -> Table:
    """Return, for each workload, what it lost to claims of others, and to whose."""
    losers = {**result.workloads, START: result.start}
    evictors = [name for name in losers if any(_by(told, name) for told in losers.values())]
    table = _empty("tasks evicted of", [*(f"by {name}" for name in evictors), *OF_EVICTIONS])
    for name, told in losers.items():
        by = (f"{_by(told, evictor):,}" for evictor in evictors)
        table.add_row(name, *by, *_figures(told, OF_EVICTIONS))
    return table


def _by(told: Mapping[str, Any], evictor: str) -> int:
    return int(told["tasks_evicted_by"].get(evictor, 0))


def _empty(first: str, headers: list[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(first)
    for header in headers:
        table.add_column(header, justify="right")
    return table


def _figures(told: Mapping[str, Any], columns: Mapping[str, Column]) -> list[str]:
    return [
        UNKNOWN if told[key] is None else f"{told[key]:,.{digits}f}"
        for key, digits in columns.values()
    ]
