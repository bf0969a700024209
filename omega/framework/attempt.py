"""One attempt: Omega's optimistic loop, as a generator of effects.

Goal     The whole loop on two screens: refresh, decide, place, commit, learn, try again.
Promise  No I/O, no clock, no events: the driver supplies them, in real or in virtual time. The same
         answers lead to the same effects. A task is claimed at most once in each try.
Source   Omega (EuroSys 2013), section 3.4 and figure 4. Placement runs after the decision time, on
         the view read before it. On a private view it makes no difference whether placement
         runs before or after the decision time. On a shared view (a monolithic scheduler) the paper
         simulates it after.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from omega.cell.signals import Signals
from omega.cell.view import View
from omega.errors import InvariantBroken
from omega.framework.effects import Steps, committed, drawn, refreshed, thought
from omega.framework.job_attempt import JobAttempt, JobResult
from omega.framework.rng import rng_for, seed_of
from omega.framework.scheduler import NO_DECISION_TIME, DecisionTime, Scheduler
from omega.limits import LIMITS, Limits
from omega.model.arrays import Index, holds, positions
from omega.model.claims import Claims, Granularity, Transaction
from omega.model.jobs import LeasedJob
from omega.model.outcomes import Outcome


@dataclass(frozen=True, kw_only=True)
class Replica:
    """One replica of a scheduler: what an attempt needs to know of it."""

    scheduler: Scheduler
    name: str
    """Distinguishes replicas of a kind, in transactions and in the seeds of random generators."""
    run_seed: int
    new_id: Callable[[], UUID]
    """Makes transaction ids, which must never repeat on one store."""
    decision_time: DecisionTime = NO_DECISION_TIME
    limits: Limits = LIMITS
    explains: bool = True
    """Whether to diagnose why there is no room, for users to read; simulations do not."""
    signals: Callable[[View, Sequence[LeasedJob]], Signals] | None = None
    """Returns the signals for a view on which these jobs will be placed; None: no signals."""
    driver_places: bool = False
    """Whether to yield `Draw` for plain jobs; only drivers of simulations place such jobs."""

    def rng(self, job: LeasedJob, tries: int) -> np.random.Generator:
        """Return the random generator of one try; retries and other replicas get other streams."""
        return rng_for(*self._words(job, tries))

    def seed(self, job: LeasedJob, tries: int) -> bytes:
        """Return the seed of the random generator of one try."""
        return seed_of(*self._words(job, tries))

    def _words(self, job: LeasedJob, tries: int) -> tuple[int | str, ...]:
        return self.run_seed, job.id, job.fruitless, tries, self.name

    def set_signals(self, view: View, waiting: Sequence[LeasedJob]) -> None:
        """Set the signals of a view on which the waiting jobs are about to be placed."""
        if self.signals is not None:
            view.signals = self.signals(view, waiting)

    def minimum(self, job: LeasedJob, claims: Claims) -> int:
        """Return how many of the claims must be granted for any of them to be granted."""
        all_or_nothing = self.scheduler.granularity is Granularity.ALL_OR_NOTHING
        return len(claims) if all_or_nothing else job.lacking


def attempt(replica: Replica, jobs: Sequence[LeasedJob]) -> Steps[list[JobResult]]:
    """Plan leased jobs together on one view, commit them together, and retry what was refused.

    Returns one `JobResult` for each job. Raises InvariantBroken if the scheduler's `order` loses or
    adds jobs, or if its `place` claims for tasks that were not asked for.
    """
    view = yield from refreshed()
    active = [
        JobAttempt(job, replica.limits, explains=replica.explains)
        for job in replica.scheduler.order(jobs, view)
    ]
    if len(active) != len(jobs) or {each.job.id for each in active} != {job.id for job in jobs}:
        raise InvariantBroken(f"{replica.scheduler.kind}.order must return the jobs it was given")

    results = []
    while True:
        results += [each.result(view) for each in active if each.ending]
        active = [each for each in active if not each.ending]
        if not active:
            return results
        together = _begin_tries(active, replica.limits.claims_per_transaction_max)
        if (yield from _think(replica, together)):
            continue
        claims = _place(replica, view, together)
        outcome = yield from _commit(replica, view, together, claims)
        for each in active if len(outcome.evicted_job) else ():
            each.record_evictions(outcome.evicted_task[outcome.evicted_job == each.job.id])
        first = 0
        for each, job_claims in zip(together, claims, strict=True):
            part = slice(first, first := first + len(job_claims))
            each.record_outcome(job_claims, outcome.verdicts[part], outcome.machine[part])
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
        if together and len(each.pending) > tasks_left:
            break
        each.begin_try()
        together.append(each)
        tasks_left -= len(each.to_place.unplaced)
    return together


def _think(replica: Replica, together: Sequence[JobAttempt]) -> Steps[bool]:
    """Let the decision time pass; return whether the driver has then placed the only job whole."""
    seconds = sum(replica.decision_time.of_job(each.to_place) for each in together)
    first = together[0]
    job = first.job
    is_drawn = (
        replica.driver_places
        and len(together) == 1
        and first.to_place is job
        and job.spec.is_plain
        and replica.scheduler.places_at_random(job)
    )
    if not is_drawn:
        yield from thought(seconds)
        return False
    placed = yield from drawn(seconds, job, replica.seed(job, first.tries))
    if placed is None:
        return False
    first.place_all(placed)
    return True


def _place(replica: Replica, view: View, together: Sequence[JobAttempt]) -> list[Claims]:
    """Return the claims of each job, placed in order; each sees the claims of those before it."""
    placed = []
    replica.set_signals(view, [each.job for each in together])
    with view.tentative():
        for each in together:
            rng = replica.rng(each.job, each.tries)
            claims = replica.scheduler.place(view, each.to_place, rng)
            if not _are_among(claims.task, each.to_place.unplaced):
                raise InvariantBroken(
                    f"{replica.scheduler.kind} claimed for tasks of job {each.job.id} that it was"
                    " not asked to place"
                )
            if len(claims) < each.job.lacking:
                claims = Claims.none()  # these claims of a gang would be refused
            placed.append(claims)
            if len(placed) < len(together):
                view.assume_claims(claims)
    return placed


def _are_among(task: Index, unplaced: Index) -> bool:
    if len(unplaced) == len(task) and holds(unplaced == task):
        return True
    return not (positions(unplaced, task) < 0).any()


def _commit(
    replica: Replica, view: View, together: Sequence[JobAttempt], claims: Sequence[Claims]
) -> Steps[Outcome]:
    """Commit the claims, if there are any, and patch the view with the fresh rows."""
    parts = [
        (each.job.id, each.job.token, replica.minimum(each.job, job_claims), job_claims)
        for each, job_claims in zip(together, claims, strict=True)
        if len(job_claims)
    ]
    if not parts:
        return Outcome.nothing()
    transaction = Transaction.of(
        parts,
        id=replica.new_id(),
        scheduler=replica.scheduler.kind,
        replica=replica.name,
        rule=replica.scheduler.rule,
    )
    outcome = yield from committed(transaction)
    fresh = outcome.fresh
    if not replica.scheduler.learns_from_refusals:
        granted = np.isin(fresh.id, outcome.machine[outcome.accepted])
        fresh = fresh.take(granted.nonzero()[0])
    view.patch(fresh)
    return outcome
