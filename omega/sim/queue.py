"""A scheduler's queue: first come, first served; jobs not placed whole enter it again.

Goal     The job queue of the paper's experiments, with the open simulator's rules of waiting.
Promise  A job with unplaced tasks joins the tail after a delay, or is given up after too many
         attempts. A job that loses tasks with a machine joins the tail at once.
Source   docs/papers/omega.md, one attempt at one job; omega.store, the job queue.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from omega.framework.disposition import Dispose
from omega.framework.job_attempt import JobResult, with_all_placed, with_grants, without
from omega.model.arrays import Ids, Index, Mask
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.model.lanes import Lane
from omega.sim.engine import Engine, Order
from omega.sim.ledger import Ledger, SimulatedJob, Stage
from omega.store.leases import HandBack
from omega.workload.arrivals import MS_PER_S


@dataclass(frozen=True, kw_only=True)
class GiveUpPolicy:
    """When a job that was not placed whole is tried again, and when it is given up.

    As in the open simulator, a job is given up by the first attempt above a limit, not at it.
    """

    retry_s: float = 1.0
    fruitless_max: int = 100
    """A job of which nothing is placed is given up after more attempts than this."""
    attempts_max: int = 1_000
    """Any job is given up after more attempts than this."""

    @property
    def dispose(self) -> Dispose:
        """A function that hands every job back after an attempt; the queue gives jobs up."""
        delay_ms = round(self.retry_s * MS_PER_S)

        def hand_back(attempted: JobResult) -> HandBack:
            job = attempted.job
            return HandBack(job.id, job.token, delay_ms, progressed=attempted.placed > 0)

        return hand_back


class Queue:
    """The jobs of one scheduler, which takes one at a time."""

    def __init__(
        self,
        engine: Engine,
        give_up: GiveUpPolicy,
        ledger: Ledger,
        when_one_joins: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._give_up = give_up
        self._ledger = ledger
        self._when_one_joins = when_one_joins
        self._jobs: deque[SimulatedJob] = deque()
        self.leased: SimulatedJob | None = None
        """The job that is being decided on."""

    def __len__(self) -> int:
        return len(self._jobs)

    def join(self, job: SimulatedJob) -> None:
        """Put a job at the tail."""
        job.queued_s = self._engine.now_s
        job.stage = Stage.WAITING
        self._jobs.append(job)
        self._ledger.waiting = len(self)
        self._when_one_joins()

    def lease(
        self,
        scheduler: str,
        *,
        holder: str,
        jobs_max: int,
        lease_ms: int,
        lanes: Mapping[Lane, int] | None = None,
        by_key: bool = False,
    ) -> Sequence[LeasedJob]:
        """Lease the job at the head, if there is one, and add up how long it has waited."""
        del scheduler, holder, jobs_max, lease_ms  # such leases do not expire
        assert lanes is None, "the queues of the paper's experiments have one order"
        assert not by_key
        if not self._jobs:
            return ()
        assert self.leased is None
        self.leased = job = self._jobs.popleft()
        job.stage = Stage.DECIDING
        self._ledger.waiting = len(self)
        waited_s = self._engine.now_s - job.queued_s
        job.waited_s += waited_s
        if job.first_wait_s is None:
            job.first_wait_s = waited_s
        if any(group.patience_ms for group in job.lease.spec.groups):
            age_ms = round((self._engine.now_s - job.submitted_s) * MS_PER_S)
            return (replace(job.lease, age_ms=age_ms),)
        return (job.lease,)

    def place(self, claims: Claims, machine: Ids, granted: Mask) -> None:
        """Record which claims of the leased job were granted, and on which machines."""
        assert self.leased is not None
        refused = claims.task[~granted]
        self.leased.lease = with_grants(self.leased.lease, claims, machine, granted, refused)

    def place_all(self, machine: Ids) -> LeasedJob:
        """Record that all unplaced tasks of the leased job were granted; return the updated job."""
        assert self.leased is not None
        self.leased.lease = with_all_placed(self.leased.lease, machine)
        return self.leased.lease

    def hand_back(self, jobs: Sequence[HandBack]) -> int:
        """Schedule the next attempt at the leased job if tasks are left, or give it up."""
        (back,) = jobs
        job, self.leased = self.leased, None
        assert job is not None
        assert job.lease.id == back.job
        job.stage = Stage.ELSEWHERE
        if not job.left:
            return 1
        # The count of attempts is part of the seed, so that each attempt draws other machines.
        job.lease = replace(job.lease, fruitless=job.attempts)
        if self._gives_up(job):
            job.abandoned = True
            self._ledger.abandoned += 1
        else:
            job.stage = Stage.WAITING
            again_s = self._engine.now_s + back.delay_ms / MS_PER_S
            self._engine.at(again_s, Order.RETRY, partial(self.join, job))
        return 1

    def lose(self, job: SimulatedJob, tasks: Index) -> None:
        """Record that tasks have lost their places; queue the job again unless it was given up.

        A job that is being decided on is queued again after it is handed back.
        """
        job.tasks_lost += len(tasks)
        job.lease = without(job.lease, tasks)
        job.attempts_before_loss = job.attempts
        if job.stage is Stage.ELSEWHERE and not job.abandoned:
            self.join(job)

    def _gives_up(self, job: SimulatedJob) -> bool:
        attempts = job.attempts - job.attempts_before_loss
        if attempts > self._give_up.attempts_max:
            return True
        return not job.lease.placed and attempts > self._give_up.fruitless_max
