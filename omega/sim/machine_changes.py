"""Machines that fail, come back and change in size while a run goes on.

Goal     Play what is recorded or drawn of a cell's machines to the schedulers that share it.
Promise  What a machine that goes down ran is lost at that moment, with the gangs that cannot stand
         without it; views hear of its state, and claims on it are refused. A machine that shrinks
         takes claims by its new size at once, and what it runs goes on until it ends.
Source   omega.workload.machine_events; docs/decisions/0021-virtual-time.md.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from omega.model.machines import MachineState
from omega.sim.engine import Order
from omega.sim.world import World
from omega.workload.machine_events import MachineEvent


def play(world: World, events: Sequence[MachineEvent], machines: slice) -> None:
    """Have happen to a world, whose machines are those at these positions, what concerns them."""
    for event in events:
        if machines.start <= event.machine < machines.stop:
            change = partial(_change, world, event.machine - machines.start + 1, event)
            world.engine.at(event.time_s, Order.MACHINE, change)


def _change(world: World, machine: int, event: MachineEvent) -> None:
    if event.capacity is not None:
        world.cell.resize(machine, event.capacity)
    if event.up:
        world.cell.set_state(machine, MachineState.OPEN)
    else:
        _fail(world, machine)


def _fail(world: World, machine: int) -> None:
    assert world.running is not None, "whose machines fail must know what runs on them"
    lost = world.running.take_off(machine)
    if lost:
        world.cell.lose(
            np.concatenate([gone.job_id for gone in lost]),
            np.concatenate([gone.task for gone in lost]),
            np.concatenate([gone.machine for gone in lost]),
            np.concatenate([gone.amounts for gone in lost]),
        )
    world.cell.set_state(machine, MachineState.DOWN)
    # Whoever is told may begin to decide at once, and must see the cell as it is now.
    world.tell_of_losses(lost)
