"""A scheduler's queue: first come, first served, and what was not placed whole comes again.

Goal     One set of rules of waiting, for schedulers of every architecture.
Promise  What is left of a job joins the tail after a while, or is given up after too many attempts.
         What a machine took down joins it at once.
Source   docs/papers/omega.md, one attempt at one job.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from omega.framework.progress import without
from omega.model.arrays import Index
from omega.model.jobs import LeasedJob
from omega.sim.engine import Engine, Order
from omega.sim.ledger import Ledger, SimulatedJob, Stage


@dataclass(frozen=True, kw_only=True)
class Patience:
    """When a job that was not placed whole is tried again, and when it is given up."""

    retry_s: float = 1.0
    fruitless_max: int = 100
    """Attempts at a job of which nothing was ever placed."""
    attempts_max: int = 1_000


class Queue:
    """Jobs that wait for one scheduler."""

    def __init__(
        self,
        engine: Engine,
        patience: Patience,
        ledger: Ledger,
        when_one_joins: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._patience = patience
        self._ledger = ledger
        self._when_one_joins = when_one_joins
        self._jobs: deque[SimulatedJob] = deque()

    def __len__(self) -> int:
        return len(self._jobs)

    def join(self, job: SimulatedJob) -> None:
        """Put a job at the tail."""
        job.queued_s = self._engine.now_s
        job.stage = Stage.WAITING
        self._jobs.append(job)
        self._ledger.waiting = len(self)
        self._when_one_joins()

    def take(self) -> SimulatedJob:
        """Take the job at the head, and book how long it has waited."""
        job = self._jobs.popleft()
        job.stage = Stage.DECIDING
        self._ledger.waiting = len(self)
        waited_s = self._engine.now_s - job.queued_s
        job.waited_s += waited_s
        if job.first_wait_s is None:
            job.first_wait_s = waited_s
        return job

    def settle(self, job: SimulatedJob, left: LeasedJob) -> None:
        """Take in how an attempt left a job: have what is left tried again, or give it up."""
        for tasks in job.lost:
            left = without(left, tasks)
        job.lease, job.lost = left, ()
        job.stage = Stage.ELSEWHERE
        if not job.left:
            return
        # The attempts count, so that each draws other machines.
        job.lease = replace(left, fruitless=job.attempts)
        if self._gives_up(job):
            job.abandoned = True
            self._ledger.abandoned += 1
        else:
            job.stage = Stage.WAITING
            again_s = self._engine.now_s + self._patience.retry_s
            self._engine.at(again_s, Order.RETRY, partial(self.join, job))

    def lose(self, job: SimulatedJob, tasks: Index) -> None:
        """Take in that tasks have lost their place: have them placed again, unless it is given up.

        A job that is being decided on gets them back after that.
        """
        job.tasks_lost += len(tasks)
        job.lease = without(job.lease, tasks)
        job.forgiven = job.attempts
        if job.stage is Stage.DECIDING:
            job.lost = (*job.lost, tasks)
        elif job.stage is Stage.ELSEWHERE and not job.abandoned:
            self.join(job)

    def _gives_up(self, job: SimulatedJob) -> bool:
        attempts = job.attempts - job.forgiven
        if attempts > self._patience.attempts_max:
            return True
        return not job.lease.placed and attempts > self._patience.fruitless_max
