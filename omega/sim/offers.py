"""Two-level scheduling: an allocator that offers what is free, and frameworks that fill offers.

Goal     The design of Mesos as the Omega paper simulated it, with the schedulers and the loop that
         run live: the view is the offer.
Promise  What is offered is locked for everybody else until the framework answers, so that nothing
         it places can be refused; after the last answer nothing is locked. Everything free goes to
         one framework, the one with the lowest dominant share of what runs.
Source   docs/papers/omega.md, two-level; Mesos (NSDI 2011); dominant shares: DRF (NSDI 2011).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from omega.cell.view import View
from omega.framework.attempt import Replica, attempt
from omega.framework.effects import Commit, Effect, Refresh, Think, drive
from omega.model.arrays import Amounts, Ids
from omega.model.claims import ConflictRule, Transaction
from omega.model.jobs import LeasedJob
from omega.model.outcomes import Outcome
from omega.sim.cell import CPU, ByKind
from omega.sim.engine import Order
from omega.sim.ledger import Ledger, SimulatedJob
from omega.sim.queue import Patience, Queue
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


class Allocator:
    """Hands out what is free, to one framework at a time.

    An offer is the very arrays that the allocator had: what becomes free from then on goes to new
    ones, and what is left of the offer is added to those when it comes back.
    """

    def __init__(self, world: World, offering: Offering) -> None:
        self._world = world
        self._offering = offering
        self._wishes: list[Framework] = []
        self._is_armed = False
        self._free = world.cell.free
        """What nobody uses and nobody is offered."""
        world.when_tasks_end.append(self._hear_of_an_end)

    def wish(self, framework: "Framework") -> None:
        """Let a framework ask for an offer."""
        if framework not in self._wishes:
            self._wishes.append(framework)
        self.arm()

    def withdraw(self, framework: "Framework") -> None:
        """Let a framework have nothing to place."""
        self._wishes.remove(framework)

    def arm(self) -> None:
        """Have an offer made in a while, unless one is on its way."""
        if not self._is_armed:
            self._is_armed = True
            engine = self._world.engine
            engine.at(engine.now_s + self._offering.batch_s, Order.RETRY, self._offer)

    def take_back(self, left: ByKind, cpu_milli: int) -> None:
        """Have free again what is left of an offer that had so much CPU."""
        for free, amount in zip(self._free, left, strict=True):
            np.add(free, amount, out=free)
        self._world.cell.cpu_locked -= cpu_milli
        self.arm()

    def _hear_of_an_end(self, machine: Ids, amounts: Amounts) -> None:
        for kind, free in enumerate(self._free):
            np.add.at(free, machine - 1, amounts[:, kind])
        self.arm()

    def _offer(self) -> None:
        cell, engine = self._world.cell, self._world.engine
        if not self._wishes or cell.free_cpu_milli < self._offering.least_cpu_milli:
            self._is_armed = False
            return
        # Of two that have the same, the one that wished last: so it was in the open simulator.
        framework = min(reversed(self._wishes), key=lambda one: one.share)
        offered, self._free = self._free, [np.zeros_like(amount) for amount in self._free]
        cell.cpu_locked += int(offered[CPU].sum())
        arrive = partial(self._arrive, framework, offered)
        engine.at(engine.now_s + self._offering.allocator_s, Order.ARRIVAL, arrive)

    def _arrive(self, framework: "Framework", offered: ByKind) -> None:
        self._is_armed = False
        framework.receive(offered)


@dataclass(frozen=True, eq=False)
class _Grant:
    job: SimulatedJob
    lease: LeasedJob
    """The job as it was when this was placed."""
    transaction: Transaction


class Framework:
    """A scheduler that places on what it is offered, and answers when it has thought."""

    def __init__(
        self,
        replica: Replica,
        world: World,
        allocator: Allocator,
        *,
        patience: Patience,
        horizon_s: float,
    ) -> None:
        self._replica = replica
        self._world = world
        self._allocator = allocator
        self._horizon_s = horizon_s
        self.ledger = Ledger(replica.name)
        self._queue = Queue(world.engine, patience, self.ledger, self._wish)
        self._deciding = 0
        """Jobs in offers that are not answered yet."""
        self._runs = np.zeros_like(world.cell.total)
        self._offer = world.cell.twin()
        """The offer that is being filled, which takes no time: one serves for all."""
        self._was_free = self._offer.free
        """On the offer, when it was last filled."""

    def submit(self, job: SimulatedJob) -> None:
        """Put a job into the queue."""
        self._queue.join(job)

    @property
    def load(self) -> int:
        """How many jobs wait or are being decided on."""
        return len(self._queue) + self._deciding

    @property
    def share(self) -> float:
        """The dominant share of what runs; offers held do not count."""
        total = self._world.cell.total
        return float((self._runs / np.maximum(total, 1)).max())

    def receive(self, offered: ByKind) -> None:
        """Fill an offer from the queue, job by job, until either is used up; answer later."""
        offer = self._offer
        differs = [now != was for now, was in zip(offered, self._was_free, strict=True)]
        offer.have_free(offered, np.logical_or.reduce(differs).nonzero()[0])
        cpu_milli = offer.free_cpu_milli
        grants: list[_Grant] = []
        thinks_s, taken = 0.0, 0
        while len(self._queue) and offer.free_cpu_milli:
            job = self._queue.take()
            job.attempts += 1
            thinks_s += self._place(job, grants, thinks_s)
            taken += 1
        if not len(self._queue):
            self._allocator.withdraw(self)
        engine = self._world.engine
        for grant in grants:
            claims = grant.transaction.claims
            for kind, amount in enumerate(offered):
                np.subtract.at(amount, claims.machine - 1, claims.demand[:, kind])
        self._was_free = offered
        self._deciding += taken
        answer = partial(self._answer, offered, cpu_milli, grants, taken)
        engine.at(engine.now_s + thinks_s, Order.DECISION, answer)

    def _wish(self) -> None:
        self._allocator.wish(self)

    def _place(self, job: SimulatedJob, grants: list[_Grant], after_s: float) -> float:
        """Make one attempt at a job within the offer; return its decision time."""
        thinks_s = self._replica.decision_time.of(job.left)
        began_s = self._world.engine.now_s + after_s
        self.ledger.begin(thinks_s, before_s=self._horizon_s - began_s)
        left = job.lease
        transactions: list[Transaction] = []
        if self._offer.free_cpu_milli > job.lease.spec.groups[0].cpu_milli:

            def answer(effect: Effect) -> View | Outcome | None:
                match effect:
                    case Refresh():
                        return self._offer.view
                    case Think():
                        return None
                    case Commit(transaction):
                        transactions.append(transaction)
                        return self._offer.commit(transaction, job.lease)
                    case _:
                        raise AssertionError("an attempt asks for nothing else")

            left = drive(attempt(self._replica, [job.lease]), answer)[0].job
        if transactions:
            self.ledger.useful_s += thinks_s
            self.ledger.accepted += 1
            self.ledger.claims_accepted += sum(len(one.claims) for one in transactions)
        else:
            self.ledger.found_no_room += 1
        grants += [_Grant(job, job.lease, _by_fit(one)) for one in transactions]
        self._queue.settle(job, left)
        return thinks_s

    def _answer(self, left: ByKind, cpu_milli: int, grants: Sequence[_Grant], taken: int) -> None:
        """Give back the offer, but for what was placed, which begins to run."""
        self._deciding -= taken
        cell = self._world.cell
        for grant in grants:
            outcome = cell.commit(grant.transaction, grant.lease)
            assert outcome.accepted.all(), "what is offered is nobody else's"
            self._runs += grant.transaction.claims.demand.sum(axis=0)
            self._world.run(grant.job, grant.transaction.claims, outcome, tell=self._hear_of_end)
        self._allocator.take_back(left, cpu_milli)

    def _hear_of_end(self, _machine: Ids, amounts: Amounts) -> None:
        self._runs -= amounts.sum(axis=0)


def _by_fit(transaction: Transaction) -> Transaction:
    """Return it to be judged by room alone: sequences seen in an offer are not the cell's."""
    if transaction.rule is ConflictRule.FIT:
        return transaction
    return replace(transaction, rule=ConflictRule.FIT)
