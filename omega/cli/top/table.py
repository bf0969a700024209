"""The table of `omega top`: schedulers, jobs or machines, to sort and to narrow by keys.

Goal     Find the one row that matters among thousands.
Promise  The cursor stays on its row while rows come and go. A filter that cannot be read is said,
         and nothing changes. All texts are printable.
Source   Textual's DataTable; omega/cli/top/listing.py.
"""

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar, Final

from rich.console import JustifyMethod
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen
from textual.widgets import DataTable, Footer, Input, Static

from omega.cli.screens import cell_line, queue_line
from omega.cli.top.columns import Column, shown
from omega.cli.top.listing import Listing, key_of
from omega.errors import BadInput
from omega.reports.printable import printable
from omega.reports.top import Tab, TopReport
from omega.terminal.drawn import drawn

WIDE: Final = 92
"""Columns of a terminal from which on all columns of the table are shown."""
HINT: Final = "a part of the name, state=..., tenant=..., kind=..."


class TableScreen(Screen[None]):
    """The first screen."""

    DEFAULT_CSS = """
    TableScreen {
        #cell, #queue, #tabs { height: 1; padding: 0 1; }
        #status { padding: 0 1; color: $text-muted; }
        #status.wrong { color: $text-error; }
        #filter { display: none; }
        DataTable { height: 1fr; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(at), f"list({at})", tab.value) for at, tab in enumerate(Tab, start=1)),
        Binding("s", "sort(1)", "sort"),
        Binding("S", "sort(-1)", "sort back", show=False),
        Binding("r", "reverse", "reverse"),
        Binding("slash", "narrow", "filter"),
        Binding("escape", "leave", "leave the filter", show=False),
    ]

    class Opened(Message):
        """A job or a machine is to be shown in full."""

        def __init__(self, number: int, *, is_job: bool) -> None:
            """`number` is the job's or the machine's."""
            super().__init__()
            self.number = number
            self.is_job = is_job

    def __init__(self, tab: Tab) -> None:
        """Begin with a tab."""
        super().__init__()
        self._listings = {each: Listing.at_first(each) for each in Tab}
        self._tab = tab
        self._remark = ""

    @property
    def listing(self) -> Listing:
        """The tab that is shown."""
        return self._listings[self._tab]

    def compose(self) -> ComposeResult:
        """Return the widgets, from top to bottom."""
        yield Static(id="cell")
        yield Static(id="queue")
        yield Static(id="tabs")
        yield DataTable(cursor_type="row", zebra_stripes=True)
        yield Static(id="status")
        yield Input(id="filter", placeholder=HINT)
        yield Footer()

    def on_mount(self) -> None:
        """Show an empty table, until something is read."""
        self._draw()
        self.query_one(DataTable).focus()

    def on_resize(self) -> None:
        """Draw for another width."""
        self._draw()

    def show(self, report: TopReport) -> None:
        """Show what was read; rows only if they are of the tab and the filter that are shown."""
        use, width = report.cell.use, max(1, self.size.width - 2)
        self.query_one("#cell", Static).update(drawn(cell_line(use), width))
        self.query_one("#queue", Static).update(drawn(queue_line(use), width))
        listing = self._listings[report.wanted.tab]
        if report.is_of_table and report.wanted.filter == listing.filter:
            listing.report = report
            self._draw()

    def remark(self, text: str) -> None:
        """Say something beside the number of rows, until something else is said."""
        self._remark = text
        self._say()

    def action_list(self, number: int) -> None:
        """List something else."""
        self._tab = list(Tab)[number - 1]
        self._draw()

    def action_sort(self, step: int) -> None:
        """Sort by the next column, or by the one before."""
        self.listing.sort_by(self.listing.neighbour(step, is_wide=self._is_wide))
        self._draw()

    def action_reverse(self) -> None:
        """Turn the order round."""
        self.listing.descending = not self.listing.descending
        self._draw()

    def action_narrow(self) -> None:
        """Ask for a filter."""
        asked = self.query_one("#filter", Input)
        asked.value = self.listing.text
        asked.display = True
        asked.focus()

    def action_leave(self) -> None:
        """Leave the filter as it was, and go back to the table."""
        self.query_one("#filter", Input).display = False
        self.query_one(DataTable).focus()
        self._say()

    @on(Input.Submitted)
    def _narrow(self, event: Input.Submitted) -> None:
        try:
            self.listing.narrow(event.value)
        except BadInput as problem:
            self._say(str(problem))
            return
        self._draw()
        self.action_leave()

    @on(DataTable.HeaderSelected)
    def _sort(self, event: DataTable.HeaderSelected) -> None:
        columns = {column.key: column for column in self._columns()}
        self.listing.sort_by(columns[str(event.column_key.value)])
        self._draw()

    @on(DataTable.RowHighlighted)
    def _remember(self, event: DataTable.RowHighlighted) -> None:
        self.listing.cursor = event.row_key.value

    @on(DataTable.RowSelected)
    def _open(self, event: DataTable.RowSelected) -> None:
        key = event.row_key.value
        if key is not None and self._tab is not Tab.SCHEDULERS:
            self.post_message(self.Opened(int(key), is_job=self._tab is Tab.JOBS))

    @property
    def _is_wide(self) -> bool:
        return self.size.width >= WIDE

    def _columns(self) -> list[Column]:
        return shown(self._tab, is_wide=self._is_wide)

    def _draw(self) -> None:
        """Draw the table anew; the cursor stays on its row, if it is still there."""
        table: DataTable[Text] = self.query_one(DataTable)
        listing, columns, rows = self.listing, self._columns(), self.listing.rows()
        keys = _each_once(key_of(row) for row in rows)
        now_ms = 0 if listing.report is None else listing.report.now_ms
        titles = [self._title(column) for column in columns]
        lines = [[column.text(row, now_ms) for column in columns] for row in rows]
        top, left = table.scroll_y, table.scroll_x
        with self.prevent(DataTable.RowHighlighted):
            table.clear(columns=True)
            for column, title, *cells in zip(columns, titles, *lines, strict=True):
                # Without a width the table measures its cells later, and keeps a line of titles
                # that was drawn before that.
                width = max(text.cell_len for text in (title, *cells))
                table.add_column(title, key=column.key, width=width)
            for key, line in zip(keys, lines, strict=True):
                table.add_row(*line, key=key)
            if listing.cursor in keys:
                table.move_cursor(row=keys.index(listing.cursor), scroll=False)
        table.scroll_to(x=left, y=top, animate=False)
        tabs = [
            (f" {at} {tab.value} ", "reverse" if tab is self._tab else "")
            for at, tab in enumerate(Tab, start=1)
        ]
        self.query_one("#tabs", Static).update(Text.assemble(*tabs))
        self._say()

    def _title(self, column: Column) -> Text:
        side: JustifyMethod = "left" if column.is_text else "right"
        if column.key != self.listing.order:
            return Text(column.title, justify=side)
        arrow = "↓" if self.listing.descending else "↑"
        return Text(f"{column.title} {arrow}", "bold", justify=side)

    def _say(self, problem: str = "") -> None:
        """Say what is wrong, or how many rows there are and which."""
        said = [self._remark, self.listing.count()]
        if self.listing.text:
            said.append(f"filter: {self.listing.text}")
        text = problem or " · ".join(part for part in said if part)
        status = self.query_one("#status", Static)
        status.set_class(bool(problem or self._remark), "wrong")
        status.update(Text(printable(text)))


def _each_once(keys: Iterable[str]) -> list[str]:
    """Return the keys, numbered where one comes again: two logins may report under one name."""
    seen: Counter[str] = Counter()
    found = []
    for key in keys:
        seen[key] += 1
        found.append(key if seen[key] == 1 else f"{key}\0{seen[key]}")
    return found
