"""Planning elastic jobs: the workers wanted job by job, and helpers tick by tick.

Goal     Spend what idles on elastic jobs, and give it back when that is due.
Promise  Workers that are wanted are planned as any job's tasks. One of several replicas carries out
         each tick, and starts from the memo of the one before. Helpers evict nobody, and those that
         find no room in one attempt are over.
Source   Omega (EuroSys 2013), section 6; docs/decisions/0043-elastic-jobs.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from omega.clock import Clock
from omega.events import HelpersEnded, HelpersPlaced, Sink
from omega.framework.attempt import PlanningContext, attempt
from omega.framework.attempt_meter import AttemptMeter, NoAttemptMeter
from omega.framework.effects import Effects, called, refreshed
from omega.framework.elastic import Elastic, ElasticState
from omega.framework.job_planner import JobPlanner
from omega.framework.leasing import Leasing
from omega.framework.round_memo import read_memo, save_memo
from omega.framework.timer import Timer
from omega.limits import LIMITS
from omega.model.allocations import Allocations
from omega.model.arrays import Amounts, Mask, integers
from omega.model.elastic import PhaseProgress
from omega.model.elastic_jobs import ElasticJob
from omega.model.jobs import PRECEDENCE_MIN, LeasedJob
from omega.store.leases import HandBack
from omega.store.protocols import SchedulerStore
from omega.store.rounds import NotYet

JOBS_MAX: Final = 10_000
"""How many elastic jobs a tick looks at, the oldest ones."""


class ElasticPlanner:
    """Plans the jobs of one process, and the helpers of all jobs of its kind."""

    def __init__(
        self,
        context: PlanningContext,
        elastic: Elastic,
        jobs: JobPlanner,
        leasing: Leasing,
        meter: AttemptMeter | NoAttemptMeter,
        clock: Clock,
        sink: Sink,
    ) -> None:
        self._context = replace(context, preempts=False, explains=False)
        self._elastic = elastic
        self._jobs = jobs
        self._leasing = leasing
        self._meter = meter
        self._sink = sink
        self._ticks = Timer(clock, elastic.tick_ms)

    def cycle(self) -> Effects[int]:
        """Plan pending jobs, and carry out the tick if it is due; return the jobs planned."""
        planned = yield from self._jobs.cycle()
        if self._ticks.due():
            yield from self._tick()
        return planned

    def idle_s(self) -> float:
        """Return the seconds to wait when there are no jobs; at most until the next tick."""
        return min(self._jobs.idle_s(), self._elastic.tick_ms / 1_000)

    def _tick(self) -> Effects[None]:
        kind, holder, length_ms = self._leasing.kind, self._leasing.holder, self._elastic.tick_ms
        begun = yield from called(
            "begin_round",
            lambda store: store.begin_round(kind, holder=holder, length_ms=length_ms),
        )
        if isinstance(begun, NotYet):
            return
        jobs = yield from called(
            "elastic_jobs", lambda store: store.elastic_jobs(kind, jobs_max=JOBS_MAX)
        )
        known, memo = read_memo(begun.memo)
        gone = integers(set(known or ()) - {job.id for job in jobs})
        ended: list[PhaseProgress] = []
        if len(gone):
            ended = yield from called("phases", lambda store: store.phases(gone))
        view = yield from refreshed()
        plan = self._elastic.plan(view, ElasticState(memo=memo, jobs=jobs, ended=ended))
        named = [job.id for job in jobs]
        if not (yield from save_memo(kind, begun.number, named, plan.memo, self._sink)):
            return
        yield from self._give_back(jobs, plan.give_back)
        yield from self._add(jobs, plan.helpers)

    def _give_back(self, jobs: Sequence[ElasticJob], amounts: Amounts) -> Effects[None]:
        """End the newest helpers that hold these amounts together, as many as one call may end.

        What is still too much is given back in the next tick.
        """
        named = [job for it in jobs for job in it.helper_jobs]
        if not (amounts > 0).any() or not named:
            return
        live = yield from called("allocations_of", lambda store: store.allocations_of(named))
        going = live.only(newest(live, amounts, LIMITS.tasks_per_release_max))
        if len(going):
            kind = self._leasing.kind
            ended = yield from called(
                "end_helpers",
                lambda store: store.end_helpers(kind, going.job, going.task.astype(np.intp)),
            )
            self._sink(HelpersEnded(ended))

    def _add(self, jobs: Sequence[ElasticJob], wanted: Mapping[int, int]) -> Effects[None]:
        """Make helpers and place them, job by job; what finds no room is over."""
        parents = {job.id: job for job in jobs}
        for job_id, tasks in wanted.items():
            parent = parents[job_id]
            precedence = min(self._elastic.precedence, parent.spec.precedence - 1)
            if tasks < 1 or precedence < PRECEDENCE_MIN:
                continue
            make = partial(self._helpers_of, job_id, tasks, precedence)
            helpers = yield from called("add_helpers", make)
            if helpers is not None:
                yield from self._place(helpers)

    def _place(self, helpers: LeasedJob) -> Effects[None]:
        self._leasing.leases.take([helpers])
        (attempted,) = yield from self._meter.over(attempt(self._context, [helpers]))
        # Helpers wait for nobody: they are no attempt at a job of a user's.
        self._meter.report([])
        yield from self._leasing.hand_back(
            [HandBack(helpers.id, helpers.token, delay_ms=0, progressed=True)]
        )
        self._sink(HelpersPlaced(attempted.placed, attempted.left))

    def _helpers_of(
        self, parent: int, tasks: int, precedence: int, store: SchedulerStore
    ) -> LeasedJob | None:
        leasing = self._leasing
        return store.add_helpers(
            leasing.kind,
            parent,
            tasks,
            precedence=precedence,
            holder=leasing.holder,
            lease_ms=leasing.lease_ms,
        )


def newest(live: Allocations, amounts: Amounts, tasks_max: int) -> Mask:
    """Return which tasks to end, at most so many, newest first, until these amounts are free.

    A task that holds nothing of a kind that is still wanted is left. The result is (tasks,).
    """
    chosen, number = np.zeros(len(live), dtype=np.bool_), 0
    left = amounts.copy()
    for at in np.lexsort((-live.task, -live.job, -live.started_ms)).tolist():
        if not (left > 0).any() or number == tasks_max:
            break
        held = live.amounts[at]
        if (held[left > 0] > 0).any():
            chosen[at] = True
            number += 1
            left -= held
    return chosen
