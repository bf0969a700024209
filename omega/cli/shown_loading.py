"""Loading, with a sentence of how it went and a bar while it goes.

Goal     Let `cell load` and `demo` load alike.
Promise  Says what was loaded and how fast, where results are said.
Source   omega.cli.loading.
"""

from threading import Event

from omega.cli.consoles import Output
from omega.cli.loading import Loaded, place_prefill
from omega.cli.wording import count, things
from omega.clock import Clock
from omega.model.arrays import Ids
from omega.store.base import Store
from omega.workload.arrivals import Workload


def add_machines(
    workload: Workload, store: Store, output: Output, clock: Clock
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
    """Place what runs on the machines at the start."""
    with output.progress() as progress:
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
