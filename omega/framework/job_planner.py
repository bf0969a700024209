"""Planning job by job: the planner of schedulers that have only `place`.

Goal     Lease pending jobs, attempt them in order, and hand back or park what is left.
Promise  A job whose lease was lost meanwhile is not attempted. The number of jobs leased at a time
         grows while they take little time and shrinks when they take long, so that no job waits
         under a lease while other replicas are idle. While jobs keep their leases, the queue is
         read as often as by an idle process, and what comes from it is attempted before them if
         its precedence is higher.
Source   Omega (EuroSys 2013), section 3.4; docs/decisions/0004-the-job-queue.md.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from omega.cell.open_room import OpenRoom
from omega.cell.view import View
from omega.clock import Clock
from omega.config import Settings
from omega.framework.attempt import PlanningContext, attempt, in_its_order
from omega.framework.attempt_meter import AttemptMeter, NoAttemptMeter
from omega.framework.disposition import Dispose
from omega.framework.effects import Effects, refreshed
from omega.framework.job_attempt import JobResult
from omega.framework.kept_leases import KeptLeases, rank
from omega.framework.leasing import Leasing
from omega.framework.scheduler import has_its_own_order
from omega.limits import LIMITS
from omega.model.jobs import LeasedJob
from omega.store.leases import HandBack, Parking

IDLE_S_MIN: Final = 0.005
IDLE_GROWTH: Final = 1.3
"""After an attempted job has not kept its lease, the first wait is short and the next ones grow, up
to the poll interval: jobs whose tasks run in waves are soon pending again."""
CYCLE_S = 0.5
"""How long the attempts at the jobs of one lease call should take. If they take longer, jobs wait
under a lease that idle replicas could attempt."""


class JobPlanner:
    """Plans the jobs of one process one after the other, or a few together."""

    def __init__(
        self,
        context: PlanningContext,
        leasing: Leasing,
        meter: AttemptMeter | NoAttemptMeter,
        clock: Clock,
        settings: Settings,
        rng: np.random.Generator,
        between: Callable[[], Effects[bool]],
        dispose: Dispose,
    ) -> None:
        """`between` does what is due between two attempts and returns whether to go on."""
        scheduler = context.scheduler
        self._context = context
        self._leasing = leasing
        self._meter = meter
        self._clock = clock
        self._settings = settings
        self._rng = rng
        self._between = between
        self._dispose = dispose
        self._jobs_per_attempt = min(
            scheduler.jobs_per_transaction, LIMITS.jobs_per_transaction_max
        )
        self._claims_max = scheduler.claims_per_transaction
        self._jobs_to_lease = self._jobs_per_attempt
        self._idle_s = IDLE_S_MIN
        self._kept = KeptLeases(clock, leasing)
        # Other orders compare pending jobs only, so each job must return to the queue. Experiments
        # without explanations follow the paper's simulator, which knows no such waiting.
        self._may_keep = (
            context.explains and not context.keeps_order and not has_its_own_order(scheduler)
        )
        self._lease_due_s = clock.now()
        """When the queue is read next while jobs keep their leases."""

    def cycle(self) -> Effects[int]:
        """Attempt jobs that are leased now, and kept jobs that have room now; return how many."""
        began = self._clock.now()
        jobs, leased, view = yield from self._next()
        for together in self._parts(jobs):
            if not (yield from self._between()):
                break
            yield from self._kept.hand_back_late()
            # The thread that renews leases drops those that were lost meanwhile.
            held = [job for job in together if self._leasing.leases.holds(job)]
            if held:
                attempted = yield from self._meter.over(attempt(self._context, held, view))
                view = None  # it is older now
                self._meter.report(attempted)
                yield from self._settle(attempted)
        self._adapt(leased, self._clock.now() - began)
        return len(jobs)

    def idle_s(self) -> float:
        """Return the seconds until the next look at the view or the queue."""
        if self._kept:
            return min(self._kept.pause_s(), max(0.0, self._lease_due_s - self._clock.now()))
        return self._next_poll_s()

    def _next_poll_s(self) -> float:
        """Return the seconds until the queue is read again, randomised so that replicas differ.

        They grow with each call, up to the poll interval, until an attempted job does not keep its
        lease.
        """
        idle_s, self._idle_s = self._idle_s, self._idle_s * IDLE_GROWTH
        longest_s = self._settings.poll_interval_ms / 1_000
        return min(idle_s, longest_s) * (0.5 + self._rng.random())

    def _next(self) -> Effects[tuple[Sequence[LeasedJob], int, View | None]]:
        """Return the jobs to attempt, how many of them were leased just now, and the view.

        The view is None if it was not refreshed, because no job keeps its lease.
        """
        yield from self._kept.hand_back_late()
        yield from self._kept.give_way()
        is_lease_due = not self._kept or self._clock.now() >= self._lease_due_s
        leased: Sequence[LeasedJob] = (yield from self._lease()) if is_lease_due else ()
        if not self._kept:
            return leased, len(leased), None
        is_more_pending = len(leased) >= self._jobs_to_lease
        if leased:
            self._lease_due_s = self._clock.now()
        elif is_lease_due:
            self._lease_due_s = self._clock.now() + self._next_poll_s()
        view = yield from refreshed()
        again = self._kept.with_room(view)
        if is_more_pending:  # they may come before those that were kept
            again = [job for job in again if rank(job) < rank(leased[-1])]
        return sorted([*again, *leased], key=rank), len(leased), view

    def _lease(self) -> Effects[Sequence[LeasedJob]]:
        jobs = yield from self._leasing.lease(self._jobs_to_lease)
        scheduler = self._context.scheduler
        # The jobs are in the order of the queue already. A scheduler's own order is applied before
        # they are divided; the attempt at each part applies it again, on its own view.
        if has_its_own_order(scheduler) and len(jobs) > 1:
            view = yield from refreshed()
            return in_its_order(scheduler, jobs, view)
        return jobs

    def _parts(self, jobs: Sequence[LeasedJob]) -> Iterator[Sequence[LeasedJob]]:
        """Yield the jobs in order, divided into those that are attempted together."""
        part: list[LeasedJob] = []
        tasks = 0
        for job in jobs:
            tasks += len(job.unplaced)
            if part and (len(part) == self._jobs_per_attempt or tasks > self._claims_max):
                yield part
                part, tasks = [], len(job.unplaced)
            part.append(job)
        if part:
            yield part

    def _settle(self, attempted: Sequence[JobResult]) -> Effects[None]:
        """Hand each job back, park it, or only drop its lease, by its disposition; some keep it."""
        self._leasing.note(attempted)
        backs: list[HandBack] = []
        parkings: list[Parking] = []
        rooms: list[OpenRoom] = []
        kept = {one.job.id for one in attempted if self._may_keep and self._kept.keep(one)}
        ended = [one for one in attempted if one.job.id not in kept]
        if ended:
            self._idle_s = IDLE_S_MIN
        for one in ended:
            match self._dispose(one):
                case HandBack() as back:
                    backs.append(back)
                case Parking() as parking:
                    parkings.append(parking)
                    if one.room is not None:
                        rooms.append(one.room)
                case None:
                    pass  # its last commit or the loss of its lease has settled it
        yield from self._leasing.hand_back(backs)
        yield from self._leasing.park(parkings, rooms)
        self._leasing.leases.drop(one.job.id for one in ended)

    def _adapt(self, jobs: int, took_s: float) -> None:
        """Lease twice as many jobs at a time after a short cycle, half as many after a long one."""
        if took_s > 2 * CYCLE_S:
            self._jobs_to_lease = max(self._jobs_to_lease // 2, self._jobs_per_attempt)
        elif jobs == self._jobs_to_lease and took_s < CYCLE_S:
            most = max(self._settings.jobs_per_lease_max, self._jobs_per_attempt)
            self._jobs_to_lease = min(self._jobs_to_lease * 2, most)
