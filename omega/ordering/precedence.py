"""Highest precedence first.

Goal     Serve the most important jobs while there is room.
Promise  Jobs of equal precedence are in the order of their submission.
Source   Omega (EuroSys 2013), section 3.4: a precedence scale that all schedulers share.
"""

from collections.abc import Sequence

from omega.model.jobs import LeasedJob


def precedence(jobs: Sequence[LeasedJob]) -> list[LeasedJob]:
    """Return the jobs, highest precedence first, then oldest."""
    return sorted(jobs, key=lambda job: (-job.spec.precedence, job.id))
