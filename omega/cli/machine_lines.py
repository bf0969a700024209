"""What is being taken out of the cell, in a line or a few: for `status`, `cell show`, `db verify`.

Goal     Let nobody wonder where the room went, or what will happen to what runs on a machine.
Promise  Nothing is said where all machines are open and none is on notice. Drawn from values alone.
Source   docs/decisions/0015-evictions-alternates-machines.md.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from rich.table import Table
from rich.text import Text

from omega.cli.printable import short
from omega.cli.processes import kinds_heard_of
from omega.cli.wording import amounts, duration, things
from omega.model.machines import MachineState, Snapshot
from omega.model.resources import named
from omega.store.status import CellUse, Notice, ProcessReport

STATE_COLOURS: Final = {
    MachineState.OPEN: "green",
    MachineState.DRAINING: "yellow",
    MachineState.DOWN: "red",
    MachineState.GONE: "dim",
}
NAMES_SHOWN: Final = 20


def state_name(state: int) -> str:
    """Return the name of a state as people and scripts read it."""
    return MachineState(state).name.lower()


def states_of(use: CellUse) -> dict[str, int]:
    """Count the machines by state, those states that occur."""
    counted = sorted(use.machines_by_state.items())
    return {state_name(state): machines for state, machines in counted if machines}


def notice_line(notice: Notice) -> str:
    """Say what is used above a machine's capacity, and what will become of it."""
    excess = amounts(named(notice.excess))
    if notice.ends_in_ms <= 0:
        return f"{excess} too much in use; the next scheduler that looks ends what is too much"
    left = duration(notice.ends_in_ms / 1_000)
    return f"{excess} too much in use; in {left}, tasks of the lowest precedence end first"


def notices_summary(notices: Sequence[Notice]) -> dict[str, int | None]:
    """Count the notices that run and those that are over; say when the next one ends."""
    running = [notice.ends_in_ms for notice in notices if notice.ends_in_ms > 0]
    return {
        "running": len(running),
        "over": len(notices) - len(running),
        "next_ends_in_ms": min(running, default=None),
    }


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


def overdue(use: CellUse, notices: Sequence[Notice], reports: Sequence[ProcessReport]) -> list[str]:
    """Say what a scheduler would have done long since, if none has been heard of lately."""
    if kinds_heard_of(reports):
        return []
    nobody = "and no scheduler has been heard of lately that would end them"
    said = []
    if use.stranded:
        said.append(f"Tasks are still on {things(use.stranded, 'machine')} down or gone, {nobody}.")
    if over := notices_summary(notices)["over"]:
        said.append(f"Tasks are left that {things(over, 'notice')} told to end, {nobody}.")
    return said


def closed_table(snapshot: Snapshot, notices: Sequence[Notice]) -> Table | None:
    """Return a line a state with its machines, and a line a notice; None where there are none."""
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
