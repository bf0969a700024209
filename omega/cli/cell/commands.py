"""`omega cell`: load machines, look at them, and take them in and out.

Goal     Bring machines into the cell from whatever lists them, and show what there is.
Promise  A source is read whole before anything is stored. If one of its names is taken, no machine
         is added.
Source   omega.workload.sources; what changes machines: omega.cli.cell.states, omega.cli.cell.sizes.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Final

import numpy as np
import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from omega.cli.cell import precedence_gap as cell_gap
from omega.cli.cell import sizes as cell_sizes
from omega.cli.cell import states as cell_states
from omega.cli.cell.machine_lines import closed_table
from omega.cli.cell.machine_list import machine_list
from omega.cli.cell.machine_names import choose
from omega.cli.cell.machine_screen import machine_screen
from omega.cli.cell_access import DemoOption, ReadFrom, cell_reader, cell_store
from omega.cli.job.story_screen import story_screen
from omega.cli.loading import add_machines, place_running
from omega.cli.options import TraceOptions, read_trace_options
from omega.cli.screens import cell_line, cell_table
from omega.clock import RealClock
from omega.model.arrays import integers
from omega.model.machines import MachineState, Snapshot
from omega.model.resources import named
from omega.processes.stopping import stop_on_signals
from omega.reports.cell import allocated
from omega.reports.machines import MachineReport, state_name, states_of
from omega.reports.printable import printable, short
from omega.reports.stories.machine import machine_story
from omega.reports.wording import things
from omega.store.loading import NOTHING
from omega.store.protocols import ReaderStore
from omega.store.status import Notice
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo, Seed
from omega.terminal.rng import rng_from_seed
from omega.workload.sources import read_source

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")

SHAPES_SHOWN: Final = 20
VALUES_SHOWN: Final = 8


@app.command("load")
def load(
    source: Annotated[
        str, typer.Argument(help="A trace's folder, a .csv or .yaml list, or synthetic:1000.")
    ],
    running: Annotated[
        bool,
        typer.Option("--running", help="Load what runs on a trace's machines at its start too."),
    ] = False,
    trace_option: TraceOptions = None,
    seed: Seed = 0,
    data_dir: DataDir = None,
    json_to: JsonTo = None,
) -> None:
    """Add machines to the cell.

    A CSV file has the columns name, cpu_milli, memory_mib, and if you like disk_mib, gpus, count;
    any other column is an attribute that constraints can name.
    """
    output = Output(json_to)
    clock = RealClock()
    with output.console.status(f"Reading {short(source)}"):
        workload = read_source(source, rng_from_seed(seed), read_trace_options(trace_option or []))
    with stop_on_signals() as stop, cell_store(data_dir) as store:
        seconds, ids = add_machines(workload, store, output, clock)
        loaded = NOTHING
        if running and not stop.is_set():
            loaded = place_running(workload, store, ids, output, clock, stop)
    output.document(
        parameters={"source": source, "running": running, "seed": seed},
        rows=[],
        summary={
            "machines": len(ids),
            "seconds": round(seconds, 3),
            "running": vars(loaded),
            "notes": list(workload.notes),
        },
    )
    for note in workload.notes if running else ():
        output.console.print(printable(note), style="dim")


@app.command("show")
def show(
    machine: Annotated[
        str | None, typer.Argument(metavar="[MACHINE]", help="One machine, by its name.")
    ] = None,
    data_dir: DataDir = None,
    read_from: ReadFrom = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """Show the machines by shape and state, their use, and attributes; or all about one of them.

    Of one machine: what it has, what is free, its state, what runs there with its precedence, and
    who placed tasks there, who was refused, and what ended there, in time.
    """
    output = Output(json_to)
    with cell_reader(data_dir, read_from, demo=demo) as store:
        if machine is not None:
            snapshot = store.snapshot()
            (at,) = snapshot.rows.where(choose(snapshot, [machine], None).id).tolist()
            _show_one(store, MachineReport.read(store, snapshot, at), output, demo=demo)
            return
        use, snapshot, notices = store.use(), store.snapshot(), store.notices()
    shapes, attributes = _shapes(snapshot), _attributes(snapshot)
    output.document(
        parameters={"demo": demo},
        rows=[{"machines": machines, **shape} for shape, machines in shapes],
        summary={
            "machines": use.machines,
            "open": use.open,
            "machines_by_state": states_of(use),
            "closed": {
                state_name(state): [
                    snapshot.names[at] for at in np.flatnonzero(snapshot.rows.state == state)
                ]
                for state in (MachineState.DRAINING, MachineState.DOWN)
            },
            "notices": _notices(snapshot, notices),
            "capacity": dict(use.capacity),
            "used": dict(use.used),
            "allocated": allocated(use),
            "attributes": attributes,
        },
    )
    console = output.console
    console.print(cell_line(use))
    if not use.machines:
        console.print("Load some: omega cell load synthetic:1000")
        return
    console.print(cell_table(use, console.width))
    if (closed := closed_table(snapshot, notices)) is not None:
        console.print(closed)
    console.print(_shapes_table(shapes))
    if attributes:
        console.print(_attributes_table(attributes))


def _notices(snapshot: Snapshot, notices: Sequence[Notice]) -> list[dict[str, object]]:
    """Return the notices as JSON types."""
    return [
        {
            "machine": snapshot.names[at],
            "excess": named(notice.excess),
            "ends_in_ms": notice.ends_in_ms,
        }
        for notice in notices
        for at in snapshot.rows.where(integers([notice.machine])).tolist()
    ]


app.command("list")(machine_list)
app.command("add")(cell_sizes.add)
app.command("resize")(cell_sizes.resize)
app.command("drain")(cell_states.drain)
app.command("open")(cell_states.open_again)
app.command("down")(cell_states.down)
app.command("remove")(cell_states.remove)
app.command("precedence-gap")(cell_gap.precedence_gap)


def _show_one(store: ReaderStore, machine: MachineReport, output: Output, *, demo: bool) -> None:
    story = machine_story(store, machine.id, machine.name)
    output.document(
        parameters={"machine": machine.name, "demo": demo},
        rows=machine.rows(),
        summary={**machine.summary(), "story": story.document()},
    )
    output.console.print(Group(machine_screen(machine), story_screen(story)))


def _shapes(snapshot: Snapshot) -> list[tuple[dict[str, int], int]]:
    """Return the distinct capacities of machines that are not gone, the commonest first."""
    here = snapshot.rows.state != MachineState.GONE
    rows, counts = np.unique(snapshot.rows.capacity[here], axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [(named(rows[at]), int(counts[at])) for at in order.tolist()]


def _attributes(snapshot: Snapshot) -> dict[str, dict[str, int]]:
    """Return, by attribute, how many machines here have each value, the commonest first."""
    here = snapshot.rows.state != MachineState.GONE
    counted = {}
    for column, name in enumerate(snapshot.catalogue.names):
        values = snapshot.catalogue.values[column]
        codes = Counter(snapshot.codes[here, column].tolist())
        counted[name] = {values[code - 1]: n for code, n in codes.most_common() if code}
    return counted


def _shapes_table(shapes: list[tuple[dict[str, int], int]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header in ("machines", "cpu", "memory", "disk", "gpus"):
        table.add_column(header, justify="right")
    for shape, machines in shapes[:SHAPES_SHOWN]:
        table.add_row(
            f"{machines:,}",
            f"{shape.get('cpu_milli', 0) / 1_000:g} cores",
            f"{shape.get('memory_mib', 0) / 1_024:,.4g} GiB",
            f"{shape.get('disk_mib', 0) / 1_024:,.4g} GiB",
            str(sum(kind.startswith("gpu") for kind in shape)),
        )
    if (more := len(shapes) - SHAPES_SHOWN) > 0:
        table.caption = f"and {things(more, 'shape')} more; --json has all"
    return table


def _attributes_table(attributes: dict[str, dict[str, int]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("attribute")
    table.add_column("values, with the number of machines", overflow="fold")
    for name, values in sorted(attributes.items()):
        listed = ", ".join(
            f"{short(value)} ({n:,})" for value, n in list(values.items())[:VALUES_SHOWN]
        )
        more = len(values) - VALUES_SHOWN
        table.add_row(Text(short(name)), Text(f"{listed}, and {more} more" if more > 0 else listed))
    return table
