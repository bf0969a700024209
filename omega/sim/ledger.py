"""What a simulated scheduler did and what a job went through: counts and sums, folded at the end.

Goal     The measures of the paper's open simulator, and those that it lacks, counted once.
Promise  A measure whose published definition hides something stands beside one that does not:
         busyness without attempts that found no room beside time spent thinking, waits of
         attempted jobs beside the number of those never attempted.
Source   docs/papers/omega.md, the definitions; Omega (EuroSys 2013), section 4.
"""

from dataclasses import dataclass
from enum import Enum
from math import floor

from omega.events import TransactionJudged
from omega.model.jobs import LeasedJob
from omega.model.outcomes import Outcome


class Stage(Enum):
    """Where a job is."""

    WAITING = "waiting"
    """In a queue, or about to come back to it."""
    DECIDING = "deciding"
    ELSEWHERE = "elsewhere"
    """Not yet submitted, placed whole, or given up."""


@dataclass(eq=False)
class SimulatedJob:
    """A job on its way."""

    workload: str
    submitted_s: float
    durations_s: tuple[float | None, ...]
    """Of the tasks of each group; None for those that run on and on."""
    lease: LeasedJob
    """The job as its scheduler plans it: what is placed, and what is not yet."""
    queued_s: float = 0.0
    """Since when it has been in the queue."""
    attempts: int = 0
    """Finished ones."""
    first_wait_s: float | None = None
    waited_s: float = 0.0
    """In the queue, over all attempts."""
    abandoned: bool = False
    stage: Stage = Stage.ELSEWHERE
    tasks_lost: int = 0
    """That had a place when a machine went down, or whose gang fell."""
    forgiven: int = 0
    """Attempts made before tasks were lost: they do not count against it."""

    def falls_without(self, tasks: int) -> bool:
        """Say whether it is a gang that cannot stand if it loses so many tasks."""
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
    """Decision time of attempts none of whose claims was refused ..."""
    wasted_s: float = 0.0
    """... and of those with a refused one. Attempts that found no room are in neither."""
    thought_s: float = 0.0
    """Decision time of all attempts that were begun, up to the horizon."""
    begun: int = 0
    accepted: int = 0
    """Transactions without a refused claim ..."""
    conflicted: int = 0
    """... and with one."""
    found_no_room: int = 0
    """Attempts that claimed nothing."""
    claims_accepted: int = 0
    claims_refused: int = 0
    abandoned: int = 0
    waiting: int = 0
    """Jobs in the queue at the end."""

    def begin(self, thinks_s: float, *, before_s: float) -> None:
        """Record that an attempt begins, which thinks so long; it counts up to the horizon."""
        self.begun += 1
        self.thought_s += min(thinks_s, max(0.0, before_s))

    def judge(self, outcome: Outcome, thought_s: float) -> None:
        """Record what a transaction came to, and the decision time that went into it."""
        refused = outcome.refused
        self._judge(len(outcome.verdicts) - refused, refused, thought_s)

    def grant(self, claims: int, thought_s: float) -> None:
        """Record a transaction all of whose claims were granted."""
        self._judge(claims, 0, thought_s)

    def judge_event(self, event: TransactionJudged) -> None:
        """Record what a process told of a transaction."""
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
    """Divide; None where there is no whole."""
    return part / whole if whole else None


def mean(values: list[float]) -> float | None:
    """Return the mean; None of nothing."""
    return ratio(sum(values), len(values))


def p90(values: list[float]) -> float | None:
    """Return the element at floor(0.9 (n - 1)) of the sorted values, without interpolation."""
    return sorted(values)[floor(0.9 * (len(values) - 1))] if values else None
