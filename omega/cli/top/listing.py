"""How one tab of `omega top` is listed: its order, its filter, and the row under the cursor.

Goal     Keep each tab as it was left, while others are looked at.
Promise  Pure: rows in, rows in order out. A row has one key for as long as it exists.
Source   omega/reports/top.py, omega/cli/top/columns.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from omega.cli.top.columns import COLUMNS, Column, shown
from omega.reports.top import NO_FILTER, ROWS_MAX, Filter, Tab, TopReport, in_order

NEWEST_FIRST: Final = frozenset({Tab.JOBS})


@dataclass
class Listing:
    """The rows of one tab as they are shown."""

    tab: Tab
    order: str
    """The key of the column that rows are sorted by."""
    descending: bool
    text: str = ""
    """The filter as it was typed."""
    filter: Filter = NO_FILTER
    cursor: str | None = None
    """The key of the row under the cursor."""
    report: TopReport | None = None
    """What was read last; None before, and after another filter was set."""

    @classmethod
    def at_first(cls, tab: Tab) -> "Listing":
        """Return a tab by its first column: jobs from the newest on."""
        return cls(tab, COLUMNS[tab][0].key, tab in NEWEST_FIRST)

    def sort_by(self, column: Column) -> None:
        """Sort by a column: texts from a to z, numbers from the largest; again: turned round."""
        is_same = column.key == self.order
        self.descending = not self.descending if is_same else not column.is_text
        self.order = column.key

    def neighbour(self, step: int, *, is_wide: bool) -> Column:
        """Return the column that is so many columns after the one that rows are sorted by."""
        columns = shown(self.tab, is_wide=is_wide)
        keys = [column.key for column in columns]
        at = keys.index(self.order) if self.order in keys else 0
        return columns[(at + step) % len(columns)]

    def narrow(self, text: str) -> None:
        """Show only what a filter says. Raises BadInput, and changes nothing then."""
        self.filter = Filter.parsed(text, self.tab)
        self.text = text.strip()
        self.report = None

    def rows(self) -> list[Any]:
        """Return the rows in order; none if they have not been read."""
        if self.report is None:
            return []
        found: dict[Tab, Sequence[Any]] = {
            Tab.SCHEDULERS: self.report.schedulers,
            Tab.JOBS: self.report.jobs,
            Tab.MACHINES: self.report.machines,
        }
        (column,) = [it for it in COLUMNS[self.tab] if it.key == self.order]
        return in_order(found[self.tab], column.value, descending=self.descending)

    def count(self) -> str:
        """Return how many rows there are, in words."""
        if self.report is None:
            return "reading ..."
        found = self.report.found
        if self.tab is Tab.JOBS and found >= ROWS_MAX:
            return f"the newest {ROWS_MAX} jobs; / finds others"
        if found > ROWS_MAX:
            return f"the first {ROWS_MAX} of {found:,} {self.tab.value}"
        return f"{found:,} {self.tab.value}"


def key_of(row: Any) -> str:  # noqa: ANN401 - a row of any tab
    """Return what a row is known by: its number, or a scheduler's name."""
    return str(row.id) if hasattr(row, "id") else str(row.name)
