"""The reports of a cell's processes, as lines of a screen.

Goal     Turn the reports in the store into rates and states that a person understands.
Promise  A process that has not reported for SILENT_AFTER_MS is shown as silent, whatever its last
         report holds, and no longer after LISTED_MS. One whose heartbeat reports while its main
         loop does not is shown as deciding. What a process did before it crashed still counts in a
         `LatestFacts`.
Source   JobReader.reports; omega.metrics.facts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from omega.metrics.facts import Facts, merge, number_in
from omega.store.status import ProcessReport

SILENT_AFTER_MS: Final = 10_000
LISTED_MS: Final = 3_600_000
"""For so long a silent process is listed: it may have been killed."""
NODES: Final = "nodes"
"""The kind under which virtual nodes report ..."""
AGENT: Final = "agent"
"""... and agents, each under its machine's name; every other kind is a scheduler's."""
NOT_SCHEDULERS: Final = frozenset({NODES, AGENT})


class ProcessState(Enum):
    """The state of a process, as far as reports show it."""

    RUNNING = "running"
    DECIDING = "deciding"
    STARTING = "starting"
    SILENT = "silent"
    CRASHED = "crashed"
    ENDED = "ended"


@dataclass(frozen=True, kw_only=True)
class SchedulerLine:
    """One scheduler's figures; None where there is no figure yet."""

    name: str
    state: ProcessState
    jobs_per_second: float | None = None
    tasks_per_second: float | None = None
    conflict_fraction: float | None = None
    busyness: float | None = None
    wait_p50_s: float | None = None
    wait_p90_s: float | None = None
    view_age_s: float | None = None
    since_s: float | None = None
    """For how long it has been silent or deciding."""


def is_alive(report: ProcessReport) -> bool:
    """Return whether a process has reported in the last SILENT_AFTER_MS."""
    return report.seen_ms_ago < SILENT_AFTER_MS


def main_loop_ms_ago(report: ProcessReport) -> float:
    """Return how long ago the main loop of a process reported, not only its heartbeat."""
    return report.seen_ms_ago + 1_000 * (number_in(report.facts, "deciding_s") or 0.0)


def state_of(report: ProcessReport) -> ProcessState:
    """Return the state of a process by its report."""
    if not is_alive(report):
        return ProcessState.SILENT
    is_late = main_loop_ms_ago(report) >= SILENT_AFTER_MS
    return ProcessState.DECIDING if is_late else ProcessState.RUNNING


def is_listed(report: ProcessReport) -> bool:
    """Return whether a screen shows a process: not if it has been silent for LISTED_MS."""
    return report.seen_ms_ago < LISTED_MS


def live_kinds(reports: Iterable[ProcessReport]) -> set[str]:
    """Return the kinds of scheduler of which a replica has reported lately."""
    return {report.kind for report in reports if is_alive(report)} - NOT_SCHEDULERS


def name_of(kind: str, replica: str) -> str:
    """Return the name of a replica on a screen."""
    return f"{kind} {replica}"


def line_of(
    name: str, state: ProcessState, facts: Mapping[str, Any], *, recent: bool
) -> SchedulerLine:
    """Return a scheduler's line: rates of the last seconds, or over its whole life."""
    measured: Mapping[str, Any] = merge(facts)["measures"]
    suffix = "_now" if recent else ""
    return SchedulerLine(
        name=name,
        state=state,
        jobs_per_second=measured.get(f"jobs_per_s{suffix}"),
        tasks_per_second=measured.get(f"tasks_per_s{suffix}"),
        conflict_fraction=measured.get(f"conflict_fraction{suffix}"),
        busyness=measured.get(f"busy{suffix}"),
        wait_p50_s=measured.get("wait_p50_s"),
        wait_p90_s=measured.get("wait_p90_s"),
        view_age_s=measured.get("view_age_p50_s"),
    )


def scheduler_line(name: str, report: ProcessReport, *, recent: bool = True) -> SchedulerLine:
    """Return the line of a scheduler that has reported; a silent one has no rates of now."""
    state = state_of(report)
    line = line_of(name, state, report.facts, recent=recent)
    if state is ProcessState.RUNNING:
        return line
    return replace(line, since_s=main_loop_ms_ago(report) / 1_000)


def lines_of(reports: Sequence[ProcessReport], *, recent: bool = True) -> list[SchedulerLine]:
    """Return a line for each scheduler that has reported, by name."""
    return [
        scheduler_line(name_of(report.kind, report.replica), report, recent=recent)
        for report in sorted(reports, key=lambda report: (report.kind, report.replica))
        if report.kind not in NOT_SCHEDULERS and is_listed(report)
    ]


def total_line(facts: Iterable[Mapping[str, Any]], *, recent: bool = True) -> SchedulerLine:
    """Return the line of all schedulers as if one had done it all."""
    return line_of("all", ProcessState.RUNNING, merge(*facts), recent=recent)


def conflicts_of(facts: Mapping[str, Any]) -> dict[str, int]:
    """Return the number of refused claims by verdict, the most frequent first."""
    refused: Mapping[str, float] = facts["totals"].get("refused", {})
    return {v: int(n) for v, n in sorted(refused.items(), key=lambda one: -one[1])}


class LatestFacts:
    """The last facts of every process, also of those that have crashed or ended."""

    def __init__(self) -> None:
        self._facts: dict[tuple[str, str, int], Mapping[str, Any]] = {}

    def note(self, reports: Iterable[ProcessReport]) -> None:
        """Record the current reports of the processes."""
        for report in reports:
            self._facts[report.kind, report.replica, report.pid] = report.facts

    def of(self, kind: str, replica: str) -> Facts:
        """Return the facts of one replica, summed over its restarts."""
        return merge(*(f for (k, r, _), f in self._facts.items() if (k, r) == (kind, replica)))

    def schedulers(self) -> Facts:
        """Return the facts of all schedulers as if one had done it all."""
        return merge(
            *(facts for (kind, _, _), facts in self._facts.items() if kind not in NOT_SCHEDULERS)
        )
