"""The queue in sums: who waits, and for what.

Goal     Say at a glance what most jobs wait for, and whose they are.
Promise  Reasons are by number of jobs, the dominant one first, each with what to do about it.
Source   ReaderStore.queue.
"""

from collections import Counter
from collections.abc import Sequence

from omega.lifecycle.states import ParkReason, State
from omega.reports.jobs import NEXT_STEPS
from omega.store.watching import QueueLine


def queue_row(lines: Sequence[QueueLine]) -> dict[str, object]:
    """Return the queue as JSON types: its lines, and the reasons why jobs are parked."""
    return {
        "jobs": {state.value: jobs for state, jobs in by_state(lines).items()},
        "unplaced": sum(line.unplaced for line in lines),
        "parked": [
            {"reason": reason.value, "jobs": jobs, "next_step": NEXT_STEPS[reason]}
            for reason, jobs in by_reason(lines).most_common()
        ],
        "lines": [
            {
                "scheduler": line.scheduler,
                "tenant": line.tenant,
                "state": line.state.value,
                "reason": None if line.park_reason is None else line.park_reason.value,
                "jobs": line.jobs,
                "unplaced": line.unplaced,
                "oldest_ms": line.oldest_ms,
            }
            for line in lines
        ],
    }


def by_reason(lines: Sequence[QueueLine]) -> Counter[ParkReason]:
    """Return how many jobs are parked for each reason."""
    counted: Counter[ParkReason] = Counter()
    for line in lines:
        if line.park_reason is not None:
            counted[line.park_reason] += line.jobs
    return counted


def by_state(lines: Sequence[QueueLine]) -> Counter[State]:
    """Return how many jobs wait in each state."""
    counted: Counter[State] = Counter()
    for line in lines:
        counted[line.state] += line.jobs
    return counted
