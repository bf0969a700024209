"""`omega cell drain`, `open`, `down` and `remove`: set whether machines take and keep tasks.

Goal     Take machines out of the cell for an hour or for good, and put them back.
Promise  If one machine is named wrongly, none is changed. Repeating a command is harmless. `down`
         and `remove` take two steps: they close the machines, then end their tasks, which are
         queued again. If the command is killed between the two, a scheduler takes the second.
Source   docs/decisions/0015-evictions-alternates-machines.md.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import numpy as np
import typer

from omega.cli.cell.machine_names import MachineNames, SelectedMachines, Where, select_present
from omega.cli.cell_access import DemoOption, cell_store
from omega.errors import OmegaError
from omega.model.machines import DEAD, MachineState
from omega.reports.wording import things
from omega.store.protocols import ReaderStore
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo

NOW: Final = {
    MachineState.OPEN: "open",
    MachineState.DRAINING: "draining",
    MachineState.DOWN: "down",
    MachineState.GONE: "gone for good",
}
"""The words for a machine's state in the messages."""


def drain(
    machines: MachineNames = None,
    where: Where = None,
    data_dir: DataDir = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """Give machines no new tasks; they keep those that they run.

    Put them back with [bold]omega cell open[/]. To have them empty at a certain time, resize them
    to nothing with a notice: [bold]omega cell resize m1 --cpu 0 --memory 0 --notice 1h[/]
    """
    _put(MachineState.DRAINING, machines, where, data_dir, demo=demo, json_to=json_to)


def open_again(
    machines: MachineNames = None,
    where: Where = None,
    data_dir: DataDir = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """Give machines tasks again that were draining or down."""
    _put(MachineState.OPEN, machines, where, data_dir, demo=demo, json_to=json_to)


def down(
    machines: MachineNames = None,
    where: Where = None,
    data_dir: DataDir = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """Say that machines have failed: what they ran is lost, and waits to be placed elsewhere.

    A gang that falls below its minimum is lost whole. Once they work again: omega cell open.
    """
    _put(MachineState.DOWN, machines, where, data_dir, demo=demo, json_to=json_to)


def remove(
    machines: MachineNames = None,
    where: Where = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also machines that run tasks; as when they fail.")
    ] = False,
    data_dir: DataDir = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """Take machines out of the cell for good.

    Their names stay taken. One that runs tasks is refused unless forced: drain it first.
    """
    _put(
        MachineState.GONE,
        machines,
        where,
        data_dir,
        demo=demo,
        json_to=json_to,
        only_empty=not force,
    )


def _put(
    state: MachineState,
    machines: Sequence[str] | None,
    where: Sequence[str] | None,
    data_dir: Path | None,
    *,
    demo: bool,
    json_to: str | None,
    only_empty: bool = False,
) -> None:
    output = Output(json_to)
    with cell_store(data_dir, demo=demo) as store:
        chosen = select_present(store.snapshot(), machines, where)
        if only_empty:
            _refuse_those_in_use(store, chosen)
        changed = store.set_state(chosen.id, state)
        lost = store.lose_tasks(chosen.id) if state in DEAD else 0
        running = len(store.allocations_on(chosen.id))
    output.document(
        parameters={"machines": machines, "where": where, "demo": demo},
        rows=[
            {"machine": name, "id": number, "before": MachineState(before).name.lower()}
            for name, number, before in zip(
                chosen.names, chosen.id.tolist(), chosen.rows.state.tolist(), strict=True
            )
        ],
        summary={
            "state": state.name.lower(),
            "machines": len(chosen),
            "changed": changed,
            "tasks_lost": lost,
            "tasks_running": running,
        },
    )
    _tell(output, state, chosen, changed=changed, lost=lost, running=running)


def _refuse_those_in_use(store: ReaderStore, chosen: SelectedMachines) -> None:
    """Raise OmegaError if tasks run on the chosen machines."""
    live = store.allocations_on(chosen.id)
    if len(live):
        used = chosen.those(np.flatnonzero(np.isin(chosen.id, live.machine)))
        raise OmegaError(
            f"{things(len(live), 'task')} on {used.counted()}:"
            " drain first, or say --force to have them placed elsewhere"
        )


def _tell(
    output: Output,
    state: MachineState,
    chosen: SelectedMachines,
    *,
    changed: int,
    lost: int,
    running: int,
) -> None:
    is_one = len(chosen) == 1
    if changed:
        be, already = "is" if is_one else "are", ""
    else:
        be, already = "was" if is_one else "were", " already"
    machines = things(len(chosen), "machine")
    sentences = [f"{machines} {be} {NOW[state]}{already}: {chosen.listed()}."]
    if 0 < changed < len(chosen):
        sentences.append(f"{len(chosen) - changed:,} of them already.")
    if state is MachineState.DRAINING and running:
        sentences.append(f"{things(running, 'task')} still there.")
    if lost:
        sentences.append(f"{things(lost, 'task')} lost, to be placed again.")
    output.console.print(" ".join(sentences), highlight=False, soft_wrap=True)
