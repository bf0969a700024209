"""Planners: how a scheduler process leases jobs, plans them and commits, cycle by cycle.

Goal     Make the ways of planning interchangeable in one scheduler process.
Promise  A planner does no I/O: it yields effects, as the process does.
Source   docs/decisions/0031-one-process-two-drivers.md.
"""

from typing import Protocol

from omega.framework.effects import Effects


class Planner(Protocol):
    """Plans the work of one scheduler process."""

    def cycle(self) -> Effects[int]:
        """Lease jobs, plan and commit them, and end leases; return the number of jobs."""
        ...

    def idle_s(self) -> float:
        """Return how many seconds to wait after a cycle without jobs."""
        ...
