"""What a simulated scheduler did and what happened to a job, as counts and sums.

Goal     The measures of the paper's open simulator, and those that it lacks, each counted once.
Promise  A published measure whose definition omits something stands beside one that does not.
         Busyness omits attempts that found no room; time spent thinking includes them. Waits are of
         attempted jobs; the number of jobs never attempted stands beside them.
Source   docs/papers/omega.md, the definitions; Omega (EuroSys 2013), section 4.
"""

from dataclasses import dataclass
from enum import Enum
from math import floor

from omega.events import TransactionJudged
from omega.model.jobs import LeasedJob
from omega.model.outcomes import Outcome


class Stage(Enum):
    """Where a job is now."""

    WAITING = "waiting"
    """In a queue, or about to return to it."""
    DECIDING = "deciding"
    ELSEWHERE = "elsewhere"
    """Not yet submitted, placed whole, or given up."""


@dataclass(eq=False)
class SimulatedJob:
    """A job of a simulation."""

    workload: str
    submitted_s: float
    durations_s: tuple[float | None, ...]
    """By task group; None for tasks that do not end."""
    lease: LeasedJob
    """The job as its scheduler plans it: what is placed, and what is not yet."""
    queued_s: float = 0.0
    """The time at which it last entered the queue."""
    attempts: int = 0
    """How many decisions on it are finished: one for each try; an attempt has one by default."""
    first_wait_s: float | None = None
    waited_s: float = 0.0
    """Seconds in the queue, over all attempts."""
    abandoned: bool = False
    stage: Stage = Stage.ELSEWHERE
    tasks_lost: int = 0
    """Tasks that lost their places because a machine went down or their gang broke."""
    attempts_before_loss: int = 0
    """Attempts made before tasks were lost; the give-up policy does not count them."""

    def breaks_without(self, tasks: int) -> bool:
        """Return whether the job is a gang that falls below its minimum without so many tasks."""
        minimum = self.lease.spec.minimum
        return minimum > 0 and self.lease.placed - tasks < minimum

    @property
    def left(self) -> int:
        """Tasks without a place."""
        return len(self.lease.unplaced)


@dataclass(eq=False)
class Ledger:
    """What one scheduler did with its time."""

    name: str
    useful_s: float = 0.0
    """Decision time of attempts in which no claim was refused ..."""
    wasted_s: float = 0.0
    """... and of those in which one was. Attempts that found no room count in neither."""
    thought_s: float = 0.0
    """Decision time of all attempts begun, cut off at the horizon."""
    begun: int = 0
    """Decisions begun: one for each try; an attempt has one by default."""
    accepted: int = 0
    """Transactions without a refused claim ..."""
    conflicted: int = 0
    """... and with one."""
    found_no_room: int = 0
    """Attempts without a claim."""
    claims_accepted: int = 0
    claims_refused: int = 0
    abandoned: int = 0
    waiting: int = 0
    """`jobs_waiting` of the results. With the open simulator's queue: jobs in the queue now. Jobs
    that are being decided on, or that return to the queue after a delay, do not count. With the
    live queue: jobs of the kind that are pending or being planned; they are counted for its first
    replica."""

    def begin(self, thinks_s: float, *, before_s: float) -> None:
        """Count an attempt that begins; `before_s` is the time left until the horizon."""
        self.begun += 1
        self.thought_s += min(thinks_s, max(0.0, before_s))

    def judge(self, outcome: Outcome, thought_s: float) -> None:
        """Count a transaction by its outcome, with the decision time spent on it."""
        refused = outcome.refused
        self._judge(len(outcome.verdicts) - refused, refused, thought_s)

    def grant(self, claims: int, thought_s: float) -> None:
        """Count a transaction all of whose claims were granted."""
        self._judge(claims, 0, thought_s)

    def judge_event(self, event: TransactionJudged) -> None:
        """Count a transaction that a process reported."""
        self._judge(event.accepted, sum(event.refused.values()), event.thought_s)

    def _judge(self, accepted: int, refused: int, thought_s: float) -> None:
        self.claims_accepted += accepted
        self.claims_refused += refused
        if refused:
            self.conflicted += 1
            self.wasted_s += thought_s
        else:
            self.accepted += 1
            self.useful_s += thought_s


def ratio(part: float, whole: float) -> float | None:
    """Return the quotient; None if the divisor is 0."""
    return part / whole if whole else None


def mean(values: list[float]) -> float | None:
    """Return the mean; None if there are no values."""
    return ratio(sum(values), len(values))


def p90(values: list[float]) -> float | None:
    """Return the element at floor(0.9 (n - 1)) of the sorted values, without interpolation."""
    return sorted(values)[floor(0.9 * (len(values) - 1))] if values else None
