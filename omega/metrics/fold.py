"""The fold over one scheduler's events: counters, a sliding window, histograms.

Goal     Compute everything that is shown or exported of a scheduler from its events alone.
Promise  Each event takes constant time and raises nothing. Times are read only from the clock that
         is passed in. Several threads may call it. Memory is bounded.
Source   Omega (EuroSys 2013), section 4; docs/decisions/0005-events.md.
"""

import threading
from collections import defaultdict, deque
from collections.abc import Mapping

from omega.clock import Clock
from omega.events import (
    AgentWarned,
    Event,
    HelpersEnded,
    HelpersPlaced,
    JobAttempted,
    JobParked,
    JobsLeased,
    JobsRecalled,
    JobsRescued,
    JobsWoken,
    MachinesExpired,
    MemoRefused,
    ProcessReported,
    ProgramEnded,
    RateUnknown,
    RecordingStopped,
    StoreCallFailed,
    TasksEnded,
    TasksEvicted,
    TasksLost,
    TransactionJudged,
    TurnChanged,
    ViewRefreshed,
)
from omega.metrics.facts import GROUPS, Facts, measures
from omega.metrics.histogram import Histogram

WINDOW_S = 10.0
_SAMPLES_PER_WINDOW = 20

Totals = defaultdict[str, float]


class SchedulerFold:
    """A sink that sums up what one scheduler process does."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.now()
        self._totals: Totals = defaultdict(int)  # counts remain ints; seconds become floats
        self._samples: deque[tuple[float, Mapping[str, float]]] = deque([(self._began, {})])
        self._waits = Histogram()
        self._view_ages = Histogram()
        self._refreshed: float | None = None
        self._lock = threading.Lock()

    def __call__(self, event: Event) -> None:
        """Count one event."""
        with self._lock:
            self._sample(self._clock.now())
            self._count(event)

    def facts(self) -> Facts:
        """Return the facts counted so far; see `omega.metrics.facts`."""
        with self._lock:
            now = self._clock.now()
            self._sample(now)
            elapsed_s = now - self._began
            window_s = min(WINDOW_S, elapsed_s)
            facts: Facts = {
                "elapsed_s": elapsed_s,
                "process_s": elapsed_s,
                "window_s": window_s,
                "totals": _nested(self._totals),
                "window": {**_nested(self._within_window()), "process_s": window_s},
                "waits": self._waits.buckets(),
                "view_ages": self._view_ages.buckets(),
            }
            return {**facts, "measures": measures(facts)}

    def refreshed_s_ago(self) -> float | None:
        """Return how long ago the process read the cell; None if it has not yet."""
        with self._lock:
            return None if self._refreshed is None else self._clock.now() - self._refreshed

    def _sample(self, now: float) -> None:
        """Save a copy of the totals, `_SAMPLES_PER_WINDOW` times in a window; drop old copies."""
        if now - self._samples[-1][0] >= WINDOW_S / _SAMPLES_PER_WINDOW:
            self._samples.append((now, dict(self._totals)))
        while self._samples[0][0] < now - WINDOW_S:
            self._samples.popleft()

    def _within_window(self) -> dict[str, float]:
        """Return what was counted since the oldest sample, which covers nearly the whole window."""
        _, before = self._samples[0]
        return {name: total - before.get(name, 0) for name, total in self._totals.items()}

    def _count(self, event: Event) -> None:
        if isinstance(event, ViewRefreshed):
            self._view_ages.add(event.age_s)
            self._refreshed = self._clock.now()
        if isinstance(event, JobsLeased):
            for wait_s in event.first_waits_s:
                self._waits.add(wait_s)
        for name, count in counts_of(event).items():
            self._totals[name] += count


def counts_of(event: Event) -> Mapping[str, float]:  # noqa: C901, PLR0911, PLR0912 - a line or two each
    """Return what an event adds to each counter, by name; `a/b` is counter b of the group a."""
    match event:
        case ProgramEnded(_, _, _, is_success):
            return {"programs": 1, "programs_failed": not is_success}
        case TransactionJudged():
            return _counts_of_transaction(event)
        case JobAttempted():
            return _counts_of_attempt(event)
        case ViewRefreshed(rows, _, took_s, full):
            return {"refreshes": 1, "refreshes_full": full, "rows": rows, "refresh_s": took_s}
        case JobsLeased(jobs, first_waits_s):
            return {"jobs_leased": jobs, "waits_s": sum(first_waits_s)}
        case JobsRecalled(jobs):
            return {"jobs_recalled": jobs}
        case JobParked(_, reason):
            return {"jobs_parked": 1, f"parked/{reason}": 1}
        case JobsWoken(jobs):
            return {"jobs_woken": jobs}
        case JobsRescued(jobs):
            return {"jobs_rescued": jobs}
        case MachinesExpired(machines):
            return {"machines_expired": machines}
        case TasksLost(tasks, why):
            return {"tasks_lost": tasks, f"lost/{why}": tasks}
        case TasksEvicted():
            return {"jobs_evicted": 1}
        case StoreCallFailed(what, _):
            return {"store_faults": 1, f"faltered/{what}": 1}
        case MemoRefused():
            return {"memos_refused": 1}
        case RecordingStopped():
            return {"recordings_stopped": 1}
        case AgentWarned():
            return {"agent_warnings": 1}
        case TasksEnded(tasks):
            return {"tasks_ended": tasks}
        case RateUnknown():
            return {"rates_unknown": 1}
        case TurnChanged():
            return {"turns_changed": 1}
        case HelpersPlaced(placed, left):
            return {"helpers_placed": placed, "helpers_without_room": left}
        case HelpersEnded(tasks):
            return {"helpers_ended": tasks}
        case ProcessReported():
            return {}


def _counts_of_transaction(event: TransactionJudged) -> Mapping[str, float]:
    refused = sum(event.refused.values())
    # Jobs committed together share their decision time; a job that conflicted wasted its share.
    wasted = event.jobs_conflicted / event.jobs
    return {
        "transactions": 1,
        "transactions_conflicted": event.conflicted,
        "job_transactions": event.jobs,
        "job_transactions_conflicted": event.jobs_conflicted,
        "claims": event.accepted + refused,
        "claims_refused": refused,
        "tasks_placed": event.accepted,
        "tasks_evicted": event.evicted,
        "thought_useful_s": event.thought_s * (1 - wasted),
        "thought_wasted_s": event.thought_s * wasted,
        "commit_useful_s": event.took_s * (1 - wasted),
        "commit_wasted_s": event.took_s * wasted,
        **{f"refused/{verdict}": claims for verdict, claims in event.refused.items()},
    }


def _counts_of_attempt(event: JobAttempted) -> Mapping[str, float]:
    return {
        "attempts": 1,
        "attempts_fruitless": event.placed == 0,
        "tries": event.tries,
        "retries": max(0, event.tries - 1),
        "jobs_placed": event.left == 0,
        "thought_s": event.thought_s,
    }


def _nested(flat: Mapping[str, float]) -> dict[str, float | dict[str, float]]:
    """Return the counts with names such as `refused/stale` turned into nested objects."""
    nested: dict[str, float | dict[str, float]] = {}
    for name, count in flat.items():
        group, _, member = name.rpartition("/")
        if group:
            assert group in GROUPS, f"{group} is none of the groups that facts are read by"
            members = nested.setdefault(group, {})
            assert isinstance(members, dict)
            members[member] = count
        else:
            nested[name] = count
    return nested
