"""Machines that fail, return and change in size during a run.

Goal     Apply recorded or drawn machine events to the cell that the schedulers share.
Promise  When a machine goes down its tasks are lost at that moment, and so are gangs that fall
         below their minimum. Views show its state, and claims on it are refused. A machine that
         shrinks takes claims by its new capacity at once; its tasks go on until they end.
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
    """Schedule the events of the machines at these positions, which are those of the world."""
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
    # A scheduler may begin to decide when losses are reported, and must see the cell as it is now.
    world.tell_of_losses(lost)
