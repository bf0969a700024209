"""A scheduler in virtual time: one attempt after the other through the live loop.

Goal     Run the very code that runs live, `omega.framework.attempt`, and answer its effects with
         virtual time and a simulated cell.
Promise  One try an attempt; decision time passes between the look at the cell and the placement.
Source   docs/papers/omega.md, one attempt at one job; omega.framework.effects.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext

from omega.cell.view import View
from omega.framework.attempt import Replica, attempt
from omega.framework.effects import Commit, Effect, Refresh, Steps, Think
from omega.framework.progress import Attempted
from omega.model.claims import Transaction
from omega.model.outcomes import Outcome
from omega.sim.engine import Order
from omega.sim.ledger import Ledger, SimulatedJob
from omega.sim.queue import Patience, Queue
from omega.sim.rows import Look
from omega.sim.world import World


class Agent:
    """One scheduler and its queue."""

    def __init__(
        self,
        replicas: Mapping[str, Replica],
        world: World,
        *,
        sees_the_present: bool,
        patience: Patience,
        horizon_s: float,
    ) -> None:
        """`replicas` by workload: they differ in decision time alone.

        Who sees the present places on the cell as it is at the end of a decision, as one
        scheduler alone can; others on what they saw when they began.
        """
        self._replicas = replicas
        self._world = world
        self._sees_the_present = sees_the_present
        self._horizon_s = horizon_s
        self.ledger = Ledger(next(iter(replicas.values())).name)
        self._queue = Queue(world.engine, patience, self.ledger, self._begin_if_idle)
        self._view = world.cell.view
        self._look: Look | None = None
        """What it goes by, if not by the cell as it is."""
        self._job: SimulatedJob | None = None
        self._steps: Steps[list[Attempted]] | None = None
        self._thinks_s = 0.0
        self._claimed = False

    def submit(self, job: SimulatedJob) -> None:
        """Put a job into the queue; begin at once if idle."""
        self._queue.join(job)

    @property
    def load(self) -> int:
        """How many jobs wait or are being decided on."""
        return len(self._queue) + (self._job is not None)

    def _begin_if_idle(self) -> None:
        if self._job is None and len(self._queue):
            self._job, self._claimed = self._queue.take(), False
            self._steps = attempt(self._replicas[self._job.workload], [self._job.lease])
            self._go_on(None)

    def _go_on(self, answer: object) -> None:
        """Answer effects until one takes time, or the attempt is over."""
        assert self._steps is not None
        try:
            with self._as_seen():
                effect = self._steps.send(answer)
            while not isinstance(effect, Think):
                effect = self._steps.send(self._answer(effect))
        except StopIteration as end:
            self._forget()
            self._settle(end.value[0])
            return
        self._thinks_s = effect.seconds
        now_s = self._world.engine.now_s
        self.ledger.begin(effect.seconds, before_s=self._horizon_s - now_s)
        self._world.engine.at(now_s + effect.seconds, Order.DECISION, self._decide)

    def _decide(self) -> None:
        assert self._job is not None
        self._job.attempts += 1
        self._go_on(None)

    def _as_seen(self) -> AbstractContextManager[None]:
        return nullcontext() if self._look is None else self._view.as_of(self._look)

    def _forget(self) -> None:
        if self._look is not None:
            self._view.forget(self._look)
            self._look = None

    def _answer(self, effect: Effect) -> View | Outcome:
        if isinstance(effect, Commit):
            return self._commit(effect.transaction)
        assert isinstance(effect, Refresh)
        self._forget()
        if not self._sees_the_present:  # who does looks when the decision is over
            self._look = self._view.look()
        return self._view

    def _commit(self, transaction: Transaction) -> Outcome:
        assert self._job is not None
        outcome = self._world.cell.commit(transaction, self._job.lease)
        self._claimed = True
        if self._look is not None:
            self._view.look_again(self._look, transaction.claims.machine)
        self.ledger.judge(outcome, self._thinks_s)
        if outcome.refused < len(outcome.verdicts):
            self._world.run(self._job, transaction.claims, outcome, lose=self._queue.lose)
            if self._replicas[self._job.workload].limits.tries_max > 1:
                # Time passes before the attempt is over, and what stands is judged meanwhile.
                self._job.place(transaction.claims.task[outcome.accepted])
        return outcome

    def _settle(self, attempted: Attempted) -> None:
        """Take in what came of the attempt, and begin the next."""
        assert self._job is not None
        job, self._job = self._job, None
        if not self._claimed:
            self.ledger.found_no_room += 1
        self._queue.settle(job, attempted.job)
        self._begin_if_idle()
