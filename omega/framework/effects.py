"""What the scheduling loop asks of whoever drives it, as values.

Goal     Keep the loop free of I/O: production answers with a database and real time, the
         simulator with arrays and virtual time, and both measure the code that runs.
Promise  An effect is frozen and says all that is needed to answer it. The driver may take as long
         as it likes and may drop the generator at any effect: nothing is half-done.
Source   Omega (EuroSys 2013), section 3.4; psycopg's generators and dask's state machine.
"""

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

from omega.cell.view import View
from omega.events import TransactionJudged
from omega.model.claims import Transaction
from omega.model.outcomes import Outcome, Verdict


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


Effect = Refresh | Think | Commit
Answer = View | Outcome | None

_T = TypeVar("_T")

Steps = Generator[Effect, Answer, _T]
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


def committed(transaction: Transaction) -> Steps[Outcome]:
    """Ask for a transaction to be judged and applied."""
    outcome = yield Commit(transaction)
    assert isinstance(outcome, Outcome), "Commit is answered with an Outcome"
    return outcome


def drive(steps: Steps[_T], answer: Callable[[Effect], Answer]) -> _T:
    """Run a loop to its end, answering each effect at once; return its result."""
    with closing(steps):
        try:
            effect = next(steps)
            while True:
                effect = steps.send(answer(effect))
        except StopIteration as end:
            result: _T = end.value
            return result
