"""Submits a workload's jobs at their times.

Goal     Replay the arrivals of a workload on a running cell.
Promise  Every job is submitted once, in order, never before its time. If a call fails without an
         answer its jobs are submitted again by the next call, and so perhaps twice.
Source   omega.workload.arrivals.
"""

from collections.abc import Sequence
from typing import Final

from omega.store.loading import JOBS_PER_CALL, submit_all
from omega.store.protocols import SubmitterStore
from omega.workload.arrivals import Arrival

JOBS_PER_FEED: Final = JOBS_PER_CALL
"""The most jobs in one call. A call that fails has submitted none, and can be repeated."""


class Feeder:
    """The arrivals of a workload, and how many of them have been submitted."""

    def __init__(self, arrivals: Sequence[Arrival], queue: SubmitterStore) -> None:
        self._arrivals = arrivals
        self._queue = queue
        self.submitted = 0

    @property
    def total(self) -> int:
        """The number of jobs in the workload."""
        return len(self._arrivals)

    @property
    def done(self) -> bool:
        """Whether every job was submitted."""
        return self.submitted == self.total

    def feed(self, elapsed_s: float) -> int:
        """Submit the jobs that are due after so many seconds; return how many."""
        last = self.submitted
        upto = min(self.total, last + JOBS_PER_FEED)
        while last < upto and self._arrivals[last].submit_s <= elapsed_s:
            last += 1
        due = [arrival.spec for arrival in self._arrivals[self.submitted : last]]
        if due:
            submit_all(self._queue, due)
        self.submitted = last
        return len(due)
