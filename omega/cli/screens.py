"""The screens of `status` and `demo`: schedulers, cell and queue.

Goal     Show on one screen of 80 columns who schedules how well, how full the cell is, what waits.
Promise  Drawn from values alone; nothing here reads a store or a clock.
Source   The measures of Omega (EuroSys 2013), section 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from omega.cli.job_screens import COLOURS
from omega.cli.processes import ProcessState, SchedulerLine
from omega.cli.wording import count, duration, fraction, share, things
from omega.lifecycle.states import State
from omega.model.resources import GPU_SLICES, Kind
from omega.store.base import CellUse

PROCESS_COLOURS: Final = {
    ProcessState.RUNNING: "green",
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
WIDE: Final = 100
MUCH_CONFLICT: Final = 0.5
BUSY: Final = 0.9
FULL: Final = 0.9
GPU: Final = "gpu"

MIB_PER_TIB: Final = 1_024**2
UNITS: Final = {
    Kind.CPU_MILLI.column: ("cpu", 1_000.0, "cores"),
    Kind.MEMORY_MIB.column: ("memory", float(MIB_PER_TIB), "TiB"),
    Kind.DISK_MIB.column: ("disk", float(MIB_PER_TIB), "TiB"),
    GPU: ("gpu", float(GPU_SLICES), "devices"),
}


@dataclass(frozen=True)
class Share:
    """How much of one resource is taken."""

    capacity: int
    used: int

    @property
    def part(self) -> float | None:
        """The share, None where there is none of it."""
        return self.used / self.capacity if self.capacity else None


def shares(use: CellUse) -> dict[str, Share]:
    """Return the use of each resource, with all device slots as one, named gpu."""
    devices = [kind.column for kind in Kind if kind.is_device]
    plain = {
        kind.column: Share(use.capacity.get(kind.column, 0), use.used.get(kind.column, 0))
        for kind in Kind
        if not kind.is_device
    }
    gpu = Share(
        sum(use.capacity.get(column, 0) for column in devices),
        sum(use.used.get(column, 0) for column in devices),
    )
    return {**plain, GPU: gpu}


def allocated(use: CellUse) -> dict[str, float]:
    """Return the share of each kind in use, and `gpu` over all slots; kinds not there are 0."""
    each = {
        kind.column: Share(use.capacity.get(kind.column, 0), use.used.get(kind.column, 0))
        for kind in Kind
    }
    return {
        name: round(one.part or 0.0, 6) for name, one in {**each, GPU: shares(use)[GPU]}.items()
    }


def schedulers_table(
    lines: Sequence[SchedulerLine], total: SchedulerLine, *, width: int, with_state: bool = True
) -> Table:
    """Return a line a scheduler, and one for all of them."""
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="bold", expand=True)
    table.add_column("scheduler", no_wrap=True, ratio=1, overflow="ellipsis")
    if with_state:
        table.add_column("state", no_wrap=True)
    for header in WIDE_HEADERS if width >= WIDE else NARROW_HEADERS:
        table.add_column(header, justify="right", no_wrap=True)
    for line in lines:
        state = [Text(line.state.value, PROCESS_COLOURS[line.state])] if with_state else []
        table.add_row(Text(line.name), *state, *_measures(line))
    if len(lines) > 1:
        blank = [Text()] if with_state else []
        table.add_row(Text("all"), *blank, *_measures(total), style="bold")
    return table


LEGEND: Final = Text(
    "conflicts per conflict-free transaction · busy: share of time deciding · p50, p90: wait for"
    " the first attempt · view: its age",
    "dim",
)


def cell_table(use: CellUse, width: int) -> RenderableType:
    """Return a bar for each resource that the cell has."""
    table = Table(box=None, pad_edge=False, padding=(0, 1), show_header=False)
    table.add_column(style="bold", width=7)
    table.add_column()
    table.add_column(justify="right", width=5)
    table.add_column(justify="right")
    for name, resource in shares(use).items():
        if not resource.capacity:
            continue
        label, unit, plural = UNITS[name]
        part = resource.part or 0.0
        table.add_row(
            label,
            _bar(part, max(10, min(60, width - 48))),
            share(part),
            f"{count(resource.used / unit)} of {count(resource.capacity / unit)} {plural}",
        )
    return table


def cell_line(use: CellUse) -> Text:
    """Say in one line how large the cell is and what runs."""
    closed = use.machines - use.open
    text = Text(f"{things(use.machines, 'machine')}", "bold")
    if closed:
        text.append(f", {closed:,} closed", "red")
    return text.append(f" · {things(use.live_allocations, 'task')} running", "not bold")


def queue_line(use: CellUse) -> Text:
    """Count the jobs by state, those that occur, and the parked ones by reason."""
    text = Text()
    for state in State:
        jobs = use.jobs_by_state.get(state, 0)
        if not jobs:
            continue
        text.append(" · " if text else "")
        text.append(f"{jobs:,} {state.value}", COLOURS[state])
        if state is State.PARKED:
            text.append(f" ({_reasons(use)})", COLOURS[state])
    return text or Text("no jobs yet", "dim")


def verdicts_line(conflicts: Mapping[str, int]) -> Text:
    """Count the refused claims by verdict."""
    if not sum(conflicts.values()):
        return Text("none", "green")
    ordered = sorted(conflicts.items(), key=lambda one: -one[1])
    return Text(" · ".join(f"{claims:,} {verdict}" for verdict, claims in ordered if claims))


def _measures(line: SchedulerLine) -> tuple[Text, ...]:
    conflict = line.conflict_fraction or 0.0
    return (
        Text(count(line.jobs_per_second)),
        Text(count(line.tasks_per_second)),
        Text(fraction(line.conflict_fraction), "red" if conflict > MUCH_CONFLICT else ""),
        Text(share(line.busyness), "yellow" if (line.busyness or 0.0) > BUSY else ""),
        Text(duration(line.wait_p50_s)),
        Text(duration(line.wait_p90_s)),
        Text(duration(line.view_age_s)),
    )


def _reasons(use: CellUse) -> str:
    ordered = sorted(use.parked_by_reason.items(), key=lambda one: -one[1])
    return ", ".join(f"{jobs:,} {reason.value}" for reason, jobs in ordered)


def _bar(part: float, width: int) -> Text:
    filled = round(part * width)
    colour = "red" if part > FULL else "green"
    return Text("█" * filled, colour).append("░" * (width - filled), "bright_black")
