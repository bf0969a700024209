"""`omega cell list`: the machines by name.

Goal     Find the machines of a rack, those that are closed, and those with room.
Promise  In the order in which they were added, by attribute and by state; at most as many as asked
         for, and how many more there are is said. Machines that are gone are left out unless asked
         for.
Source   ReaderStore.snapshot.
"""

from typing import Annotated, Final

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

from omega.cli.cell.machine_lines import STATE_COLOURS
from omega.cli.cell.machine_names import Where, choose
from omega.cli.cell_access import DemoOption, ReadFrom, cell_reader
from omega.cli.job.screens import cut
from omega.errors import BadInput
from omega.model.arrays import Amounts
from omega.model.machines import MachineState, Snapshot
from omega.model.resources import GPU_SLICES, Kind, named
from omega.reports.machines import state_name
from omega.reports.printable import short
from omega.reports.wording import things
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo

LIMIT_MAX: Final = 1_000_000
STATES: Final = {state_name(state): state for state in MachineState}


def machine_list(
    where: Where = None,
    state: Annotated[
        str | None,
        typer.Option(metavar="|".join(STATES), help="Only machines in this state."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=LIMIT_MAX, help="How many at most.")] = 50,
    data_dir: DataDir = None,
    read_from: ReadFrom = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """List machines by name, with what each has free.

    For example [bold]omega cell list --where rack=7 --state draining[/]; all about one:
    [bold]omega cell show NAME[/]
    """
    if state is not None and state not in STATES:
        raise BadInput(f"{short(state)} is none of {', '.join(STATES)}", field="--state")
    output = Output(json_to)
    with cell_reader(data_dir, read_from, demo=demo) as store:
        snapshot = store.snapshot()
    chosen = _chosen(snapshot, where, None if state is None else STATES[state])
    shown = chosen[:limit]
    rows = [_row(snapshot, at) for at in shown]
    output.document(
        parameters={"where": where, "state": state, "limit": limit, "demo": demo},
        rows=rows,
        summary={"machines": len(chosen)},
    )
    if not shown:
        output.console.print("There are no such machines.")
        return
    output.console.print(_table(snapshot, shown))
    if (more := len(chosen) - len(shown)) > 0:
        output.console.print(f"and {things(more, 'machine')} more; see --limit", style="dim")


def _chosen(snapshot: Snapshot, where: list[str] | None, state: MachineState | None) -> list[int]:
    """Return the positions of the machines; raises BadInput for an unknown attribute."""
    states = snapshot.rows.state
    mask = states != MachineState.GONE if state is None else states == state
    if where:
        mask = mask & np.isin(snapshot.rows.id, choose(snapshot, None, where).id)
    found: list[int] = np.flatnonzero(mask).tolist()
    return found


def _row(snapshot: Snapshot, at: int) -> dict[str, object]:
    codes = zip(snapshot.catalogue.names, snapshot.codes[at].tolist(), strict=True)
    values = {
        name: snapshot.catalogue.value(column, code) for column, (name, code) in enumerate(codes)
    }
    return {
        "machine": snapshot.names[at],
        "id": int(snapshot.rows.id[at]),
        "state": state_name(int(snapshot.rows.state[at])),
        "capacity": named(snapshot.rows.capacity[at]),
        "used": named(snapshot.rows.used[at]),
        "attributes": {name: value for name, value in values.items() if value is not None},
    }


def _table(snapshot: Snapshot, shown: list[int]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("machine")
    table.add_column("state", no_wrap=True)
    for header in ("cores free", "GiB free", "GPUs free"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("attributes")
    devices = [kind for kind in Kind if kind.is_device]
    for at in shown:
        row = _row(snapshot, at)
        capacity, free = snapshot.rows.capacity[at], snapshot.rows.free[at]
        attributes = row["attributes"]
        assert isinstance(attributes, dict)
        state = MachineState(int(snapshot.rows.state[at]))
        gpus = _of(free, capacity, devices, GPU_SLICES) if capacity[devices].any() else ""
        table.add_row(
            cut(snapshot.names[at]),
            Text(state_name(state), STATE_COLOURS[state]),
            _of(free, capacity, [Kind.CPU_MILLI], 1_000),
            _of(free, capacity, [Kind.MEMORY_MIB], 1_024),
            gpus,
            cut(", ".join(f"{name}={value}" for name, value in attributes.items())),
        )
    return table


def _of(free: Amounts, capacity: Amounts, kinds: list[Kind], unit: int) -> str:
    """Write how much of some kinds is free, and of how much."""
    return f"{free[kinds].sum() / unit:,.4g} of {capacity[kinds].sum() / unit:,.4g}"
