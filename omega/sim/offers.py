"""Two-level scheduling: an allocator that offers what is free, and frameworks that fill offers.

Goal     The design of Mesos as the Omega paper simulated it, with the schedulers and the loop that
         run live: the view is the offer.
Promise  What is offered is locked for everybody else until the framework answers, so that nothing
         it places can be refused; after the last answer nothing is locked. Everything free goes to
         one framework, the one with the lowest dominant share of what runs.
Source   docs/papers/omega.md, two-level; Mesos (NSDI 2011); dominant shares: DRF (NSDI 2011).
"""

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from omega.cell.view import View
from omega.framework.effects import Call, Commit, Effect, Refresh, Think, Wait
from omega.framework.process import Process
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


@dataclass(eq=False)
class _Filling:
    """An offer on its way through the queue."""

    grants: list[_Grant] = field(default_factory=list)
    thinks_s: float = 0.0
    """Decision time of all its jobs ..."""
    job_thinks_s: float = 0.0
    """... and of the one under way."""
    claims: int = 0
    """Of the job under way."""
    jobs: int = 0
    """Decided on."""


class Framework:
    """A scheduler that places on what it is offered, and answers when it has thought."""

    def __init__(
        self,
        process: Process,
        world: World,
        allocator: Allocator,
        *,
        patience: Patience,
        horizon_s: float,
    ) -> None:
        self._world = world
        self._allocator = allocator
        self._horizon_s = horizon_s
        self.ledger = Ledger(process.replica)
        self._queue = Queue(world.engine, patience, self.ledger, self._wish)
        self._deciding = 0
        """Jobs in offers that are not answered yet."""
        self._runs = np.zeros_like(world.cell.total)
        self._offer = world.cell.twin()
        """The offer that is being filled, which takes no time: one serves for all."""
        self._was_free = self._offer.free
        """On the offer, when it was last filled."""
        self._nothing = world.cell.twin()
        """An offer on which nothing is free."""
        self._filling = _Filling()
        self._steps = process.life()
        self._fill(next(self._steps))

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
        self._filling = filling = _Filling()
        self._fill(self._steps.send(None))
        if not len(self._queue):
            self._allocator.withdraw(self)
        engine = self._world.engine
        for grant in filling.grants:
            claims = grant.transaction.claims
            for kind, amount in enumerate(offered):
                np.subtract.at(amount, claims.machine - 1, claims.demand[:, kind])
        self._was_free = offered
        self._deciding += filling.jobs
        answer = partial(self._answer, offered, cpu_milli, filling)
        engine.at(engine.now_s + filling.thinks_s, Order.DECISION, answer)

    def _wish(self) -> None:
        self._allocator.wish(self)

    def _fill(self, effect: Effect) -> None:
        """Answer effects until there is no job, or nothing free, any more."""
        while not isinstance(effect, Wait):
            effect = self._steps.send(self._answered(effect))

    def _answered(self, effect: Effect) -> object:
        match effect:
            case Call("lease", make):
                return make(self._queue) if self._offer.free_cpu_milli else ()
            case Refresh():
                return self._view()
            case Think(seconds):
                self._think(seconds)
                return None
            case Commit(transaction):
                return self._place(transaction)
            case Call("hand_back", make):
                self._book()
                return make(self._queue)
        raise AssertionError(f"a framework has no answer to {effect}")

    def _view(self) -> View:
        """Show the offer; as the open simulator does, not to a job that may need all of it."""
        job = self._queue.leased
        assert job is not None
        fits = self._offer.free_cpu_milli > job.lease.spec.groups[0].cpu_milli
        return (self._offer if fits else self._nothing).view

    def _think(self, seconds: float) -> None:
        job, filling = self._queue.leased, self._filling
        assert job is not None
        began_s = self._world.engine.now_s + filling.thinks_s
        self.ledger.begin(seconds, before_s=self._horizon_s - began_s)
        filling.thinks_s += seconds
        filling.job_thinks_s += seconds

    def _place(self, transaction: Transaction) -> Outcome:
        job, filling = self._queue.leased, self._filling
        assert job is not None
        filling.grants.append(_Grant(job, job.lease, _by_fit(transaction)))
        filling.claims += len(transaction.claims)
        outcome = self._offer.commit(transaction, job.lease)
        self._queue.place(transaction.claims, outcome.machine, outcome.accepted)
        return outcome

    def _book(self) -> None:
        """Book what came of an attempt."""
        job, filling = self._queue.leased, self._filling
        assert job is not None
        job.attempts += 1
        if filling.claims:
            self.ledger.useful_s += filling.job_thinks_s
            self.ledger.accepted += 1
            self.ledger.claims_accepted += filling.claims
        else:
            self.ledger.found_no_room += 1
        filling.jobs += 1
        filling.claims, filling.job_thinks_s = 0, 0.0

    def _answer(self, left: ByKind, cpu_milli: int, filling: _Filling) -> None:
        """Give back the offer, but for what was placed, which begins to run."""
        self._deciding -= filling.jobs
        cell = self._world.cell
        for grant in filling.grants:
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
