"""The demo's screen, and its lines where the output is no terminal.

Goal     Show several schedulers while they compete for one cell.
Promise  The screen fits 80 columns. A terminal shows one screen that is updated; any other output
         gets a line every few seconds.
Source   omega.cli.screens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from omega.cli.demo.conflict_strip import Trail, strip
from omega.cli.job.screens import COLOURS
from omega.cli.screens import (
    LEGEND,
    bar_width,
    cell_table,
    conflict_colour,
    reasons,
    schedulers_table,
)
from omega.lifecycle.states import State
from omega.model.resources import Kind
from omega.reports.cell import GPU, shares
from omega.reports.printable import printable
from omega.reports.processes import SchedulerLine
from omega.reports.wording import clock, count, fraction, share, things
from omega.store.status import CellUse
from omega.terminal.terminal import PrintableConsole

EVENTS_SHOWN: Final = 2
LINE_INTERVAL_S: Final = 5.0
PANEL_FRAME: Final = 4
PHASES: Final = {
    "start": "schedulers start",
    "load": "jobs arrive",
    "drain": "the queue runs dry",
    "settle": "the last reports come in",
}


@dataclass(frozen=True)
class Moment:
    """The values that the screen shows at one moment."""

    phase: str
    elapsed_s: float
    seconds: float
    submitted: int
    to_submit: int
    lines: Sequence[SchedulerLine]
    total: SchedulerLine
    use: CellUse
    events: Sequence[str]


class Screen:
    """Shows moments. It is a context manager, because the live display must be stopped."""

    def __init__(self, console: PrintableConsole) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._trail: list[tuple[float, float]] = []
        self._loaded: list[Moment] = []
        self._phase = ""
        self._line_due_s = 0.0
        self._told = 0

    def __enter__(self) -> "Screen":
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._console.is_terminal:
            self._live.stop()

    def show(self, moment: Moment) -> None:
        """Draw the moment, or write its line if one is due."""
        if moment.phase == "load":
            self._loaded = [moment]
        if moment.phase != "start" and moment.total.conflict_fraction is not None:
            self._trail.append((moment.elapsed_s, moment.total.conflict_fraction))
        if self._console.is_terminal:
            self._live.update(picture(moment, self._console.width, self._trail), refresh=True)
            return
        for event in moment.events[self._told :]:
            self._console.print(printable(event), highlight=False, soft_wrap=True)
        self._told = len(moment.events)
        if moment.phase != self._phase or moment.elapsed_s >= self._line_due_s:
            self._phase = moment.phase
            self._line_due_s = moment.elapsed_s + LINE_INTERVAL_S
            self._console.print(line(moment), highlight=False, soft_wrap=True)

    def of_the_load(self, width: int) -> list[RenderableType]:
        """Return the last screen of the phase `load` as the only item; nothing without one."""
        trail = self._trail
        return [
            picture(moment, width, [point for point in trail if point[0] <= moment.elapsed_s])
            for moment in self._loaded
        ]


def picture(moment: Moment, width: int, trail: Trail = ()) -> RenderableType:
    """Return the whole screen."""
    inside = width - PANEL_FRAME
    return Panel(
        Group(
            _head(moment),
            Rule(style="bright_black"),
            schedulers_table(moment.lines, moment.total, width=inside),
            Rule(style="bright_black"),
            cell_table(moment.use, inside, above=[_conflicts(moment, trail, bar_width(inside))]),
            _labelled("tasks", Text(f"{moment.use.live_allocations:,} running")),
            _labelled("jobs", _jobs(moment.use)),
            Rule(style="bright_black"),
            *(
                Text(printable(event), "dim", no_wrap=True, overflow="ellipsis")
                for event in _last(moment)
            ),
            LEGEND,
        ),
        title=Text.assemble(
            ("omega demo", "bold cyan"),
            (f" · {things(moment.use.machines, 'machine')}", "default"),
        ),
        title_align="left",
        border_style="bright_black",
    )


def line(moment: Moment) -> str:
    """Return the moment in one line."""
    parts = shares(moment.use)
    gpu = parts[GPU].part
    return "  ".join(
        [
            clock(moment.elapsed_s),
            moment.phase,
            f"{count(moment.total.tasks_per_second)} tasks/s",
            f"conflict {fraction(moment.total.conflict_fraction)}",
            f"cpu {share(parts[Kind.CPU_MILLI.column].part)}",
            f"memory {share(parts[Kind.MEMORY_MIB.column].part)}",
            *([f"gpu {share(gpu)}"] if gpu is not None else []),
            f"waiting {moment.use.jobs_waiting:,}",
            f"parked {moment.use.jobs_by_state.get(State.PARKED, 0):,}",
        ]
    )


def _head(moment: Moment) -> Text:
    return Text.assemble(
        (PHASES.get(moment.phase, moment.phase), "bold"),
        f"  {clock(moment.elapsed_s)} of {clock(moment.seconds)}",
        f"  ·  {moment.submitted:,} of {moment.to_submit:,} jobs submitted",
    )


def _conflicts(moment: Moment, trail: Trail, width: int) -> tuple[str, Text, Text, str]:
    now = moment.total.conflict_fraction
    figure = Text(fraction(now), conflict_colour(now))
    return "conflicts", strip(trail, moment.seconds, width), figure, "per conflict-free one"


def _labelled(label: str, text: Text) -> Text:
    line = Text(no_wrap=True, overflow="ellipsis")
    return line.append(f"{label:<11}", "bold").append_text(text)


def _jobs(use: CellUse) -> Text:
    """Return the number of jobs by state: waiting, parked, running, then ended ones."""
    jobs = use.jobs_by_state
    text = Text()
    for state in (State.PARKED, State.RUNNING, State.SUCCEEDED, State.FAILED, State.CANCELLED):
        if jobs.get(state):
            why = f" ({reasons(use)})" if state is State.PARKED else ""
            text.append(" · ").append(f"{jobs[state]:,} {state.value}{why}", COLOURS[state])
    return Text.assemble((f"{use.jobs_waiting:,} waiting", COLOURS[State.PENDING]), text)


def _last(moment: Moment) -> list[str]:
    """Return the last EVENTS_SHOWN events, filled up with empty lines to a constant height."""
    shown = list(moment.events[-EVENTS_SHOWN:])
    return [*shown, *([""] * (EVENTS_SHOWN - len(shown)))]
