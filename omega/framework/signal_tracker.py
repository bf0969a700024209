"""Computes the signals of a view from the events and the clock of a scheduler process.

Goal     Compute what placement may know besides rows with the same code in real and virtual time.
Promise  Constant time and memory for each event; no I/O. The age of a job is the age at its lease,
         by the store's clock, plus the time since, by the clock of the process. The weight of a
         claim decays exponentially: after a minute it is 1/400. A job's demand is counted once, at
         its first lease.
Source   docs/decisions/0033-the-age-of-parts.md.
"""

from collections.abc import Sequence
from math import exp

from omega.cell.demand import DemandTally
from omega.cell.signals import Signals
from omega.cell.view import View
from omega.clock import Clock
from omega.events import Event, JobsLeased, JobsRecalled, TransactionJudged
from omega.model.jobs import LeasedJob
from omega.workload.arrivals import MS_PER_S

MEMORY_S = 10.0
"""The time after which a claim has 1/e of the weight of a new one."""


class SignalTracker:
    """A sink that records what signals are computed from."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._leased_s = clock.now()
        """When the jobs that are being attempted were leased; one call leases all of a cycle."""
        self._claims = self._refused = 0.0
        """Weighted numbers of claims judged and claims refused ..."""
        self._judged_s = clock.now()
        """... at the time when the last transaction was judged."""
        self._demand = DemandTally()
        self._counted: frozenset[int] = frozenset()
        """The jobs of the last placement: if they are placed again, that is another try."""

    def __call__(self, event: Event) -> None:
        """Record an event."""
        if isinstance(event, TransactionJudged):
            now_s = self._clock.now()
            kept = exp((self._judged_s - now_s) / MEMORY_S)
            refused = sum(event.refused.values())
            self._claims = self._claims * kept + event.accepted + refused
            self._refused = self._refused * kept + refused
            self._judged_s = now_s
        elif isinstance(event, JobsLeased | JobsRecalled):
            self._leased_s = self._clock.now()

    def signals(self, view: View, jobs: Sequence[LeasedJob]) -> Signals:
        """Return the signals at this moment, for a view on which these jobs will be placed."""
        now_s = self._clock.now()
        age_s = 0.0
        if jobs:
            age_s = max([job.age_ms for job in jobs]) / MS_PER_S + now_s - self._leased_s
        fraction = self._refused / self._claims if self._claims else 0.0
        self._count(jobs)
        return Signals(now_s, view.parts_read_s, age_s, fraction, self._demand.demand())

    def _count(self, jobs: Sequence[LeasedJob]) -> None:
        for job in jobs:
            if job.waited_ms is not None and job.id not in self._counted:
                self._demand.count(job)
        self._counted = frozenset(job.id for job in jobs)
