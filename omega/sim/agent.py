"""A scheduler in virtual time: a queue, and one attempt after the other through the live loop.

Goal     Run the very code that runs live, `omega.framework.attempt`, and answer its effects with
         virtual time and a simulated cell.
Promise  One try an attempt. What is left returns to the tail of the queue after a while, or is
         given up, by the rules of the paper's open simulator.
Source   docs/papers/omega.md, one attempt at one job; omega.framework.effects.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from omega.cell.view import View
from omega.framework.attempt import Replica, attempt
from omega.framework.effects import Answer, Commit, Effect, Refresh, Steps, Think
from omega.framework.progress import Attempted
from omega.model.claims import Claims, Granularity, Transaction
from omega.model.outcomes import Outcome, Verdict
from omega.sim.cell import SimulatedCell
from omega.sim.engine import Engine, Order
from omega.sim.ledger import Ledger, SimulatedJob
from omega.workload.arrivals import MS_PER_S


@dataclass(frozen=True, kw_only=True)
class Patience:
    """When a job that was not placed whole is tried again, and when it is given up."""

    retry_s: float = 1.0
    fruitless_max: int = 100
    """Attempts at a job of which nothing was ever placed."""
    attempts_max: int = 1_000


class Agent:
    """One scheduler and its queue."""

    def __init__(
        self,
        replicas: Mapping[str, Replica],
        *,
        engine: Engine,
        cell: SimulatedCell,
        sees_the_present: bool,
        patience: Patience,
        horizon_s: float,
    ) -> None:
        """`replicas` by workload: they differ in decision time alone.

        Who sees the present places on the cell as it is at the end of a decision, as one
        scheduler alone can; others on what they saw when they began.
        """
        self._replicas = replicas
        self._engine = engine
        self._cell = cell
        self._sees_the_present = sees_the_present
        self._patience = patience
        self._horizon_s = horizon_s
        self._queue: deque[SimulatedJob] = deque()
        self._view = cell.view()
        self._job: SimulatedJob | None = None
        self._steps: Steps[list[Attempted]] | None = None
        self._thinks_s = 0.0
        self._claimed = False
        first = next(iter(replicas.values()))
        self.ledger = Ledger(first.name)

    def submit(self, job: SimulatedJob) -> None:
        """Put a job at the tail of the queue; begin at once if idle."""
        job.queued_s = self._engine.now_s
        self._queue.append(job)
        self.ledger.waiting += 1
        if self._job is None:
            self._begin()

    def _begin(self) -> None:
        job = self._queue.popleft()
        self.ledger.waiting -= 1
        waited_s = self._engine.now_s - job.queued_s
        job.waited_s += waited_s
        if job.first_wait_s is None:
            job.first_wait_s = waited_s
        self._job, self._claimed = job, False
        self._steps = attempt(self._replicas[job.workload], [job.lease])
        self._go_on(None)

    def _go_on(self, answer: Answer) -> None:
        """Answer effects until one takes time, or the attempt is over."""
        assert self._steps is not None
        try:
            effect = self._steps.send(answer)
            while not isinstance(effect, Think):
                effect = self._steps.send(self._answer(effect))
        except StopIteration as end:
            self._settle(end.value[0])
            return
        self._thinks_s = effect.seconds
        now_s = self._engine.now_s
        self.ledger.begun += 1
        self.ledger.thought_s += min(effect.seconds, max(0.0, self._horizon_s - now_s))
        self._engine.at(now_s + effect.seconds, Order.DECISION, self._decide)

    def _decide(self) -> None:
        assert self._job is not None
        self._job.attempts += 1
        if self._sees_the_present:
            self._cell.catch_up(self._view)
        self._go_on(None)

    def _answer(self, effect: Effect) -> View | Outcome:
        if isinstance(effect, Commit):
            return self._commit(effect.transaction)
        assert isinstance(effect, Refresh)
        self._cell.catch_up(self._view)
        return self._view

    def _commit(self, transaction: Transaction) -> Outcome:
        job, ledger = self._job, self.ledger
        assert job is not None
        outcome = self._cell.commit(transaction, job.lease)
        accepted = outcome.accepted
        granted = int(np.count_nonzero(accepted))
        refused = len(accepted) - granted
        self._claimed = True
        if refused:
            ledger.conflicted += 1
            ledger.wasted_s += self._thinks_s
        else:
            ledger.accepted += 1
            ledger.useful_s += self._thinks_s
        ledger.claims_accepted += granted
        ledger.claims_refused += refused
        scheduler = self._replicas[job.workload].scheduler
        ledger.claims_weighed += (
            _until_refused(outcome)
            if scheduler.granularity is Granularity.ALL_OR_NOTHING
            else len(accepted)
        )
        if granted:
            self._run(job, transaction.claims, outcome)
        return outcome

    def _run(self, job: SimulatedJob, claims: Claims, outcome: Outcome) -> None:
        """Have what was granted end when its time is up, group by group."""
        first = 0
        for group in job.lease.spec.groups:
            last = first + group.tasks
            if group.duration_ms is not None:
                mine = outcome.accepted & (claims.task >= first) & (claims.task < last)
                if mine.any():
                    ends_s = self._engine.now_s + group.duration_ms / MS_PER_S
                    release = partial(self._cell.release, claims.machine[mine], claims.demand[mine])
                    self._engine.at(ends_s, Order.END, release)
            first = last

    def _settle(self, attempted: Attempted) -> None:
        """Take in what came of the attempt, and begin the next."""
        job = self._job
        assert job is not None
        if not self._claimed:
            self.ledger.found_no_room += 1
        # The attempts count, so that each draws other machines.
        job.lease = replace(attempted.job, fruitless=job.attempts)
        if job.left:
            if self._gives_up(job):
                job.abandoned = True
                self.ledger.abandoned += 1
            else:
                again_s = self._engine.now_s + self._patience.retry_s
                self._engine.at(again_s, Order.RETRY, partial(self.submit, job))
        self._job = None
        if self._queue:
            self._begin()

    def _gives_up(self, job: SimulatedJob) -> bool:
        if job.attempts > self._patience.attempts_max:
            return True
        return not job.lease.placed and job.attempts > self._patience.fruitless_max


def _until_refused(outcome: Outcome) -> int:
    """Count claims up to the first that was refused for its own sake, as who stops there does."""
    own = (outcome.verdicts != Verdict.ACCEPTED) & (outcome.verdicts != Verdict.GANG_BROKEN)
    return int(np.argmax(own)) + 1 if own.any() else len(own)
