"""Two-level scheduling: frameworks that fill offers.

Goal     The design of Mesos as the Omega paper simulated it, with the schedulers and the loop that
         run live: the view is the offer.
Promise  Nothing that a framework places on an offer can be refused; it begins to run when the
         decision times of all its jobs have passed, and then the offer is taken back.
Source   docs/papers/omega.md, two-level; Mesos (NSDI 2011).
"""

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from omega.cell.view import View
from omega.framework.effects import Call, Commit, Draw, Effect, Refresh, Steps, Think, Wait
from omega.framework.process import Process
from omega.model.arrays import Amounts, Ids
from omega.model.claims import ConflictRule, Transaction
from omega.model.jobs import LeasedJob
from omega.model.outcomes import Outcome
from omega.sim.actor import Actor, GoOn
from omega.sim.allocator import Allocator, Offer
from omega.sim.engine import Order
from omega.sim.ledger import Ledger, SimulatedJob
from omega.sim.queue import GiveUpPolicy, Queue
from omega.sim.running import sum_of
from omega.sim.world import World


@dataclass(frozen=True, eq=False)
class _Grant:
    job: SimulatedJob
    lease: LeasedJob
    """The job as it was when this was placed."""
    what: Ids | Transaction
    """Of a job that was drawn, the machine of each task; of others what was committed."""


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


class Framework(Actor):
    """A scheduler that places on what it is offered, and answers when it has thought."""

    def __init__(
        self,
        process: Process,
        world: World,
        allocator: Allocator,
        *,
        give_up: GiveUpPolicy,
        horizon_s: float,
    ) -> None:
        super().__init__()
        self._world = world
        self._allocator = allocator
        self._horizon_s = horizon_s
        self.ledger = Ledger(process.replica)
        self._queue = Queue(world.engine, give_up, self.ledger, self._wish)
        self._deciding = 0
        """Jobs in offers that are not answered yet."""
        self._runs = np.zeros_like(world.cell.total)
        self._nothing = world.cell.twin()
        """An offer on which nothing is free."""
        self._offer = self._nothing
        """The offer that is being filled, which takes no time."""
        self._filling = _Filling()
        self._start(process.life())

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

    def receive(self, offer: Offer) -> None:
        """Fill an offer from the queue, job by job, until either is used up; answer later."""
        cpu_milli = offer.cell.free_cpu_milli
        self._offer = offer.cell
        self._filling = filling = _Filling()
        self._resume(None)
        if not len(self._queue):
            self._allocator.withdraw(self)
        engine = self._world.engine
        self._deciding += filling.jobs
        answer = partial(self._answer, offer, cpu_milli, filling)
        engine.at(engine.now_s + filling.thinks_s, Order.DECISION, answer)

    def _wish(self) -> None:
        self._allocator.wish(self)

    def _next(self, life: Steps[None], effect: Effect) -> GoOn | None:
        """Answer, at once: it waits when there is no job, or nothing free, any more."""
        return None if isinstance(effect, Wait) else partial(life.send, self._answered(effect))

    def _answered(self, effect: Effect) -> object:
        match effect:
            case Call("lease", make):
                return make(self._queue) if self._offer.free_cpu_milli else ()
            case Refresh():
                return self._view()
            case Think(seconds):
                self._think(seconds)
                return None
            case Draw():
                return self._draw(effect)
            case Commit(transaction):
                return self._place(transaction)
            case Call("hand_back", make):
                self._record()
                return make(self._queue)
        raise AssertionError(f"a framework has no answer to {effect}")

    def _view(self) -> View:
        """Show the offer; as the open simulator does, not to a job that may need all of it."""
        job = self._queue.leased
        assert job is not None
        return (self._offer if self._fits(job) else self._nothing).view

    def _fits(self, job: SimulatedJob) -> bool:
        return self._offer.free_cpu_milli > job.lease.spec.groups[0].cpu_milli

    def _think(self, seconds: float) -> None:
        job, filling = self._queue.leased, self._filling
        assert job is not None
        began_s = self._world.engine.now_s + filling.thinks_s
        self.ledger.begin(seconds, before_s=self._horizon_s - began_s)
        filling.thinks_s += seconds
        filling.job_thinks_s += seconds

    def _draw(self, effect: Draw) -> LeasedJob | None:
        self._think(effect.seconds)
        job, filling = self._queue.leased, self._filling
        assert job is not None
        machine = None
        if self._fits(job):  # nobody else is in the offer: no sequence can have changed
            machine = self._offer.draw_and_claim(effect.job, effect.seed, None, by_sequence=False)
        if machine is None:
            return None
        filling.grants.append(_Grant(job, job.lease, machine))
        filling.claims += len(machine)
        return self._queue.place_all(machine)

    def _place(self, transaction: Transaction) -> Outcome:
        job, filling = self._queue.leased, self._filling
        assert job is not None
        claims = transaction.claims
        filling.grants.append(_Grant(job, job.lease, _by_fit(transaction)))
        filling.claims += len(claims)
        outcome = self._offer.commit(transaction, job.lease)
        self._queue.place(claims, outcome.machine, outcome.accepted)
        return outcome

    def _record(self) -> None:
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

    def _answer(self, left: Offer, cpu_milli: int, filling: _Filling) -> None:
        """Give back the offer, but for what was placed, which begins to run."""
        self._deciding -= filling.jobs
        for grant in filling.grants:
            self._run(grant)
        self._allocator.take_back(left, cpu_milli)

    def _run(self, grant: _Grant) -> None:
        """Commit to the cell what was placed on the offer, and have it run."""
        cell, world, job = self._world.cell, self._world, grant.job
        if isinstance(grant.what, Transaction):
            claims = grant.what.claims
            outcome = cell.commit(grant.what, grant.lease)
            assert outcome.accepted.all(), "what is offered is nobody else's"
            self._runs += claims.demand.sum(axis=0)
            world.run(job, claims, outcome, tell=self._hear_of_end)
        else:
            demand = job.lease.spec.groups[0].demand
            cell.claim_plain(grant.what, demand)
            self._runs += len(grant.what) * demand
            world.run_whole(job, grant.what, tell=self._hear_of_end)

    def _hear_of_end(self, machine: Ids, amounts: Amounts) -> None:
        self._runs -= sum_of(machine, amounts)


def _by_fit(transaction: Transaction) -> Transaction:
    """Return it to be judged by room alone: sequences seen in an offer are not the cell's."""
    if transaction.rule is ConflictRule.FIT:
        return transaction
    return replace(transaction, rule=ConflictRule.FIT)
