"""The senses of a scheduler process: from its events and its clock to the signals of a view.

Goal     Make what placement may know besides rows a value, by one piece of code for real and for
         virtual time.
Promise  Constant time and memory; no I/O. Ages are by the clock of the process, and by what the
         store said of the jobs it leased. Old claims weigh less: after a minute, next to nothing.
Source   docs/decisions/0033-the-age-of-parts.md.
"""

from collections.abc import Sequence
from math import exp

from omega.cell.signals import Signals
from omega.cell.view import View
from omega.clock import Clock
from omega.events import Event, JobsLeased, JobsRecalled, TransactionJudged
from omega.model.jobs import LeasedJob
from omega.workload.arrivals import MS_PER_S

MEMORY_S = 10.0
"""After so long a claim weighs 1/e of a new one."""


class SignalTracker:
    """A sink that remembers what signals are made of."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._leased_s = clock.now()
        """When the jobs that are being attempted were leased: all of a turn together."""
        self._claims = self._refused = 0.0
        """As they weighed ..."""
        self._judged_s = clock.now()
        """... when the last transaction was judged."""

    def __call__(self, event: Event) -> None:
        """Take in an event."""
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
        """Say how things stand now that these jobs, which wait, are about to be placed."""
        now_s = self._clock.now()
        age_s = 0.0
        if jobs:
            age_s = max([job.age_ms for job in jobs]) / MS_PER_S + now_s - self._leased_s
        fraction = self._refused / self._claims if self._claims else 0.0
        return Signals(now_s, view.parts_read_s, age_s, fraction)
