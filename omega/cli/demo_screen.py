"""The demo's screen, and its lines where there is no screen.

Goal     Show several schedulers racing for one cell while they race.
Promise  Fits 80 columns. On a terminal one picture that changes; elsewhere a line now and then.
Source   omega.cli.screens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.rule import Rule
from rich.text import Text

from omega.cli.processes import SchedulerLine
from omega.cli.screens import (
    GPU,
    LEGEND,
    cell_line,
    cell_table,
    queue_line,
    schedulers_table,
    shares,
)
from omega.cli.wording import clock, count, fraction, share
from omega.lifecycle.states import State
from omega.model.resources import Kind
from omega.store.base import CellUse

EVENTS_SHOWN: Final = 2
LINE_INTERVAL_S: Final = 5.0
PANEL_FRAME: Final = 4


@dataclass(frozen=True)
class Moment:
    """What is to be seen at one moment."""

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
    """Shows moments; a context manager, for a picture has to be put away."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._live = Live(console=console, auto_refresh=False, transient=True)
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
        if self._console.is_terminal:
            self._live.update(picture(moment, self._title, self._console.width), refresh=True)
            return
        for event in moment.events[self._told :]:
            self._console.print(event, markup=False, highlight=False, soft_wrap=True)
        self._told = len(moment.events)
        if moment.phase != self._phase or moment.elapsed_s >= self._line_due_s:
            self._phase = moment.phase
            self._line_due_s = moment.elapsed_s + LINE_INTERVAL_S
            self._console.print(line(moment), highlight=False, soft_wrap=True)


def picture(moment: Moment, title: str, width: int) -> RenderableType:
    """Return the whole screen."""
    return Panel(
        Group(
            _head(moment),
            schedulers_table(moment.lines, moment.total, width=width - PANEL_FRAME),
            Rule(style="bright_black"),
            cell_line(moment.use),
            cell_table(moment.use, width - PANEL_FRAME),
            Text.assemble(("queue  ", "bold"), queue_line(moment.use)),
            Rule(style="bright_black"),
            *(Text(event, "dim", no_wrap=True, overflow="ellipsis") for event in _last(moment)),
            LEGEND,
        ),
        title=title,
        title_align="left",
        border_style="bright_black",
    )


def line(moment: Moment) -> str:
    """Return the moment in one line."""
    parts = shares(moment.use)
    waiting = sum(moment.use.jobs_by_state.get(s, 0) for s in (State.PENDING, State.PLANNING))
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
            f"waiting {waiting:,}",
            f"parked {moment.use.jobs_by_state.get(State.PARKED, 0):,}",
        ]
    )


def _head(moment: Moment) -> Text:
    return Text.assemble(
        (moment.phase, "bold"),
        f"  {clock(moment.elapsed_s)} of {clock(moment.seconds)}",
        f"  ·  {moment.submitted:,} of {moment.to_submit:,} jobs submitted",
    )


def _last(moment: Moment) -> list[str]:
    """Return the last events, as many lines as there is room for, so that nothing jumps."""
    shown = list(moment.events[-EVENTS_SHOWN:])
    return [*shown, *([""] * (EVENTS_SHOWN - len(shown)))]
