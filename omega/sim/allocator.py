"""The allocator of two-level scheduling: offers what is free to one framework at a time.

Goal     Let an offer cost what changes in it, and nothing for all the machines that it names.
Promise  What is offered is locked for everybody else until it is taken back. Everything free goes
         to one framework, the one with the lowest dominant share of what runs.
Source   docs/papers/omega.md, two-level; Mesos (NSDI 2011); dominant shares: DRF (NSDI 2011);
         docs/decisions/0035-an-offer-is-a-cell.md.
"""

from dataclasses import dataclass
from functools import partial
from typing import Protocol

import numpy as np

from omega.model.arrays import Amounts, Ids, integers
from omega.sim.cell import SimulatedCell
from omega.sim.engine import Order
from omega.sim.world import World


@dataclass(frozen=True, kw_only=True)
class Offering:
    """How the allocator offers."""

    batch_s: float = 1.0
    """From the moment at which something changes to the next offer."""
    allocator_s: float = 0.001
    """From an offer's making to its arrival."""
    least_cpu_milli: int = 100_000
    """Less than this is not offered."""


class Offer:
    """Some free amounts: a cell of all machines on which nothing else is free."""

    def __init__(self, cell: SimulatedCell, freed: Ids) -> None:
        """`freed` are the machines on which something is free."""
        self.cell = cell
        self._freed = [freed]
        self.rows = len(freed)
        """Rows that may have something free; a machine may count twice."""

    def add(self, machine: Ids, amounts: Amounts) -> None:
        """Add what tasks that end have used."""
        self.cell.release(machine, amounts)
        self._note(machine)

    def take_over(self, other: "Offer") -> None:
        """Add all of another offer, on which nothing is free then."""
        machine = np.concatenate(other._freed)  # noqa: SLF001 - of its own class
        other.cell.hand_over(machine, self.cell)
        other._freed, other.rows = [integers()], 0  # noqa: SLF001 - likewise
        self._note(machine)

    def _note(self, machine: Ids) -> None:
        self._freed.append(machine)
        self.rows += len(machine)
        if self.rows > 2 * len(self.cell.view):
            self._freed = [self.cell.view.id]
            self.rows = len(self.cell.view)


class Framework(Protocol):
    """Whoever is offered machines."""

    @property
    def share(self) -> float:
        """The dominant share of what it runs."""

    def receive(self, offer: Offer) -> None:
        """Place what it can, and have the allocator take back the offer later."""


class Allocator:
    """Hands out what is free."""

    def __init__(self, world: World, offering: Offering) -> None:
        self._world = world
        self._offering = offering
        self._wishes: list[Framework] = []
        self._is_armed = False
        self._free = Offer(world.cell.copy(), world.cell.view.id)
        """What nobody uses and nobody is offered."""
        self._empty: list[Offer] = []
        """Offers that were taken back, on which nothing is free."""
        world.when_tasks_end.append(self._hear_of_an_end)

    def wish(self, framework: Framework) -> None:
        """Let a framework ask for an offer."""
        if framework not in self._wishes:
            self._wishes.append(framework)
        self.arm()

    def withdraw(self, framework: Framework) -> None:
        """Let a framework have nothing to place."""
        self._wishes.remove(framework)

    def arm(self) -> None:
        """Have an offer made in a while, unless one is on its way."""
        if not self._is_armed:
            self._is_armed = True
            engine = self._world.engine
            engine.at(engine.now_s + self._offering.batch_s, Order.RETRY, self._offer)

    def take_back(self, left: Offer, cpu_milli: int) -> None:
        """Have free again what is left of an offer that had so much CPU."""
        more, less = self._free, left
        if less.rows > more.rows:
            more, less = less, more
        more.take_over(less)
        self._free = more
        self._empty.append(less)
        self._world.cell.cpu_locked -= cpu_milli
        self.arm()

    def _hear_of_an_end(self, machine: Ids, amounts: Amounts) -> None:
        self._free.add(machine, amounts)
        self.arm()

    def _offer(self) -> None:
        cell, engine = self._world.cell, self._world.engine
        if not self._wishes or cell.free_cpu_milli < self._offering.least_cpu_milli:
            self._is_armed = False
            return
        # Of two that have the same, the one that wished last: so it was in the open simulator.
        framework = min(reversed(self._wishes), key=lambda one: one.share)
        offered = self._free
        self._free = self._empty.pop() if self._empty else Offer(cell.twin(), integers())
        cell.cpu_locked += offered.cell.free_cpu_milli
        arrive = partial(self._arrive, framework, offered)
        engine.at(engine.now_s + self._offering.allocator_s, Order.OFFER, arrive)

    def _arrive(self, framework: Framework, offered: Offer) -> None:
        self._is_armed = False
        framework.receive(offered)
