"""What a scheduler process asks of whoever drives it, as values.

Goal     Keep the process free of I/O: production answers with a database and real time, the
         simulator with a memory store and virtual time, and both measure the code that runs.
Promise  An effect is frozen and says all that is needed to answer it. The driver may take as long
         as it likes and may drop the generator at any effect: nothing is half-done. What a call
         raises is raised where the process asked for it.
Source   Omega (EuroSys 2013), section 3.4; psycopg's generators and dask's state machine;
         docs/decisions/0031-one-process-two-drivers.md.
"""

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from omega.cell.view import View
from omega.events import TransactionJudged
from omega.model.claims import Transaction
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

    What the decision costs by itself comes on top: the driver sees it pass between two effects.
    """

    seconds: float


@dataclass(frozen=True, eq=False)
class Draw:
    """Let decision time pass, then place a job of one plain group, whole, on machines drawn.

    Answered with the job with all its tasks placed, each claimed and granted as if by
    `draw_groups` and a commit; or with None if not all of them fit, or if the driver does not
    draw: then only the time has passed.
    """

    seconds: float
    job: LeasedJob
    seed: bytes
    """Of the generator that draws."""


@dataclass(frozen=True, eq=False)
class Commit:
    """Submit a transaction; answered with its Outcome."""

    transaction: Transaction

    def judged(self, outcome: Outcome, *, thought_s: float, took_s: float) -> TransactionJudged:
        """Say what came of it, given the decision time that went in and how long it took."""
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


@dataclass(frozen=True, eq=False)
class Call(Generic[_T]):
    """Call the store; answered with what it returns.

    The driver repeats a call until the store answers, so a call must be harmless when repeated.
    """

    operation: str
    """Names the call in events."""
    make: Callable[[Any], _T]
    """Is given the store, or whatever stands for it."""


@dataclass(frozen=True)
class Wait:
    """Let time pass, for there is nothing to do; answered with None.

    It may end early, when the process is to stop or when there is work again.
    """

    seconds: float


Effect = Refresh | Think | Draw | Commit | Call[Any] | Wait

Steps = Generator[Effect, Any, _T]
"""A loop without I/O: yields effects, is sent their answers, returns its result."""


def refreshed() -> Steps[View]:
    """Ask for the view, brought up to date."""
    view = yield Refresh()
    assert isinstance(view, View), "Refresh is answered with a View"
    return view


def thought(seconds: float) -> Steps[None]:
    """Ask for decision time to pass."""
    answer = yield Think(seconds)
    assert answer is None, "Think is answered with None"


def drawn(seconds: float, job: LeasedJob, seed: bytes) -> Steps[LeasedJob | None]:
    """Ask for decision time to pass and the job to be placed; return it if it was, whole."""
    placed = yield Draw(seconds, job, seed)
    assert placed is None or isinstance(placed, LeasedJob), "Draw is answered with a job, or None"
    return placed


def committed(transaction: Transaction) -> Steps[Outcome]:
    """Ask for a transaction to be judged and applied."""
    outcome = yield Commit(transaction)
    assert isinstance(outcome, Outcome), "Commit is answered with an Outcome"
    return outcome


def asked(operation: str, make: Callable[[SchedulerStore], _T]) -> Steps[_T]:
    """Call the store; return what it returns."""
    answer: _T = yield Call(operation, make)
    return answer


def drive(steps: Steps[_T], answer: Callable[[Effect], object]) -> _T:
    """Run a loop to its end, answering each effect at once; return its result.

    What `answer` raises is raised where the loop asked.
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
