"""One attempt: Omega's optimistic loop, as a generator of effects.

Goal     The whole loop in one function: refresh the view, think, place, commit, patch the view, try
         again.
Promise  No I/O, no clock, no events: a driver answers its effects, and `AttemptMeter` times it and
         reports. The same answers lead to the same effects. A task is claimed at most once in each
         try, if `place` claims none twice (`omega.testing.scheduler_contract` tests that).
Source   Omega (EuroSys 2013), section 3.4. The effect `Think` lengthens a decision by `t_job` and
         `t_task`, which are zero unless an experiment or an option sets them. Placement runs after
         it, on the view that was read before it, as in the paper's simulator.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from uuid import UUID

import numpy as np

from omega.cell.signals import Signals
from omega.cell.view import View
from omega.errors import InvariantBroken
from omega.framework.effects import Effects, called, committed, placed_at_random, refreshed, thought
from omega.framework.job_attempt import JobAttempt, JobResult, with_grants
from omega.framework.reclaiming import Reclaiming
from omega.framework.rng import rng_for, seed_of
from omega.framework.scheduler import (
    NO_DECISION_TIME,
    DecisionTime,
    Scheduler,
    has_its_own_order,
)
from omega.limits import LIMITS, Limits
from omega.model.arrays import Ids, Index, all_true, positions
from omega.model.claims import Claims, Granularity, Transaction
from omega.model.jobs import LeasedJob
from omega.model.occupants import Occupants, Yielding
from omega.model.outcomes import Outcome
from omega.placement.looks import machines_that_yield, machines_to_look_at
from omega.placement.patience import impatient_part, patient_groups, with_preferences_required
from omega.placement.victims import place_with_evictions
from omega.store.protocols import SchedulerStore


@dataclass(frozen=True, kw_only=True)
class PlanningContext:
    """The scheduler that plans, and what its planners need besides views and jobs."""

    scheduler: Scheduler
    name: str
    """The name of the replica. No two processes of a kind have the same. It is written into
    transactions, and is part of the seeds of random generators."""
    run_seed: int
    new_id: Callable[[], UUID]
    """Makes transaction ids, which must never repeat on one store."""
    decision_time: DecisionTime = NO_DECISION_TIME
    """What `Think` adds to the time that placement itself takes."""
    limits: Limits = LIMITS
    explains: bool = True
    """Whether to record why there is no room, for users and for waking. The paper's experiments do
    not, nor does the planning of helpers."""
    signals: Callable[[View, Sequence[LeasedJob]], Signals] | None = None
    """Returns the signals for a view on which these jobs will be placed; None: no signals."""
    preempts: bool = False
    """Whether to look for victims for jobs that find no room otherwise."""
    reclaiming: Reclaiming | None = None
    """For a scheduler that does not preempt: which tasks of tenants with larger shares a job may
    evict. None: it evicts nobody."""
    driver_places: bool = False
    """Whether to yield `PlaceAtRandom` for plain jobs: of one group, which any machine with enough
    CPU, memory and disk takes (`JobSpec.is_plain`). Only drivers of simulations place jobs."""
    keeps_order: bool = False
    """Whether jobs are placed in the order in which they were leased, as under a fair order. A
    scheduler that overrides `order` changes it all the same."""

    def rng(self, job: LeasedJob, tries: int) -> np.random.Generator:
        """Return the random generator of one try; retries and other replicas get other streams."""
        return rng_for(*self._seed_parts(job, tries))

    def seed(self, job: LeasedJob, tries: int) -> bytes:
        """Return the seed of the random generator of one try."""
        return seed_of(*self._seed_parts(job, tries))

    def _seed_parts(self, job: LeasedJob, tries: int) -> tuple[int | str, ...]:
        return self.run_seed, job.id, job.fruitless, tries, self.name

    def ordered(self, jobs: Sequence[LeasedJob], view: View) -> Sequence[LeasedJob]:
        """Return the jobs in the order in which they are to be placed; raise as `in_its_order`."""
        if self.keeps_order and not has_its_own_order(self.scheduler):
            return jobs
        return in_its_order(self.scheduler, jobs, view)

    def set_signals(self, view: View, waiting: Sequence[LeasedJob]) -> None:
        """Set the signals of a view on which the waiting jobs are about to be placed."""
        if self.signals is not None:
            view.signals = self.signals(view, waiting)

    def grants_min(self, job: LeasedJob, claims: Claims) -> int:
        """Return how many of the claims must be granted for any of them to be granted."""
        all_or_nothing = self.scheduler.granularity is Granularity.ALL_OR_NOTHING
        return len(claims) if all_or_nothing else job.lacking


def in_its_order(
    scheduler: Scheduler, jobs: Sequence[LeasedJob], view: View
) -> Sequence[LeasedJob]:
    """Return leased jobs in a scheduler's own order.

    Raises InvariantBroken if that loses, adds or repeats jobs: one that is lost would be under its
    lease, and attempted by nobody, for as long as the process runs.
    """
    ordered = list(scheduler.order(jobs, view))
    if sorted(job.id for job in ordered) != sorted(job.id for job in jobs):
        raise InvariantBroken(f"{scheduler.kind}.order must return the jobs it was given")
    return ordered


def attempt(
    context: PlanningContext, jobs: Sequence[LeasedJob], view: View | None = None
) -> Effects[list[JobResult]]:
    """Plan leased jobs together on one view, commit them together, and retry what was refused.

    The view is one that was refreshed just now; None: it is refreshed first. Returns one
    `JobResult` for each job. Raises InvariantBroken if the scheduler's `order` loses or adds jobs,
    or if its `place` claims for tasks that were not asked for.
    """
    if view is None:
        view = yield from refreshed()
    active = [
        JobAttempt(job, context.limits, explains=context.explains)
        for job in context.ordered(jobs, view)
    ]
    results = []
    while True:
        results += [each.result(view) for each in active if each.ending]
        active = [each for each in active if not each.ending]
        if not active:
            return results
        together = _begin_tries(active, context.limits.claims_per_transaction_max)
        if (yield from _think_or_let_driver_place(context, together)):
            continue
        claims = _place(context, view, together)
        if context.preempts or context.reclaiming is not None:
            claims = yield from _make_way(context, view, together, claims)
        outcome = yield from _commit(context, view, together, claims)
        if len(outcome.evicted_job):
            for each in active:
                each.record_evictions(outcome.evicted_task[outcome.evicted_job == each.job.id])
        first = 0
        for each, job_claims in zip(together, claims, strict=True):
            its = slice(first, first := first + len(job_claims))
            each.record_outcome(job_claims, outcome.verdicts[its], outcome.machine[its])
        if outcome.refused:
            # The paper, too, refreshes after a conflict: whoever took this room has probably
            # claimed on other machines as well.
            view = yield from refreshed()


def _begin_tries(active: Sequence[JobAttempt], tasks_max: int) -> list[JobAttempt]:
    """Begin a try for as many jobs, in order, as fit one transaction; at least for the first.

    Only the first may be larger than a transaction. It is then planned in several tries.
    """
    together: list[JobAttempt] = []
    tasks_left = tasks_max
    for each in active:
        # All that is pending of a job, not only this try's part: a job is not divided to fill a
        # transaction.
        if together and len(each.pending) > tasks_left:
            break
        each.begin_try()
        together.append(each)
        tasks_left -= len(each.to_place.unplaced)
    return together


def _think_or_let_driver_place(
    context: PlanningContext, together: Sequence[JobAttempt]
) -> Effects[bool]:
    """Let the added part of the decision time pass.

    A simulation's driver also places a plain job, if it can.

    Returns True if the driver has placed the only job whole: nothing is left to commit.
    """
    seconds = sum(context.decision_time.of_job(each.to_place) for each in together)
    first = together[0]
    job = first.job
    is_at_random = (
        context.driver_places
        and len(together) == 1
        and first.to_place is job
        and job.spec.is_plain
        and context.scheduler.places_at_random(job)
    )
    if not is_at_random:
        yield from thought(seconds)
        return False
    placed = yield from placed_at_random(seconds, job, context.seed(job, first.tries))
    if placed is None:
        return False
    first.place_all(placed)
    return True


def _place(context: PlanningContext, view: View, together: Sequence[JobAttempt]) -> list[Claims]:
    """Return the claims of each job, placed in order; each sees the claims of those before it."""
    placed = []
    context.set_signals(view, [each.job for each in together])
    with view.tentative():
        for each in together:
            rng = context.rng(each.job, each.tries)
            # While a group is patient, its preferences are constraints.
            each.patient_groups = patient_groups(view, each.to_place)
            claims = context.scheduler.place(
                view, with_preferences_required(each.to_place, each.patient_groups), rng
            )
            if not _are_among(claims.task, each.to_place.unplaced):
                raise InvariantBroken(
                    f"{context.scheduler.kind} claimed for tasks of job {each.job.id} that it was"
                    " not asked to place"
                )
            if len(claims) < each.job.lacking:
                claims = Claims.none()  # these claims of a gang would be refused
            if not len(claims) and not each.patient_groups:
                each.record_room(view)
            placed.append(claims)
            if len(placed) < len(together):
                view.assume_claims(claims)
    return placed


def _make_way(
    context: PlanningContext, view: View, together: Sequence[JobAttempt], placed: Sequence[Claims]
) -> Effects[list[Claims]]:
    """Add claims with evictions for tasks that found no room otherwise; return all claims."""
    claims = list(placed)
    _charge(context, together, claims)
    summaries: dict[int, Yielding] = {}
    """By precedence, read at most once for all jobs."""
    for number, each in enumerate(together):
        mine = claims[number]
        job = _without_room(each, mine)
        if job is None or not (yield from _may_evict(context, job)):
            continue
        rng = context.rng(each.job, each.tries)
        look = partial(_look, context, view, job, claims=claims, rng=rng)
        machines = machines_to_look_at(view, job, rng)
        more = yield from look(machines)
        if not len(more):
            # The first look found nothing. Read how much yields on every machine of the cell, and
            # look on those where tasks fit once that is evicted.
            precedence = job.spec.precedence
            if precedence not in summaries:
                summaries[precedence] = yield from called(
                    "yielding", partial(_yielding_to, precedence)
                )
            with _assuming(view, claims):
                known = machines_that_yield(view, job, summaries[precedence], rng)
            if len(np.setdiff1d(known, machines)):
                more = yield from look(known)
            if not len(more):
                each.record_looks(machines, known, reclaims=context.reclaiming is not None)
        evictions = sum(len(others.evictions) for others in claims) + len(more.evictions)
        if evictions <= context.limits.claims_per_transaction_max:
            claims[number] = Claims.of([mine, more])
            _charge(context, [each], [claims[number]])
    return claims


def _charge(
    context: PlanningContext, together: Sequence[JobAttempt], claims: Sequence[Claims]
) -> None:
    """Count what each job has placed and claims now as used by its tenant.

    Only for a scheduler that reclaims: it then compares shares that are up to date.
    """
    if context.reclaiming is not None:
        for each, its in zip(together, claims, strict=True):
            left = np.setdiff1d(each.pending, its.task)
            context.reclaiming.charge(each.job, left)


def _without_room(each: JobAttempt, claims: Claims) -> LeasedJob | None:
    """Return a job with the tasks for which victims may be looked for; None if there are none."""
    if len(claims) == len(each.to_place.unplaced):
        return None
    # The job as it is if all of its claims are granted, and none of its tasks is evicted.
    all_granted, none_evicted = np.ones(len(claims), dtype=np.bool_), claims.task[:0]
    job = with_grants(each.to_place, claims, claims.machine, all_granted, none_evicted)
    job = impatient_part(job, each.patient_groups)
    if each.patient_groups and (job.lacking > 1 or not len(job.unplaced)):
        # A gang that lacks several tasks waits as a whole, so nobody is evicted for a part of it.
        # Otherwise the groups that are not patient may evict, if they have tasks left.
        return None
    return job


def _may_evict(context: PlanningContext, job: LeasedJob) -> Effects[bool]:
    reclaiming = context.reclaiming
    return True if reclaiming is None else (yield from reclaiming.may(job))


def _look(
    context: PlanningContext,
    view: View,
    job: LeasedJob,
    machines: Ids,
    *,
    claims: Sequence[Claims],
    rng: np.random.Generator,
) -> Effects[Claims]:
    """Read who runs on these machines; return claims of the job there, with evictions.

    `claims` are those of this try so far: the view is taken as if they were granted, and their
    victims evicted.
    """
    occupants = yield from called("occupants", partial(occupants_of, machines))
    gone = occupants.named_in(Claims.of(claims).evictions)
    reclaiming = context.reclaiming
    with _assuming(view, claims):
        view.assume_removed(occupants.machine[gone], occupants.amounts[gone])
        occupants = occupants.without(gone)
        if reclaiming is not None:
            return reclaiming.place(view, job, machines, occupants, rng)
        return place_with_evictions(view, job, machines, occupants, rng)


@contextmanager
def _assuming(view: View, claims: Iterable[Claims]) -> Iterator[None]:
    """Subtract claims from the view, inside a `tentative` block."""
    with view.tentative():
        for some in claims:
            view.assume_claims(some)
        yield


def occupants_of(machines: Ids, store: SchedulerStore) -> Occupants:
    """Read who runs on these machines."""
    return store.occupants(machines)


def _yielding_to(precedence: int, store: SchedulerStore) -> Yielding:
    return store.yielding(precedence)


def _are_among(task: Index, unplaced: Index) -> bool:
    if len(unplaced) == len(task) and all_true(unplaced == task):
        return True
    return not (positions(unplaced, task) < 0).any()


def _commit(
    context: PlanningContext, view: View, together: Sequence[JobAttempt], claims: Sequence[Claims]
) -> Effects[Outcome]:
    """Commit the claims, if there are any, and patch the view with the fresh rows."""
    jobs = [
        (each.job.id, each.job.token, context.grants_min(each.job, job_claims), job_claims)
        for each, job_claims in zip(together, claims, strict=True)
        if len(job_claims)
    ]
    if not jobs:
        return Outcome.nothing()
    transaction = Transaction.of(
        jobs,
        id=context.new_id(),
        scheduler=context.scheduler.kind,
        replica=context.name,
        rule=context.scheduler.rule,
    )
    outcome = yield from committed(transaction)
    fresh = outcome.fresh
    if not context.scheduler.learns_from_refusals:
        granted = np.isin(fresh.id, outcome.machine[outcome.accepted])
        fresh = fresh.take(granted.nonzero()[0])
    view.patch(fresh)
    return outcome
