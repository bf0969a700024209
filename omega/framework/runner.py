"""A scheduler process: leases jobs, makes attempts, and looks after the queue in between.

Goal     Run any scheduler against a store for as long as it is wanted.
Promise  Outlives restarts of the store. Stops after the commit under way; every lease goes back to
         the queue, or, if the process is killed, runs out and is rescued by a sibling.
Source   docs/decisions/0004-the-job-queue.md; ARCHITECTURE.md, the loop.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4
from zlib import crc32

import numpy as np

from omega.clock import Clock
from omega.config import Settings
from omega.errors import NotAllowed, StoreUnavailable
from omega.events import JobParked, JobsLeased, JobsRescued, Sink, StoreFaltered, fan_out
from omega.framework.aftermath import aftermath
from omega.framework.attempt import Replica
from omega.framework.clearing import Clearing
from omega.framework.driver import Driver
from omega.framework.heartbeat import Heartbeat, Leases
from omega.framework.patience import Patience
from omega.framework.progress import Attempted
from omega.framework.scheduler import NO_DECISION_TIME, DecisionTime, Scheduler
from omega.framework.timer import Timer
from omega.framework.waking import Waker
from omega.limits import LIMITS
from omega.metrics.fold import SchedulerFold
from omega.model.jobs import LeasedJob
from omega.store.base import CellStore, HandBack, Parking, Store
from omega.sync.delta import DeltaRefresher
from omega.sync.refresher import Refresher

REPORT_INTERVAL_MS = 1_000
ROUND_S = 0.5
"""How long one round of leased jobs should last: more, and jobs wait here while siblings idle."""


@dataclass(kw_only=True, eq=False)
class SchedulerProcess:
    """One replica of a scheduler at work. Call `run`, or `step` for one round at a time."""

    scheduler: Scheduler
    store: Store
    open_store: Callable[[], Store]
    """Opens another connection to the same store, for the heartbeat."""
    clock: Clock
    """Its sleeps must end when `stop` is set."""
    settings: Settings
    sink: Sink
    replica: str
    run_seed: int
    stop: threading.Event
    """Set by whoever wants the process to end."""
    decision_time: DecisionTime = NO_DECISION_TIME
    refresher: Callable[[CellStore, Clock, Sink], Refresher] = DeltaRefresher
    """How to synchronise."""
    new_id: Callable[[], UUID] = uuid4

    def __post_init__(self) -> None:
        kind = self.scheduler.kind
        self.leases = Leases()
        self._holder = f"{kind}/{self.replica}"
        self.fold = SchedulerFold(self.clock)
        """What this process did, as it reports it to the store."""
        self._sink = fan_out(self.fold, self.sink)
        self._chance = np.random.default_rng(
            [self.run_seed, crc32(f"{kind}/{self.replica}".encode())]
        )
        self._patiently = Patience(self.clock, self._sink, self.settings, self._chance, self.stop)
        self._replica = Replica(
            scheduler=self.scheduler,
            name=self.replica,
            run_seed=self.run_seed,
            new_id=self.new_id,
            decision_time=self.decision_time,
        )
        refresher = self.refresher(self.store, self.clock, self._sink)
        self._driver = Driver(self.store, refresher, self.clock, self._sink, self._patiently)
        self._clearing = Clearing(self.store, self._sink, self._patiently)
        self._waker = Waker(
            kind, self.store, self._sink, self._patiently, self.scheduler.granularity
        )
        self._together = min(self.scheduler.jobs_per_transaction, LIMITS.jobs_per_transaction_max)
        self._claims_max = self.scheduler.claims_per_transaction
        self._jobs_max = self._together
        self._rescues = Timer(self.clock, self.settings.rescue_interval_ms, self._chance)
        self._checks = Timer(self.clock, self.settings.rescue_interval_ms, self._chance)
        self._reports = Timer(self.clock, REPORT_INTERVAL_MS)

    def run(self) -> None:
        """Work until the stop event is set, then leave nothing behind."""
        heartbeat = Heartbeat(
            self.leases,
            self.open_store,
            self._sink,
            lease_ms=self.settings.lease_ms,
            interval_ms=self.settings.heartbeat_interval_ms,
        )
        with heartbeat:
            try:
                while not self.stop.is_set():
                    heartbeat.check()
                    if not self.step():
                        self._idle()
            except StoreUnavailable:
                if not self.stop.is_set():
                    raise
            finally:
                self.finish()

    def step(self) -> int:
        """Do one round: what is due, then lease jobs and attempt them; return how many jobs."""
        self._housekeep()
        began = self.clock.now()
        jobs = self._lease()
        for together in self._parts(jobs):
            if self.stop.is_set():
                break
            # The heartbeat may have learnt meanwhile that a lease was lost.
            held = [job for job in together if self.leases.holds(job)]
            if held:
                self._settle(self._driver.attempt(self._replica, held))
            self._housekeep()
        self._adapt(len(jobs), self.clock.now() - began)
        return len(jobs)

    def finish(self) -> None:
        """Give back every lease and leave the registry, if the store can be reached."""
        held = self.leases.held()
        # The attempt was never made, so nothing is held against the job.
        backs = [HandBack(job, token, 0, progressed=True) for job, token in held.items()]
        self.leases.drop(held)
        try:
            if backs:
                self.store.hand_back(backs)
            self.store.forget(self.scheduler.kind, self.replica)
        except (StoreUnavailable, NotAllowed) as error:
            self._sink(StoreFaltered("finish", str(error)))  # the leases will run out

    def _lease(self) -> Sequence[LeasedJob]:
        jobs = self._patiently(
            "lease",
            lambda: self.store.lease(
                self.scheduler.kind,
                holder=self._holder,
                jobs_max=self._jobs_max,
                lease_ms=self.settings.lease_ms,
            ),
        )
        if jobs:
            self.leases.take(jobs)
            waits_s = tuple(job.waited_ms / 1_000 for job in jobs if job.waited_ms is not None)
            self._sink(JobsLeased(len(jobs), waits_s))
        has_its_own_order = type(self.scheduler).order is not Scheduler.order
        if has_its_own_order and len(jobs) > self._together:
            return self.scheduler.order(jobs, self._driver.refresh())
        return jobs

    def _parts(self, jobs: Sequence[LeasedJob]) -> Iterator[Sequence[LeasedJob]]:
        """Divide the jobs, in order, into those that are attempted together."""
        part: list[LeasedJob] = []
        tasks = 0
        for job in jobs:
            tasks += len(job.unplaced)
            if part and (len(part) == self._together or tasks > self._claims_max):
                yield part
                part, tasks = [], len(job.unplaced)
            part.append(job)
        if part:
            yield part

    def _settle(self, attempted: Sequence[Attempted]) -> None:
        """Give each job back, park it, or let it go."""
        fates = [aftermath(one, self.settings, self._chance) for one in attempted]
        backs = [fate for fate in fates if isinstance(fate, HandBack)]
        parkings = [fate for fate in fates if isinstance(fate, Parking)]
        if backs:
            self._patiently("hand_back", lambda: self.store.hand_back(backs))
        self._park(parkings)
        self.leases.drop(one.job.id for one in attempted)

    def _park(self, parkings: Sequence[Parking]) -> None:
        """Set jobs aside, and listen for what could help them."""
        if parkings:
            self._patiently("park", lambda: self.store.park(parkings))
            self._waker.note([parking.reason for parking in parkings])
        for parking in parkings:
            self._sink(JobParked(parking.job, parking.reason.value))
        self.leases.drop(parking.job for parking in parkings)

    def _housekeep(self) -> None:
        """Do what is due: rescue, clear machines, wake, report."""
        if self._rescues.due():
            rescued = self._patiently("rescue", self.store.rescue)
            if rescued:
                self._sink(JobsRescued(len(rescued)))
        if self._checks.due():
            view = self._driver.refresh()
            self._clearing.check(view)
            self._waker.check(view)
        if self._reports.due():
            facts = self.fold.facts()
            self._patiently(
                "report",
                lambda: self.store.report(
                    self.scheduler.kind, self.replica, pid=os.getpid(), facts=facts
                ),
            )

    def _idle(self) -> None:
        """Wait for jobs, not in step with other replicas."""
        self.clock.sleep(self.settings.poll_interval_ms / 1_000 * self._chance.uniform(0.5, 1.5))

    def _adapt(self, jobs: int, took_s: float) -> None:
        """Lease more at a time while rounds are short, fewer when they grow long."""
        if took_s > 2 * ROUND_S:
            self._jobs_max = max(self._jobs_max // 2, self._together)
        elif jobs == self._jobs_max and took_s < ROUND_S:
            longest = max(self.settings.jobs_per_lease_max, self._together)
            self._jobs_max = min(self._jobs_max * 2, longest)
