"""The allocator of two-level scheduling: offers what is free to one framework at a time.

Goal     Make the cost of an offer depend on the rows that changed, not on all machines it names.
Promise  Offered amounts are locked for all others until the offer is taken back. All free amounts
         go to one framework: the one whose running tasks have the lowest dominant share.
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
class OfferPolicy:
    """When offers are made, and which ones."""

    batch_s: float = 1.0
    """Seconds from a change until the next offer is made."""
    allocator_s: float = 0.001
    """Seconds from the moment an offer is made until it reaches its framework."""
    least_cpu_milli: int = 100_000
    """No offer is made while less CPU than this is free."""


class Offer:
    """Free amounts for one framework: a cell of all machines where only these amounts are free."""

    def __init__(self, cell: SimulatedCell, freed: Ids) -> None:
        """`freed` are the ids of the machines on which something is free."""
        self.cell = cell
        self._freed = [freed]
        self.rows = len(freed)
        """How many rows may have something free; a machine may be counted twice."""

    def add(self, machine: Ids, amounts: Amounts) -> None:
        """Add the amounts that tasks held which have ended."""
        self.cell.release(machine, amounts)
        self._note(machine)

    def take_over(self, other: "Offer") -> None:
        """Move everything free in another offer into this one; the other is empty afterwards."""
        machine = np.concatenate(other._freed)  # noqa: SLF001 - of its own class
        other.cell.move_free(machine, self.cell)
        other._freed, other.rows = [integers()], 0  # noqa: SLF001 - likewise
        self._note(machine)

    def _note(self, machine: Ids) -> None:
        self._freed.append(machine)
        self.rows += len(machine)
        if self.rows > 2 * len(self.cell.view):
            self._freed = [self.cell.view.id]
            self.rows = len(self.cell.view)


class Framework(Protocol):
    """A scheduler that receives offers."""

    @property
    def share(self) -> float:
        """The dominant share of the tasks that it runs."""

    def receive(self, offer: Offer) -> None:
        """Place what fits into the offer; give it back with `Allocator.take_back` later."""


class Allocator:
    """Offers all free amounts to one framework at a time."""

    def __init__(self, world: World, offering: OfferPolicy) -> None:
        self._world = world
        self._offering = offering
        self._requests: list[Framework] = []
        self._is_armed = False
        self._free = Offer(world.cell.copy(), world.cell.view.id)
        """Amounts that no task uses and that are not offered."""
        self._empty: list[Offer] = []
        """Offers that were taken back and have nothing free; they are used again."""
        world.when_tasks_end.append(self._on_tasks_end)

    def request_offer(self, framework: Framework) -> None:
        """Enter a framework that has tasks to place; an offer is made after `batch_s`."""
        if framework not in self._requests:
            self._requests.append(framework)
        self.arm()

    def withdraw(self, framework: Framework) -> None:
        """Remove a framework that has nothing to place."""
        self._requests.remove(framework)

    def arm(self) -> None:
        """Make an offer after `batch_s`, unless one is already scheduled or on its way."""
        if not self._is_armed:
            self._is_armed = True
            engine = self._world.engine
            engine.at(engine.now_s + self._offering.batch_s, Order.RETRY, self._offer)

    def take_back(self, left: Offer, cpu_milli: int) -> None:
        """Free what is left of an offer that had `cpu_milli` of free CPU when it was made."""
        more, less = self._free, left
        if less.rows > more.rows:
            more, less = less, more
        more.take_over(less)
        self._free = more
        self._empty.append(less)
        self._world.cell.cpu_locked -= cpu_milli
        self.arm()

    def _on_tasks_end(self, machine: Ids, amounts: Amounts) -> None:
        self._free.add(machine, amounts)
        self.arm()

    def _offer(self) -> None:
        cell, engine = self._world.cell, self._world.engine
        if not self._requests or cell.free_cpu_milli < self._offering.least_cpu_milli:
            self._is_armed = False
            return
        # Of two frameworks with equal shares the later to ask goes first, as in the open simulator.
        framework = min(reversed(self._requests), key=lambda one: one.share)
        offered = self._free
        self._free = self._empty.pop() if self._empty else Offer(cell.filled_copy(), integers())
        cell.cpu_locked += offered.cell.free_cpu_milli
        arrive = partial(self._arrive, framework, offered)
        engine.at(engine.now_s + self._offering.allocator_s, Order.OFFER, arrive)

    def _arrive(self, framework: Framework, offered: Offer) -> None:
        self._is_armed = False
        framework.receive(offered)
