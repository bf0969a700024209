"""`omega top` as a program: it reads, and shows what was read on the screen that is open.

Goal     Keep a table, or one job or machine, as it is now.
Promise  One thread reads at a time, at least INTERVAL_S after it last began, and at most a fifth of
         the time. While the database is away the last rows stay, and that is said. A signal ends
         it, and the terminal is as before.
Source   Textual; omega/reports/top.py.
"""

from threading import Event
from typing import ClassVar, Final

from textual import on
from textual.app import App
from textual.binding import Binding, BindingType

from omega.cli.top.detail import DetailScreen
from omega.cli.top.table import TableScreen
from omega.clock import Clock
from omega.errors import OmegaError
from omega.reports.top import Tab, TopReader, TopReport, Wanted

INTERVAL_S: Final = 1.0
REST: Final = 5.0
"""A read that takes a second is repeated so many seconds after it began."""
TICK_S: Final = 0.1
"""How often it is looked whether a read is due, or a signal has come."""
DARK: Final = "textual-dark"
LIGHT: Final = "textual-light"


class TopApp(App[None]):
    """The program on the terminal."""

    TITLE = "omega top"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("p", "pause", "pause"),
        Binding("t", "colours", "light or dark", show=False),
        Binding("q,ctrl+c", "quit", "quit"),
    ]

    def __init__(
        self,
        reader: TopReader,
        clock: Clock,
        stop: Event,
        *,
        tab: Tab = Tab.SCHEDULERS,
        is_light: bool = False,
    ) -> None:
        """Show what `reader` reads, until `stop` is set."""
        super().__init__()
        self._reader = reader
        self._clock = clock
        self._stop = stop
        self._is_light = is_light
        self._due_s = clock.now()
        self._reads = False
        self._is_paused = False
        self._away: str | None = None
        self._table = TableScreen(tab)
        self._detail: DetailScreen | None = None

    def get_default_screen(self) -> TableScreen:
        """Return the first screen."""
        return self._table

    def on_mount(self) -> None:
        """Begin to read."""
        self.theme = LIGHT if self._is_light else DARK
        self.set_interval(TICK_S, self.look)
        self.call_after_refresh(self.look)

    def look(self) -> None:
        """Read if it is due; end if a signal has come."""
        if self._stop.is_set():
            self.exit()
        elif not (self._reads or self._is_paused) and self._clock.now() >= self._due_s:
            self._reads = True
            wanted = self._wanted()
            self.run_worker(lambda: self._read(wanted), thread=True)

    def action_pause(self) -> None:
        """Stop reading, or go on."""
        self._is_paused = not self._is_paused
        self._remark()

    def action_colours(self) -> None:
        """Change between light and dark."""
        self.theme = LIGHT if self.theme == DARK else DARK

    @on(TableScreen.Opened)
    def _open(self, event: TableScreen.Opened) -> None:
        self._detail = DetailScreen(event.number, is_job=event.is_job)
        self.push_screen(self._detail)

    def _wanted(self) -> Wanted:
        listing, detail = self._table.listing, self._detail
        if detail is None or not detail.is_open:
            return Wanted(listing.tab, listing.filter, listing.order, listing.descending)
        number, is_job = detail.number, detail.is_job
        return Wanted(
            listing.tab,
            listing.filter,
            listing.order,
            listing.descending,
            job=number if is_job else None,
            machine=None if is_job else number,
        )

    def _read(self, wanted: Wanted) -> None:
        """Read, in a thread of its own."""
        began_s = self._clock.now()
        try:
            told: TopReport | OmegaError = self._reader.read(wanted)
        except OmegaError as error:
            told = error
        except Exception as error:  # Textual would print it with all variables, the URL among them
            told = OmegaError(f"the cell cannot be read: {type(error).__name__}")
        self._due_s = began_s + max(INTERVAL_S, REST * (self._clock.now() - began_s))
        self.call_from_thread(self._note, told)

    def _note(self, told: TopReport | OmegaError) -> None:
        """Show what was read, or say why nothing was."""
        self._reads = False
        self._away = str(told) if isinstance(told, OmegaError) else None
        self._remark()
        if isinstance(told, TopReport):
            self._table.show(told)
            if self._detail is not None and self._detail.is_open:
                self._detail.show(told)

    def _remark(self) -> None:
        parts = [] if self._away is None else [f"the database is away: {self._away}"]
        self._table.remark(" · ".join([*parts, "paused"] if self._is_paused else parts))
