"""Adds a workload's machines and the tasks that run on them to a cell, and shows the progress.

Goal     Let `cell load` and `demo` show progress in the same way.
Promise  Tasks that could not be placed are counted in the result and in the printed line.
Source   omega.store.loading.
"""

from threading import Event

from omega.clock import Clock
from omega.model.arrays import Ids
from omega.reports.wording import count, things
from omega.store.loading import Loaded, place_prefill
from omega.store.protocols import OwnerStore, Store
from omega.terminal.consoles import Output
from omega.terminal.progress import progress_bar
from omega.workload.arrivals import Workload


def add_machines(
    workload: Workload, store: OwnerStore, output: Output, clock: Clock
) -> tuple[float, Ids]:
    """Add a workload's machines; return the seconds that it took, and their ids."""
    machines = things(len(workload.machines), "machine")
    began = clock.now()
    with output.console.status(f"Adding {machines}"):
        ids = store.add_machines(workload.machines)
    seconds = clock.now() - began
    output.console.print(f"{machines} added in {seconds:.1f} s.", highlight=False)
    return seconds, ids


def place_running(
    workload: Workload, store: Store, ids: Ids, output: Output, clock: Clock, stop: Event
) -> Loaded:
    """Place the tasks that run on the machines at the start."""
    with progress_bar(output.console) as progress:
        bar = progress.add_task("Filling the cell", total=len(workload.prefill))
        loaded = place_prefill(
            store,
            workload.prefill,
            ids,
            clock=clock,
            advance=lambda tasks: progress.advance(bar, tasks),
            stopped=stop.is_set,
        )
    if loaded.tasks:
        output.console.print(
            f"{loaded.placed:,} of {things(loaded.tasks, 'task')} placed on them in"
            f" {loaded.seconds:.1f} s, {count(loaded.tasks_per_second)} a second.",
            highlight=False,
        )
    return loaded
