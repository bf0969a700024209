"""First in, first out.

Goal     The order that needs no explanation.
Promise  Jobs come out as they were submitted: a store numbers them in that order.
Source   Queues of the schedulers in Omega (EuroSys 2013), section 4.
"""

from collections.abc import Sequence

from omega.model.jobs import LeasedJob


def fifo(jobs: Sequence[LeasedJob]) -> list[LeasedJob]:
    """Return the jobs, oldest first."""
    return sorted(jobs, key=lambda job: job.id)
