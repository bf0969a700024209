"""Lines on machines that are closed or on notice, for `omega status` and `omega cell show`.

Goal     Show why capacity is missing, and what will happen to the tasks of a machine.
Promise  There is no line if all machines are open and none is on notice. Drawn from values alone.
Source   docs/decisions/0015-evictions-alternates-machines.md.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from rich.table import Table
from rich.text import Text

from omega.model.machines import MachineState, Snapshot
from omega.reports.machines import notice_line, notices_summary, state_name
from omega.reports.printable import short
from omega.reports.wording import duration
from omega.store.status import CellUse, Notice

STATE_COLOURS: Final = {
    MachineState.OPEN: "green",
    MachineState.DRAINING: "yellow",
    MachineState.DOWN: "red",
    MachineState.GONE: "dim",
}
NAMES_SHOWN: Final = 20


def machines_line(use: CellUse, notices: Sequence[Notice]) -> Text:
    """Count the machines that are not open, and those on notice; empty where there are none."""
    parts = [
        Text(f"{machines:,} {state_name(state)}", STATE_COLOURS[state])
        for state in (MachineState.DRAINING, MachineState.DOWN)
        if (machines := use.machines_by_state.get(state, 0))
    ]
    if use.stranded:
        parts.append(Text(f"{use.stranded:,} down or gone and still in use", "red"))
    if notices:
        summary = notices_summary(notices)
        text = Text(f"{len(notices):,} on notice", "yellow")
        if summary["next_ends_in_ms"] is not None:
            text.append(f", the next for {duration(summary['next_ends_in_ms'] / 1_000)}")
        if summary["over"]:
            text.append(f", {summary['over']:,} of them over", "red")
        parts.append(text)
    return Text(" · ").join(parts)


def closed_table(snapshot: Snapshot, notices: Sequence[Notice]) -> Table | None:
    """Return a table with a line per closed state and a line per notice; None if it is empty."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for state in (MachineState.DRAINING, MachineState.DOWN):
        names = [short(snapshot.names[at]) for at in np.flatnonzero(snapshot.rows.state == state)]
        if names:
            more = len(names) - NAMES_SHOWN
            listed = ", ".join(names[:NAMES_SHOWN]) + (f" and {more:,} more" if more > 0 else "")
            table.add_row(Text(state_name(state), STATE_COLOURS[state]), Text(listed))
    for notice in notices[:NAMES_SHOWN]:
        (at,) = snapshot.rows.where(np.array([notice.machine]))
        table.add_row(
            Text("on notice", "yellow"), Text(f"{short(snapshot.names[at])}: {notice_line(notice)}")
        )
    if (more := len(notices) - NAMES_SHOWN) > 0:
        table.add_row("", f"and {more:,} more on notice; --json has all")
    return table if table.row_count else None
