"""Jobs as a person reads them.

Goal     Answer "where does it run?" and "why does it not?" at a glance.
Promise  Drawn from values alone: nothing here reads a store.
Source   omega.reports.jobs.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from omega.cli.job.work_rows import work_rows
from omega.lifecycle.states import State
from omega.model.exits import PastExit
from omega.reports.exits import exit_counts, in_words
from omega.reports.jobs import EXITS_MAX, JobReport, phase_rows
from omega.reports.printable import printable, short
from omega.reports.wording import duration, moment, ranges, share, things
from omega.store.status import JobStatus
from omega.terminal.terminal import PrintableConsole

COLOURS: Final = {
    State.PENDING: "yellow",
    State.PLANNING: "cyan",
    State.PARKED: "red",
    State.RUNNING: "green",
    State.SUCCEEDED: "dim",
    State.CANCELLED: "dim",
    State.FAILED: "red",
}
MACHINES_SHOWN: Final = 20
FAILURES_SHOWN: Final = 5


def jobs_table(
    jobs: Sequence[JobStatus],
    done: Mapping[int, float] | None = None,
    reasons: Mapping[int, str] | None = None,
) -> Table:
    """Return a table with one line per job.

    `done` is the part of its steps that a job has made, of those with steps; `reasons` is why jobs
    wait that are not parked.
    """
    done, reasons = done or {}, reasons or {}
    table = Table(box=None, pad_edge=False, header_style="bold")
    # On a narrow console, rich makes the columns that may wrap narrower, the widest first. Here
    # these are the columns with texts of any length, and `cut` keeps their texts from wrapping.
    table.add_column("id", justify="right", no_wrap=True)
    table.add_column("name")
    table.add_column("scheduler", min_width=len("scheduler"))
    table.add_column("state", no_wrap=True)
    table.add_column("placed", justify="right", no_wrap=True)
    if done:
        table.add_column("steps", justify="right", no_wrap=True)
    table.add_column("wait", justify="right", no_wrap=True)
    table.add_column("why")
    for job in jobs:
        table.add_row(
            str(job.id),
            cut(job.name),
            cut(job.scheduler),
            Text(job.state.value, COLOURS[job.state]),
            f"{job.placed:,}/{job.tasks:,}",
            *([share(done[job.id]) if job.id in done else ""] if done else []),
            duration(_wait_s(job)),
            cut(reasons.get(job.id, "") if job.park_reason is None else job.park_reason.value),
        )
    return table


def cut(text: str) -> Text:
    """Return a name on one line, which ends in an ellipsis where it is cut off."""
    return Text(short(text), no_wrap=True, overflow="ellipsis")


def job_screen(report: JobReport) -> RenderableType:
    """Return everything about one job."""
    job, why = report.job, report.why
    facts = Table(box=None, pad_edge=False, show_header=False)
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    facts.add_row("job", Text(f"{job.id}  {short(job.name)}"))
    facts.add_row("state", Text(job.state.value, COLOURS[job.state]))
    stays = "" if job.preemptible else ", not preemptible"
    facts.add_row("scheduler", Text(f"{short(job.scheduler)}, precedence {job.precedence}{stays}"))
    facts.add_row("tenant", Text(short(job.tenant)))
    failed = f", {job.failed:,} failed" if job.failed else ""
    gang = f", a gang of at least {job.minimum:,}" if job.minimum else ""
    facts.add_row(
        "tasks", f"{job.tasks:,}: {job.placed:,} placed, {job.ended:,} of them over{failed}{gang}"
    )
    if job.workers_max is not None:
        helping = things(report.helping, "helper")
        facts.add_row("workers", f"at most {job.workers_max:,}; {helping} at work")
    if job.parent is not None:
        facts.add_row("helps", f"job {job.parent}")
    for phase in phase_rows(report.phases):
        done = f"{phase['done']:,} of {phase['activities']:,} activities"
        facts.add_row("phase", Text(f"{short(str(phase['phase']))}: {done}"))
    for title, text in work_rows(report.work) if report.work is not None else ():
        facts.add_row(title, Text(text))
    if report.exits:
        facts.add_row("exits", _exits(report.exits))
    facts.add_row("attempts", f"{job.attempts:,}, the last {job.fruitless:,} fruitless")
    facts.add_row("submitted", moment(job.submitted_ms))
    facts.add_row("first tried", f"{moment(job.first_leased_ms)} ({duration(_wait_s(job))} later)")
    if job.evicted_by is not None:
        when = moment(job.evicted_ms)
        facts.add_row("evicted", f"last {when}, for job {job.evicted_by}")
    if job.finished_ms is not None:
        facts.add_row("finished", moment(job.finished_ms))
    if why is not None:
        facts.add_row("waits for", Text(why.reason, "red" if job.park_reason else "yellow"))
        facts.add_row("because", Text(printable(why.evidence)))
        facts.add_row("next step", Text(printable(why.next_step)))
    return Group(facts, *_failures(report.exits), *_placements(report.placements))


def print_ids(console: PrintableConsole, ids: Sequence[int]) -> None:
    """Print the ids of the submitted jobs: one, or the first and the last."""
    which = f"job {ids[0]}" if len(ids) == 1 else f"{len(ids):,} jobs, {ids[0]} to {ids[-1]}"
    console.print(f"Submitted {which}.", highlight=False)


def _exits(exits: Sequence[PastExit]) -> Text:
    """Return how many programs ended in which way."""
    told = ", ".join(
        f"{times:,} {cause.replace('_', ' ')}" for cause, times in exit_counts(exits).items()
    )
    return Text(told if len(exits) < EXITS_MAX else f"{told}, of the first {EXITS_MAX:,}")


def _failures(exits: Sequence[PastExit]) -> list[RenderableType]:
    """Return a table of the last tasks that failed."""
    failed = [it for it in exits if not it.exit.is_success]
    if not failed:
        return []
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("task", justify="right", no_wrap=True)
    table.add_column("machine", overflow="fold")
    table.add_column("ended", no_wrap=True)
    table.add_column("restarts", justify="right", no_wrap=True)
    table.add_column("because", overflow="fold")
    for it in failed[:FAILURES_SHOWN]:
        detail = f": {printable(it.exit.detail)}" if it.exit.detail else ""
        because = f"{in_words(it.exit)}{detail}"
        table.add_row(
            str(it.task),
            Text(short(it.machine)),
            moment(it.ended_ms),
            f"{it.exit.restarts:,}",
            Text(because, "red"),
        )
    rest = len(failed) - FAILURES_SHOWN
    more = [Text(f"... and {things(rest, 'task')} more; --json has all", "dim")] if rest > 0 else []
    return [Text(), table, *more]


def _placements(placements: Mapping[int, str]) -> list[RenderableType]:
    if not placements:
        return []
    tasks: dict[str, list[int]] = {}
    for task, machine in sorted(placements.items()):
        tasks.setdefault(machine, []).append(task)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("machine")
    table.add_column("task numbers", overflow="fold")
    for machine, its in list(tasks.items())[:MACHINES_SHOWN]:
        table.add_row(Text(short(machine)), ranges(its))
    rest = len(tasks) - MACHINES_SHOWN
    more = (
        [Text(f"... and {things(rest, 'machine')} more; --json has all", "dim")] if rest > 0 else []
    )
    return [Text(), table, *more]


def _wait_s(job: JobStatus) -> float | None:
    if job.first_leased_ms is None:
        return None
    return (job.first_leased_ms - job.submitted_ms) / 1_000
