"""The screens of `status` and `demo`: schedulers, cell and queue.

Goal     Show on one screen of 80 columns each scheduler's figures, the cell's use and the queue.
Promise  Drawn from values alone; nothing here reads a store or a clock.
Source   The measures of Omega (EuroSys 2013), section 4.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from omega.cli.job.screens import COLOURS, cut
from omega.lifecycle.states import State
from omega.model.resources import GPU_SLICES, Kind
from omega.reports.cell import GPU, shares
from omega.reports.printable import short
from omega.reports.processes import ProcessState, SchedulerLine
from omega.reports.wording import count, duration, fraction, share, things
from omega.store.status import CellUse

PROCESS_COLOURS: Final = {
    ProcessState.RUNNING: "green",
    ProcessState.DECIDING: "yellow",
    ProcessState.STARTING: "yellow",
    ProcessState.SILENT: "red",
    ProcessState.CRASHED: "red",
    ProcessState.ENDED: "dim",
}
NARROW_HEADERS: Final = ("jobs/s", "tasks/s", "confl.", "busy", "p50", "p90", "view")
WIDE_HEADERS: Final = (
    "jobs/s",
    "tasks/s",
    "conflicts",
    "busy",
    "wait p50",
    "wait p90",
    "view age",
)
WIDE: Final = 92
VERDICTS_SHOWN: Final = 12
"""More than there are verdicts; the reports of other packages' processes may hold any names."""
MUCH_CONFLICT: Final = 0.5
SOME_CONFLICT: Final = 0.1
BUSY: Final = 0.9
FULL: Final = 0.9

MIB_PER_TIB: Final = 1_024**2
UNITS: Final = {
    Kind.CPU_MILLI.column: ("cpu", 1_000.0, "cores"),
    Kind.MEMORY_MIB.column: ("memory", float(MIB_PER_TIB), "TiB"),
    Kind.DISK_MIB.column: ("disk", float(MIB_PER_TIB), "TiB"),
    GPU: ("gpu", float(GPU_SLICES), "devices"),
}


def schedulers_table(
    lines: Sequence[SchedulerLine], total: SchedulerLine, *, width: int, with_state: bool = True
) -> Table:
    """Return a table with one line per scheduler, and one for all of them."""
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold", expand=True)
    table.add_column("scheduler")  # the only column that becomes narrower on a narrow console
    if with_state:
        table.add_column("state", no_wrap=True)
    for header in WIDE_HEADERS if width >= WIDE else NARROW_HEADERS:
        table.add_column(header, justify="right", no_wrap=True)
    for line in lines:
        state = [_state(line)] if with_state else []
        name = cut(line.name)
        table.add_row(name, *state, *_measures(line))
    if len(lines) > 1:
        blank = [Text()] if with_state else []
        table.add_row(Text("all"), *blank, *_measures(total), style="bold")
    return table


LEGEND: Final = Group(
    Text(
        "conflicts per conflict-free transaction · busy: time deciding and committing",
        "dim",
    ),
    Text(
        "p50, p90: wait for a job's first attempt · view: its age before each refresh",
        "dim",
    ),
)


def bar_width(width: int) -> int:
    """Return the length of bars on a screen of so many columns."""
    return max(10, min(60, width - 50))


def cell_table(
    use: CellUse, width: int, *, above: Sequence[tuple[str, Text, Text, str]] = ()
) -> RenderableType:
    """Return a bar for each resource that the cell has.

    Each of the rows `above` the bars is (name, bar, figure, remark).
    """
    table = Table(box=None, pad_edge=False, padding=(0, 1), show_header=False)
    table.add_column(style="bold", width=9)
    table.add_column()
    table.add_column(justify="right", width=5)
    table.add_column(justify="right")
    for row in above:
        table.add_row(*row)
    for name, resource in shares(use).items():
        if not resource.capacity:
            continue
        label, unit, plural = UNITS[name]
        part = resource.part or 0.0
        table.add_row(
            label,
            _bar(part, bar_width(width)),
            share(part),
            f"{count(resource.used / unit)} of {count(resource.capacity / unit)} {plural}",
        )
    return table


def cell_line(use: CellUse) -> Text:
    """Return one line with the number of machines and of running tasks."""
    closed = use.machines - use.open
    text = Text(f"{things(use.machines, 'machine')}", "bold")
    if closed:
        text.append(f", {closed:,} closed", "red")
    return text.append(f" · {things(use.live_allocations, 'task')} running", "not bold")


def queue_line(use: CellUse) -> Text:
    """Return the number of jobs by state, for states that occur, and of parked jobs by reason."""
    text = Text()
    for state in State:
        jobs = use.jobs_by_state.get(state, 0)
        if not jobs:
            continue
        text.append(" · " if text else "")
        text.append(f"{jobs:,} {state.value}", COLOURS[state])
        if state is State.PARKED:
            text.append(f" ({reasons(use)})", COLOURS[state])
    return text or Text("no jobs yet", "dim")


def verdicts_line(conflicts: Mapping[str, int]) -> Text:
    """Return the number of refused claims by verdict, as one line."""
    if not sum(conflicts.values()):
        return Text("none", "green")
    ordered = sorted(conflicts.items(), key=lambda one: -one[1])
    told = [f"{claims:,} {short(verdict)}" for verdict, claims in ordered if claims]
    more = len(told) - VERDICTS_SHOWN
    return Text(" · ".join(told[:VERDICTS_SHOWN]) + (f" and {more:,} more" if more > 0 else ""))


def conflict_colour(conflict: float | None) -> str:
    """Return the colour of a conflict fraction."""
    if conflict is None or conflict < SOME_CONFLICT:
        return ""
    return "red" if conflict > MUCH_CONFLICT else "yellow"


def _measures(line: SchedulerLine) -> tuple[Text, ...]:
    return (
        Text(count(line.jobs_per_second)),
        Text(count(line.tasks_per_second)),
        Text(fraction(line.conflict_fraction), conflict_colour(line.conflict_fraction)),
        Text(share(line.busyness), "yellow" if (line.busyness or 0.0) > BUSY else ""),
        Text(duration(line.wait_p50_s)),
        Text(duration(line.wait_p90_s)),
        Text(duration(line.view_age_s)),
    )


def reasons(use: CellUse) -> str:
    """Count the parked jobs by reason, the most frequent first."""
    ordered = sorted(use.parked_by_reason.items(), key=lambda one: -one[1])
    return ", ".join(f"{jobs:,} {reason.value}" for reason, jobs in ordered)


def _state(line: SchedulerLine) -> Text:
    """Return the state, and for how long a scheduler has been silent or deciding."""
    since = f" {duration(line.since_s)}" if line.since_s is not None else ""
    return Text(line.state.value + since, PROCESS_COLOURS[line.state])


def _bar(part: float, width: int) -> Text:
    """Return a bar that can be read without colours, too."""
    filled = round(part * width)
    colour = "yellow" if part > FULL else "green"
    return Text("━" * filled, colour).append("·" * (width - filled), "bright_black")
