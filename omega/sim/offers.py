"""Two-level scheduling: frameworks that fill offers.

Goal     Mesos as the Omega paper simulated it, with the live schedulers and the live loop: the view
         shows the offer.
Promise  A claim that a framework places on its offer cannot be refused. It starts to run, and the
         offer is taken back, when the decision times of all jobs in the offer have passed.
Source   docs/papers/omega.md, two-level; Mesos (NSDI 2011).
"""

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from omega.cell.view import View
from omega.framework.effects import (
    Call,
    Commit,
    Effect,
    Effects,
    PlaceAtRandom,
    Refresh,
    Think,
    Wait,
)
from omega.framework.process import Process
from omega.model.arrays import Amounts, Ids
from omega.model.claims import ConflictRule, Transaction
from omega.model.jobs import LeasedJob
from omega.model.outcomes import Outcome
from omega.sim.actor import Actor, Resume
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
    """The job before this grant."""
    what: Ids | Transaction
    """For a job that was drawn, the machine of each task; otherwise the transaction."""


@dataclass(eq=False)
class _Filling:
    """What a framework has placed on one offer so far."""

    grants: list[_Grant] = field(default_factory=list)
    thinks_s: float = 0.0
    """Decision time of all its jobs ..."""
    job_thinks_s: float = 0.0
    """... and of the current one."""
    claims: int = 0
    """Claims of the current job."""
    jobs: int = 0
    """How many jobs have been decided on."""


class Framework(Actor):
    """A scheduler that places on its offers, and gives each back after the decision times."""

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
        self._queue = Queue(world.engine, give_up, self.ledger, self._request_offer)
        self._deciding = 0
        """Jobs in offers that have not been given back."""
        self._runs = np.zeros_like(world.cell.total)
        self._nothing = world.cell.filled_copy()
        """A cell on which nothing is free; it stands for no offer."""
        self._offer = self._nothing
        """The offer that is being filled; filling takes no virtual time."""
        self._filling = _Filling()
        self._start(process.life())

    def submit(self, job: SimulatedJob) -> None:
        """Put a job into the queue."""
        self._queue.join(job)

    @property
    def load(self) -> int:
        """How many jobs are queued or are being decided on."""
        return len(self._queue) + self._deciding

    @property
    def share(self) -> float:
        """The dominant share of its running tasks; offered amounts do not count."""
        total = self._world.cell.total
        return float((self._runs / np.maximum(total, 1)).max())

    def receive(self, offer: Offer) -> None:
        """Place the queue's jobs on an offer until one of both is used up; give it back later."""
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

    def _request_offer(self) -> None:
        self._allocator.request_offer(self)

    def _next(self, life: Effects[None], effect: Effect) -> Resume | None:
        """Answer at once; the process waits when no job is queued or nothing is free."""
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
            case PlaceAtRandom():
                return self._draw(effect)
            case Commit(transaction):
                return self._place(transaction)
            case Call("hand_back", make):
                self._record()
                return make(self._queue)
        raise AssertionError(f"a framework has no answer to {effect}")

    def _view(self) -> View:
        """Return a view of the offer, or of nothing if a task may need all the CPU of the offer.

        The open simulator, too, uses an offer only if it has more CPU than one task asks for.
        """
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

    def _draw(self, effect: PlaceAtRandom) -> LeasedJob | None:
        self._think(effect.seconds)
        job, filling = self._queue.leased, self._filling
        assert job is not None
        machine = None
        if self._fits(job):  # nobody else claims on the offer: no sequence can have changed
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
        """Count the attempt that ends in the ledger and in the filling."""
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
        """Start what was placed, and give back the rest of the offer."""
        self._deciding -= filling.jobs
        for grant in filling.grants:
            self._run(grant)
        self._allocator.take_back(left, cpu_milli)

    def _run(self, grant: _Grant) -> None:
        """Commit to the cell what was placed on the offer, and start it."""
        cell, world, job = self._world.cell, self._world, grant.job
        if isinstance(grant.what, Transaction):
            claims = grant.what.claims
            outcome = cell.commit(grant.what, grant.lease)
            assert outcome.accepted.all(), "what is offered is nobody else's"
            self._runs += claims.demand_on(outcome.machine).sum(axis=0)
            world.run(job, claims, outcome, tell=self._on_task_end)
        else:
            demand = job.lease.spec.groups[0].demand
            cell.claim_one_shape(grant.what, demand)
            self._runs += len(grant.what) * demand
            world.run_whole(job, grant.what, tell=self._on_task_end)

    def _on_task_end(self, machine: Ids, amounts: Amounts) -> None:
        self._runs -= sum_of(machine, amounts)


def _by_fit(transaction: Transaction) -> Transaction:
    """Return the transaction with the fit rule: sequences seen in an offer are not the cell's."""
    if transaction.rule is ConflictRule.FIT:
        return transaction
    return replace(transaction, rule=ConflictRule.FIT)
