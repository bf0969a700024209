"""Jobs for people and for scripts.

Goal     Say what became of a job, and for one that waits: why, how we know, and what to do.
Promise  One dominant reason a job. The document has every field of the status.
Source   The kinds of reason of omega.lifecycle.states.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import Enum
from shlex import quote
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from omega.cli.printable import printable, short
from omega.cli.quota_screens import left_for
from omega.cli.terminal import PrintableConsole
from omega.cli.wording import UNKNOWN, duration, things
from omega.lifecycle.states import ParkReason, State
from omega.model.quotas import QuotaUse
from omega.model.training import TrainingProgress
from omega.store.status import JobStatus

COLOURS: Final = {
    State.PENDING: "yellow",
    State.PLANNING: "cyan",
    State.PARKED: "red",
    State.RUNNING: "green",
    State.SUCCEEDED: "dim",
    State.CANCELLED: "dim",
}
NEXT_STEPS: Final = {
    ParkReason.NEVER_FITS: "Ask for less, or load a machine that has as much: omega cell load.",
    ParkReason.UNKNOWN_ATTRIBUTE: "Check the attribute's spelling against: omega cell show.",
    ParkReason.NO_MACHINE_MATCHES: "Compare the constraint with the values in: omega cell show.",
    ParkReason.GANG_TOO_LARGE: "Lower the gang's minimum or its tasks' size; or load machines.",
    ParkReason.NO_ROOM: "Nothing: it is tried again when room is freed. Precedence would help.",
    ParkReason.CONFLICTS: "Nothing: it is tried again soon. Fewer replicas, or the fit rule, help.",
    ParkReason.OVER_QUOTA: "Nothing: it is tried again when enough is left. See: omega quota list.",
    ParkReason.UNREADABLE: "Cancel it and submit it anew; then run: omega db verify.",
}
MACHINES_SHOWN: Final = 20


@dataclass(frozen=True)
class Why:
    """Why a job is not running, in three sentences at most."""

    reason: str
    evidence: str
    next_step: str


def why_waiting(
    job: JobStatus, kinds_running: Collection[str], quotas: Sequence[QuotaUse] = ()
) -> Why | None:
    """Return the dominant reason why a job is not fully placed; None if it is.

    Of a job that met its quota, what is left by now belongs to the evidence.
    """
    waiting = job.state in (State.PENDING, State.PLANNING)
    if job.state is State.PARKED:
        assert job.park_reason is not None
        evidence = job.park_detail or UNKNOWN
        if job.park_reason is ParkReason.OVER_QUOTA:
            evidence = "; ".join([evidence, *left_for(job.tenant, job.scheduler, quotas)])
        return Why(job.park_reason.value, evidence, NEXT_STEPS[job.park_reason])
    if waiting and job.scheduler not in kinds_running:
        return Why(
            "no_scheduler",
            f"No {job.scheduler} scheduler has been heard of lately.",
            f"omega scheduler run {quote(job.scheduler)}",
        )
    if job.state is State.PLANNING:
        return Why("being_planned", f"{job.lease_holder} holds its lease.", "Wait a moment.")
    if job.state is State.PENDING and job.fruitless:
        tried = things(job.fruitless, "attempt")
        return Why("backing_off", f"{tried} in a row placed nothing.", "Wait: it is tried again.")
    if job.state is State.PENDING:
        return Why("queued", "Its turn has not come yet.", "Wait, or start another replica.")
    return None


def jobs_table(jobs: Sequence[JobStatus]) -> Table:
    """Return a line a job."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    # Where there is no room for all, rich takes it from the columns that may wrap, the widest
    # first: these are the ones with texts of any length, which are cut instead of wrapped.
    table.add_column("id", justify="right", no_wrap=True)
    table.add_column("name")
    table.add_column("scheduler", min_width=len("scheduler"))
    table.add_column("state", no_wrap=True)
    table.add_column("placed", justify="right", no_wrap=True)
    table.add_column("wait", justify="right", no_wrap=True)
    table.add_column("why")
    for job in jobs:
        table.add_row(
            str(job.id),
            cut(job.name),
            cut(job.scheduler),
            Text(job.state.value, COLOURS[job.state]),
            f"{job.placed:,}/{job.tasks:,}",
            duration(_wait_s(job)),
            cut("" if job.park_reason is None else job.park_reason.value),
        )
    return table


def cut(text: str) -> Text:
    """Return a name on one line, which ends in an ellipsis where it is cut off."""
    return Text(short(text), no_wrap=True, overflow="ellipsis")


def job_screen(
    job: JobStatus, placements: Mapping[int, str], training: TrainingProgress, why: Why | None
) -> RenderableType:
    """Return everything about one job; `training` holds it, or nothing if it trains nothing."""
    facts = Table(box=None, pad_edge=False, show_header=False)
    facts.add_column(style="bold")
    facts.add_column(overflow="fold")
    facts.add_row("job", Text(f"{job.id}  {short(job.name)}"))
    facts.add_row("state", Text(job.state.value, COLOURS[job.state]))
    facts.add_row("scheduler", Text(f"{short(job.scheduler)}, precedence {job.precedence}"))
    facts.add_row("tenant", Text(short(job.tenant)))
    gang = f", a gang of at least {job.minimum:,}" if job.minimum else ""
    facts.add_row(
        "tasks", f"{job.tasks:,}: {job.placed:,} placed, {job.ended:,} of them over{gang}"
    )
    if len(training):
        facts.add_row("training", Text(short(training.model[0])))
        made = f"{training.done[0]:,} of {training.wanted[0]:,}"
        facts.add_row("steps", f"{made} in {duration(training.run_ms[0] / 1_000)}")
    facts.add_row("attempts", f"{job.attempts:,}, the last {job.fruitless:,} fruitless")
    facts.add_row("submitted", moment(job.submitted_ms))
    facts.add_row("first tried", f"{moment(job.first_leased_ms)} ({duration(_wait_s(job))} later)")
    if job.finished_ms is not None:
        facts.add_row("finished", moment(job.finished_ms))
    if why is not None:
        facts.add_row("waits for", Text(why.reason, "red" if job.park_reason else "yellow"))
        facts.add_row("because", Text(printable(why.evidence)))
        facts.add_row("next step", Text(printable(why.next_step)))
    return Group(facts, *_placements(placements))


def row_of(job: JobStatus) -> dict[str, object]:
    """Return the status as JSON types."""
    return {
        name: value.value if isinstance(value, Enum) else value
        for name, value in asdict(job).items()
    }


def training_row(training: TrainingProgress) -> dict[str, object] | None:
    """Return how far one job's training has come as JSON types; None if it trains nothing."""
    if not len(training):
        return None
    return {
        "model": training.model[0],
        "steps": int(training.wanted[0]),
        "done": int(training.done[0]),
        "run_ms": int(training.run_ms[0]),
    }


def print_ids(console: PrintableConsole, ids: Sequence[int]) -> None:
    """Say which jobs were made; neighbours as a range."""
    which = f"job {ids[0]}" if len(ids) == 1 else f"{len(ids):,} jobs, {ids[0]} to {ids[-1]}"
    console.print(f"Submitted {which}.", highlight=False)


def _placements(placements: Mapping[int, str]) -> list[RenderableType]:
    if not placements:
        return []
    tasks: dict[str, list[int]] = {}
    for task, machine in sorted(placements.items()):
        tasks.setdefault(machine, []).append(task)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("machine")
    table.add_column("tasks", overflow="fold")
    for machine, its in list(tasks.items())[:MACHINES_SHOWN]:
        table.add_row(Text(short(machine)), ranges(its))
    rest = len(tasks) - MACHINES_SHOWN
    more = (
        [Text(f"... and {things(rest, 'machine')} more; --json has all", "dim")] if rest > 0 else []
    )
    return [Text(), table, *more]


def ranges(numbers: Sequence[int]) -> str:
    """Write ascending numbers with neighbours drawn together: 0-3, 7."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ", ".join("-".join(map(str, part)) for part in parts)


def _wait_s(job: JobStatus) -> float | None:
    if job.first_leased_ms is None:
        return None
    return (job.first_leased_ms - job.submitted_ms) / 1_000


def moment(milliseconds: int | None) -> str:
    """Write a time of the calendar, in UTC."""
    if milliseconds is None:
        return UNKNOWN
    return datetime.fromtimestamp(milliseconds / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
