"""The main loop of a scheduler process: cycles of its planner, and periodic work between them.

Goal     One main loop for every scheduler, live and in virtual time, as a generator of effects.
Promise  No I/O and no waiting: the driver answers its effects. The same answers at the same times
         lead to the same effects. Once the process is to stop, `life` returns after the attempt, or
         the round, that is under way; its driver then drives `end`, which hands every lease back.
         If the process is killed, its leases run out and another process rescues the jobs.
Source   docs/decisions/0031-one-process-two-drivers.md; docs/decisions/0004-the-job-queue.md.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from uuid import UUID
from zlib import crc32

import numpy as np

from omega.clock import Clock
from omega.config import Settings
from omega.errors import BadInput
from omega.events import JobsRescued, MachinesExpired, ProcessReported, Sink, fan_out
from omega.framework.attempt import PlanningContext
from omega.framework.attempt_meter import AttemptMeter, NoAttemptMeter
from omega.framework.deadline_queue import DeadlineQueue
from omega.framework.disposition import Dispose, disposition
from omega.framework.effects import Effects, Wait, called, refreshed
from omega.framework.elastic_planner import ElasticPlanner
from omega.framework.fair_queue import FairQueue
from omega.framework.job_planner import JobPlanner
from omega.framework.leasing import Leases, Leasing
from omega.framework.machine_clearing import MachineClearing
from omega.framework.planner import Planner
from omega.framework.reclaiming import Reclaiming
from omega.framework.room_watch import RoomWatch
from omega.framework.round_planner import RoundPlanner
from omega.framework.scheduler import NO_DECISION_TIME, RECLAIM, DecisionTime, Scheduler
from omega.framework.signal_tracker import SignalTracker
from omega.framework.timer import Timer
from omega.framework.waking import Waker
from omega.framework.yield_waking import YieldWaking
from omega.limits import LIMITS, Limits
from omega.metrics.facts import Facts
from omega.metrics.fold import SchedulerFold
from omega.model.lanes import QueueOrder
from omega.store.leases import HandBack

REPORT_INTERVAL_MS = 1_000


@dataclass(kw_only=True, eq=False)
class Process:
    """One process of a kind of scheduler, a *replica* of it, without I/O."""

    scheduler: Scheduler
    clock: Clock
    """Only read, never slept on: waiting is an effect."""
    settings: Settings
    sink: Sink
    replica: str
    """The name of this replica."""
    run_seed: int
    new_id: Callable[[], UUID]
    """Makes ids that never repeat on one store: of transactions, and one by which this process asks
    to be the one of its cell that reclaims (`reclaiming.py`)."""
    stop: threading.Event
    """The process ends after this is set."""
    pid: int = 0
    """The process id of the operating system, for reports."""
    decision_time: DecisionTime = NO_DECISION_TIME
    """What the effect `Think` adds to the time that placement itself takes."""
    limits: Limits = LIMITS
    dispose: Dispose | None = None
    """What happens to a job after an attempt; None: `disposition`, by the settings. Not used by a
    scheduler with `rounds`."""
    driver_places: bool = False
    """Whether to let the driver place jobs of one group that any machine with enough CPU, memory
    and disk takes (`JobSpec.is_plain`), by yielding `PlaceAtRandom`. Such attempts are not
    measured, so this excludes `complete`."""
    complete: bool = True
    """False: the process only leases jobs, attempts them and hands them back, as the paper's
    experiments need. True: it also rescues jobs, expires and clears machines, diagnoses, measures,
    reports, gives views their signals, agrees on the order of the queue, evicts tasks for jobs
    without room, and adds helpers."""

    def __post_init__(self) -> None:
        assert not (self.driver_places and self.complete)
        kind = self.scheduler.kind
        name = f"{kind}/{self.replica}"
        self.fold = SchedulerFold(self.clock)
        """The facts that this process reports to the store."""
        self.signal_tracker = SignalTracker(self.clock)
        """Computes the signals of its views."""
        self.emit = self.sink
        """Passes an event to all sinks."""
        if self.complete:
            self.emit = fan_out(self.fold, self.signal_tracker, self.sink)
        self.rng = np.random.default_rng([self.run_seed, crc32(name.encode())])
        self._clearing = MachineClearing(self.clock, self.emit)
        # Parked jobs are woken when there are tasks that yield to them. A planner of rounds looks
        # for such tasks in each round, so its jobs are not woken for that.
        wakes_for_evictions = self._preempts and self.scheduler.rounds is None
        self._room_watch = RoomWatch(self.clock, self.settings.rescue_interval_ms)
        self._order = self.scheduler.queue_order or QueueOrder(self.settings.queue_order)
        leases_all = self.scheduler.rounds is not None
        self._fair: FairQueue | None = None
        if self._order.is_fair and not leases_all:
            self._fair = FairQueue(
                kind,
                self._order,
                self.clock,
                self.settings.share_gap_ms,
                preempts=self._preempts,
            )
        self._deadlines: DeadlineQueue | None = None
        if self._order.is_by_key and not leases_all:
            self._deadlines = DeadlineQueue(
                self.clock, self.settings.share_gap_ms, preempts=self._preempts
            )
        self._waker = Waker(
            kind,
            self.emit,
            self.scheduler.granularity,
            YieldWaking(self.clock) if wakes_for_evictions else None,
            self._room_watch,
            self._fair,
        )
        self._leasing = Leasing(
            kind,
            name,
            self.settings.lease_ms,
            self.emit,
            self._waker,
            self._fair,
            self._deadlines,
        )
        self._planner = self._make_planner()
        self._reports = Timer(self.clock, REPORT_INTERVAL_MS)
        # Shortened by up to a quarter at random, so that replicas do not all ask at once.
        self._rescues = Timer(self.clock, self.settings.rescue_interval_ms, self.rng)
        self._view_checks = Timer(self.clock, self.settings.rescue_interval_ms, self.rng)

    @property
    def leases(self) -> Leases:
        """The leases that the process holds; its driver must have them renewed."""
        return self._leasing.leases

    @property
    def _preempts(self) -> bool:
        """Whether jobs without room evict others: not in the paper's experiments, which keep no
        record of who runs where."""
        return self.scheduler.preempts and self.complete

    def facts(self) -> Facts:
        """Return what the process reports to the store; any thread may call this."""
        return {**self.fold.facts(), "refreshed_s_ago": self.fold.refreshed_s_ago()}

    def life(self) -> Effects[None]:
        """Run cycles until the stop event is set.

        Raises BadInput if another replica of the kind leases in another order, or if the scheduler
        is to reclaim for tenants but does not lease in a fair order.
        """
        if self.scheduler.reclaim_after_s is not None and self._fair is None:
            raise BadInput(
                f"only schedulers with a fair order compare what tenants have, and the order of"
                f" {self.scheduler.kind} is {self._order.value}; set order=drf or order=choosy",
                field=RECLAIM,
            )
        yield from self._agree_on_order()
        while not self.stop.is_set():
            if not (yield from self.cycle()):
                yield Wait(self._planner.idle_s())

    def cycle(self) -> Effects[int]:
        """Do the periodic work that is due, then run a cycle of the planner.

        Between the regular checks of its view, an idle process looks for room for parked jobs: at
        first soon after they were parked, then at ever longer intervals (`RoomWatch`). Returns how
        many jobs were planned, or, if none were, woken.
        """
        yield from self._housekeep()
        jobs = yield from self._planner.cycle()
        if not jobs and self._room_watch.due():
            jobs = yield from self._waker.check((yield from refreshed()))
        return jobs

    def end(self) -> Effects[None]:
        """Hand back every lease and remove the replica from the registry: `life` does neither."""
        kind, held = self.scheduler.kind, self.leases.held()
        # Most were not attempted, or had tasks placed lately. After an exception some are
        # in the middle of an attempt. Without delay, another process can lease them at once.
        # `progressed` sets their counts of fruitless attempts to 0; otherwise the store adds 1.
        backs = [HandBack(job, token, delay_ms=0, progressed=True) for job, token in held.items()]
        self.leases.drop(held)
        yield from self._leasing.hand_back(backs)
        yield from called("forget", lambda store: store.forget(kind, self.replica))

    def _agree_on_order(self) -> Effects[None]:
        """Agree on the kind's order for `lease_ms` from now, a minute at most.

        Raises BadInput if other replicas of the kind have agreed on another order. A scheduler with
        rounds leases all its jobs, whatever the order says, and does not agree on one.
        """
        if not self.complete or self.scheduler.rounds is not None:
            return
        kind, order, lease_ms = self.scheduler.kind, self._order, self.settings.lease_ms
        other = yield from called(
            "agree_on_order",
            lambda store: store.agree_on_order(kind, self.replica, order, lease_ms=lease_ms),
        )
        if other is not None:
            raise BadInput(
                f"{other.held_by} has the order {other.order.value}, and all replicas of a kind"
                f" have one; to change it to {order.value}, stop all of {kind} and wait for"
                f" {min(lease_ms, LIMITS.order_ms_max) / 1_000:g} s",
                field="order",
            )

    def _reclaiming(self) -> Reclaiming | None:
        """Return what decides which tasks a job may evict because their tenant has a larger share.

        Returns None if this process does not reclaim.
        """
        after_s = self.scheduler.reclaim_after_s
        if self._fair is None or after_s is None or not self.complete:
            return None
        kind, holder = self.scheduler.kind, self.new_id()
        return Reclaiming(
            self._fair, self.clock, kind, self.replica, holder, after_ms=round(after_s * 1_000)
        )

    def _make_planner(self) -> Planner:
        context = PlanningContext(
            scheduler=self.scheduler,
            name=self.replica,
            run_seed=self.run_seed,
            new_id=self.new_id,
            decision_time=self.decision_time,
            limits=self.limits,
            explains=self.complete,
            preempts=self._preempts,
            reclaiming=self._reclaiming(),
            driver_places=self.driver_places,
            signals=self.signal_tracker.signals if self.complete else None,
            keeps_order=self._fair is not None or self._deadlines is not None,
        )
        meter = AttemptMeter(self.clock, self.emit) if self.complete else NoAttemptMeter()
        leasing, settings = self._leasing, self.settings
        if self.scheduler.rounds is not None:
            return RoundPlanner(context, self.scheduler.rounds, leasing, meter, settings, self.emit)
        if self._fair is not None or self._deadlines is not None:
            # These orders compare only pending jobs, so jobs without room must not be parked. With
            # `losers_first` they stay in the queue, as do jobs that lost conflicts. Each order
            # limits how often it tries them. After a job found no room, FairQueue passes over
            # the jobs of its lane or tenant that need at least as much as it does. DeadlineQueue
            # leases no jobs while the smallest task that it knows finds no room, except a few now
            # and then, whose tasks may be smaller; for a scheduler that preempts, it leases as many
            # as are asked for.
            settings = settings.model_copy(update={"losers_first": True})
        dispose = self.dispose or partial(disposition, settings=settings, rng=self.rng)
        if self._deadlines is not None:
            dispose = self._deadlines.disposed(dispose)
        jobs = JobPlanner(
            context, leasing, meter, self.clock, settings, self.rng, self._between, dispose
        )
        if self.scheduler.elastic is None or not self.complete:
            return jobs
        return ElasticPlanner(
            context, self.scheduler.elastic, jobs, leasing, meter, self.clock, self.emit
        )

    def _between(self) -> Effects[bool]:
        """Do the periodic work that is due between two attempts; return whether to go on."""
        yield from self._housekeep()
        return not self.stop.is_set()

    def _housekeep(self) -> Effects[None]:
        """Do the periodic work that is due: rescue, clear machines, wake parked jobs, report."""
        if not self.complete:
            return
        if self._rescues.due():
            rescued = yield from called("rescue", lambda store: store.rescue())
            if rescued:
                self.emit(JobsRescued(len(rescued)))
            expired = yield from called("expire_machines", lambda store: store.expire_machines())
            if expired:
                self.emit(MachinesExpired(len(expired)))
        if self._view_checks.due():
            view = yield from refreshed()
            yield from self._clearing.check(view)
            yield from self._waker.check(view)
        if self._reports.due():
            yield from self._agree_on_order()
            kind = self.scheduler.kind
            facts = self.facts()
            yield from called(
                "report",
                lambda store: store.report(kind, self.replica, pid=self.pid, facts=facts),
            )
            self.emit(ProcessReported())
