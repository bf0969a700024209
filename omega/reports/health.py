"""Whether one process is ready, by its last report.

Goal     Let a container platform or a service manager ask a process's health from outside of it.
Promise  Pure: the report, the limits and the processes of this machine are passed in. A process is
         ready if it runs here, reported lately and, if it is a scheduler, read the cell lately.
Source   JobReader.reports; omega.metrics.facts.
"""

from collections.abc import Callable
from dataclasses import dataclass

from omega.metrics.facts import number_in
from omega.reports.processes import NOT_SCHEDULERS, main_loop_ms_ago, name_of
from omega.store.status import ProcessReport
from omega.workload.arrivals import MS_PER_S


@dataclass(frozen=True, kw_only=True)
class HealthLimits:
    """How long ago a process that is ready may have reported and read the cell."""

    report_ms: int
    view_ms: int


def view_age_ms(report: ProcessReport) -> float | None:
    """Return how long ago a process read the cell; None if it has not, or reports none of it."""
    refreshed_s_ago = number_in(report.facts, "refreshed_s_ago")
    return None if refreshed_s_ago is None else refreshed_s_ago * MS_PER_S + report.seen_ms_ago


def problem_with(
    report: ProcessReport, limits: HealthLimits, runs_here: Callable[[int], bool]
) -> str | None:
    """Return the reason why a process is not ready, as a sentence; None if it is ready."""
    name, age_ms = name_of(report.kind, report.replica), view_age_ms(report)
    if (seen_ms_ago := main_loop_ms_ago(report)) > limits.report_ms:
        return f"{name} has not reported for {_seconds(seen_ms_ago)}"
    if not runs_here(report.pid):
        return f"{name} reports as process {report.pid}, which does not run on this machine"
    if report.kind in NOT_SCHEDULERS:
        return None
    if age_ms is None:
        return f"{name} has not read the cell yet"
    if age_ms > limits.view_ms:
        return f"{name} has not read the cell for {_seconds(age_ms)}"
    return None


def ready_line(report: ProcessReport) -> str:
    """Return the line about a process that is ready."""
    age_ms = view_age_ms(report)
    read = "" if age_ms is None else f" and read the cell {_seconds(age_ms)} ago"
    name = name_of(report.kind, report.replica)
    return f"{name} is ready: it reported {_seconds(report.seen_ms_ago)} ago{read}."


def _seconds(milliseconds: float) -> str:
    return f"{milliseconds / MS_PER_S:.1f} s"
