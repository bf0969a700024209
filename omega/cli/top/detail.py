"""All about one job or machine, over the table of `omega top`.

Goal     Say what `omega job` and `omega cell show` say, and keep it as it is now.
Promise  What is shown is what these verbs print. Escape goes back to the table.
Source   omega/cli/job/screens.py, omega/cli/cell/machine_screen.py.
"""

from typing import ClassVar, Final

from rich.console import RenderableType
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

from omega.cli.cell.machine_screen import machine_screen
from omega.cli.job.screens import job_screen
from omega.reports.top import TopReport
from omega.terminal.drawn import drawn

WIDTH_MIN: Final = 20
MARGINS: Final = 6
"""Columns left and right of the text, with the scroll bar."""


class DetailScreen(Screen[None]):
    """One job or machine."""

    DEFAULT_CSS = "DetailScreen VerticalScroll { padding: 1 2; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace,left", "back", "back"),
    ]

    def __init__(self, number: int, *, is_job: bool) -> None:
        """Show a job, or a machine, of this number."""
        super().__init__()
        self.number = number
        self.is_job = is_job
        self.is_open = True
        self._shown: RenderableType = Text("reading ...")

    def compose(self) -> ComposeResult:
        """Return the widgets."""
        with VerticalScroll():
            yield Static(id="all")
        yield Footer()

    def on_mount(self) -> None:
        """Say that it is being read."""
        self._draw()

    def on_resize(self) -> None:
        """Draw for another width."""
        self._draw()

    def show(self, report: TopReport) -> None:
        """Show what was read; of another job or machine nothing."""
        if (report.wanted.job if self.is_job else report.wanted.machine) != self.number:
            return
        if report.job is not None:
            self._shown = job_screen(report.job)
        elif report.machine is not None:
            self._shown = machine_screen(report.machine)
        else:
            what = "job" if self.is_job else "machine"
            self._shown = Text(f"There is no {what} {self.number} any more.", "yellow")
        self._draw()

    def action_back(self) -> None:
        """Go back to the table."""
        self.is_open = False
        self.dismiss(None)

    def _draw(self) -> None:
        if self.is_attached:
            width = max(WIDTH_MIN, self.size.width - MARGINS)
            self.query_one("#all", Static).update(drawn(self._shown, width))
