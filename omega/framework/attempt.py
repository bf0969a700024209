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
from omega.framework.progress import JobResult, Progress
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
    going = [
        Progress(job, replica.limits, explains=replica.explains)
        for job in replica.scheduler.order(jobs, view)
    ]
    if len(going) != len(jobs) or {one.job.id for one in going} != {job.id for job in jobs}:
        raise InvariantBroken(f"{replica.scheduler.kind}.order must return the jobs it was given")

    attempted = []
    while True:
        attempted += [one.attempted(view) for one in going if one.ending]
        going = [one for one in going if not one.ending]
        if not going:
            return attempted
        together = _fill(going, replica.limits.claims_per_transaction_max)
        if (yield from _think(replica, together)):
            continue
        claims = _place(replica, view, together)
        outcome = yield from _commit(replica, view, together, claims)
        for one in going if len(outcome.evicted_job) else ():
            one.lose(outcome.evicted_task[outcome.evicted_job == one.job.id])
        first = 0
        for one, its in zip(together, claims, strict=True):
            mine = slice(first, first := first + len(its))
            one.learn(its, outcome.verdicts[mine], outcome.machine[mine])
        if outcome.refused:
            # The paper, too, refreshes after a conflict: whoever took this room has probably
            # claimed on other machines as well.
            view = yield from refreshed()


def _fill(going: Sequence[Progress], tasks_max: int) -> list[Progress]:
    """Begin a try for as many jobs, in order, as fit one transaction; at least for the first.

    Only the first may be larger than a transaction. It is then planned in several tries.
    """
    together: list[Progress] = []
    room = tasks_max
    for one in going:
        if together and len(one.pending) > room:
            break
        one.ask()
        together.append(one)
        room -= len(one.asked.unplaced)
    return together


def _think(replica: Replica, together: Sequence[Progress]) -> Steps[bool]:
    """Let the decision time pass; return whether the driver has then placed the only job whole."""
    seconds = sum(replica.decision_time.of_job(one.asked) for one in together)
    one = together[0]
    job = one.job
    is_drawn = (
        replica.driver_places
        and len(together) == 1
        and one.asked is job
        and job.spec.is_plain
        and replica.scheduler.places_at_random(job)
    )
    if not is_drawn:
        yield from thought(seconds)
        return False
    placed = yield from drawn(seconds, job, replica.seed(job, one.tries))
    if placed is None:
        return False
    one.place_all(placed)
    return True


def _place(replica: Replica, view: View, together: Sequence[Progress]) -> list[Claims]:
    """Return the claims of each job, placed in order; each sees the claims of those before it."""
    placed = []
    replica.set_signals(view, [one.job for one in together])
    with view.tentative():
        for one in together:
            claims = replica.scheduler.place(view, one.asked, replica.rng(one.job, one.tries))
            if not _asked_for(one.asked.unplaced, claims.task):
                raise InvariantBroken(
                    f"{replica.scheduler.kind} claimed for tasks of job {one.job.id} that it was"
                    " not asked to place"
                )
            if len(claims) < one.job.lacking:
                claims = Claims.none()  # these claims of a gang would be refused
            placed.append(claims)
            if len(placed) < len(together):
                view.assume_claims(claims)
    return placed


def _asked_for(asked: Index, task: Index) -> bool:
    if len(asked) == len(task) and holds(asked == task):
        return True
    return not (positions(asked, task) < 0).any()


def _commit(
    replica: Replica, view: View, together: Sequence[Progress], claims: Sequence[Claims]
) -> Steps[Outcome]:
    """Commit the claims, if there are any, and patch the view with the fresh rows."""
    parts = [
        (one.job.id, one.job.token, replica.minimum(one.job, its), its)
        for one, its in zip(together, claims, strict=True)
        if len(its)
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
