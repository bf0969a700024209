"""Effects: what a scheduler process yields to its driver, as values.

Goal     Keep the process free of I/O. In production the driver answers with a database and real
         time, in simulations with a memory store and virtual time. Both run the same code.
Promise  An effect is frozen and has all that is needed to answer it. The driver may take any time
         and may close the generator at any effect: nothing is left half-done. An exception of a
         call is raised inside the process, where it yielded the call.
Source   Omega (EuroSys 2013), section 3.4; psycopg's generators and dask's state machine;
         docs/decisions/0031-one-process-two-drivers.md.
"""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from omega.cell.view import View
from omega.events import TasksEvicted, TransactionJudged
from omega.model.claims import Transaction
from omega.model.evictors import evicted_tasks, evictors
from omega.model.jobs import LeasedJob
from omega.model.outcomes import Outcome, Verdict
from omega.store.protocols import SchedulerStore

_T = TypeVar("_T")


@dataclass(frozen=True)
class Refresh:
    """Bring the view up to date; answered with a View."""


@dataclass(frozen=True)
class Think:
    """Let decision time pass; answered with None.

    The time that the placement itself takes is added: it passes between two effects.
    """

    seconds: float


@dataclass(frozen=True, eq=False)
class PlaceAtRandom:
    """Let decision time pass, then place a job of one plain group by randomised first fit.

    Answered with the job with all its tasks placed, as `draw_groups` and a commit would have placed
    them. Answered with None, after the decision time, if not all tasks fit or if the driver does
    not place jobs.
    """

    seconds: float
    job: LeasedJob
    seed: bytes
    """The seed of the random generator for the placement."""


@dataclass(frozen=True, eq=False)
class Commit:
    """Submit a transaction; answered with its Outcome."""

    transaction: Transaction

    def judged(self, outcome: Outcome, *, thought_s: float, took_s: float) -> TransactionJudged:
        """Return the event of this commit.

        `thought_s` is the decision time spent on the transaction, `took_s` the time of the commit.
        """
        verdicts = outcome.by_verdict()
        accepted = verdicts.pop(Verdict.ACCEPTED, 0)
        jobs = [job for job in self.transaction.jobs if job.claims.start < job.claims.stop]
        return TransactionJudged(
            scheduler=self.transaction.scheduler,
            jobs=len(jobs),
            jobs_conflicted=sum(outcome.conflicted(job.claims) for job in jobs),
            accepted=accepted,
            refused={verdict.name.lower(): claims for verdict, claims in verdicts.items()},
            thought_s=thought_s,
            took_s=took_s,
            evicted=len(outcome.evicted_job),
        )

    def evicted(self, outcome: Outcome) -> Iterator[TasksEvicted]:
        """Yield an event for each job that lost tasks to claims of others, ascending by job."""
        if len(outcome.evicted_job):
            evictor = evictors(self.transaction, outcome)
            tasks = evicted_tasks(self.transaction, outcome)
            for job in sorted(evictor):
                yield TasksEvicted(job, tasks[job], evictor[job])


@dataclass(frozen=True, eq=False)
class Call(Generic[_T]):
    """Call the store; answered with what it returns.

    The driver repeats a call until the store answers, so a call must be harmless when repeated.
    """

    operation: str
    """Names the call in events."""
    make: Callable[[Any], _T]
    """Makes the call; its argument is the store, or a substitute in simulations."""


@dataclass(frozen=True)
class Wait:
    """Let time pass because there is nothing to do; answered with None.

    The wait may end early, when the process is to stop or when there is work again.
    """

    seconds: float


Effect = Refresh | Think | PlaceAtRandom | Commit | Call[Any] | Wait

Effects = Generator[Effect, Any, _T]
"""`Effects[T]`: a generator without I/O that yields effects, gets their answers and returns a T."""


def refreshed() -> Effects[View]:
    """Yield `Refresh`; return the view."""
    view = yield Refresh()
    assert isinstance(view, View), "Refresh is answered with a View"
    return view


def thought(seconds: float) -> Effects[None]:
    """Yield `Think`: let decision time pass."""
    answer = yield Think(seconds)
    assert answer is None, "Think is answered with None"


def placed_at_random(seconds: float, job: LeasedJob, seed: bytes) -> Effects[LeasedJob | None]:
    """Yield `PlaceAtRandom`; return the job with all its tasks placed, or None if it was not."""
    placed = yield PlaceAtRandom(seconds, job, seed)
    assert placed is None or isinstance(placed, LeasedJob), (
        "PlaceAtRandom is answered with a job, or None"
    )
    return placed


def committed(transaction: Transaction) -> Effects[Outcome]:
    """Yield `Commit`: have a transaction judged and applied; return its outcome."""
    outcome = yield Commit(transaction)
    assert isinstance(outcome, Outcome), "Commit is answered with an Outcome"
    return outcome


def called(operation: str, make: Callable[[SchedulerStore], _T]) -> Effects[_T]:
    """Yield `Call`: call the store; return what it returns."""
    answer: _T = yield Call(operation, make)
    return answer


def drive(steps: Effects[_T], answer: Callable[[Effect], object]) -> _T:
    """Run a generator of effects to its end; return its result.

    `answer` is called with each effect and returns its answer. An exception of `answer` is raised
    inside the generator, at the `yield` of the effect.
    """
    with closing(steps):
        try:
            effect = next(steps)
            while True:
                try:
                    answered = answer(effect)
                except Exception as error:
                    effect = steps.throw(error)
                else:
                    effect = steps.send(answered)
        except StopIteration as end:
            result: _T = end.value
            return result
