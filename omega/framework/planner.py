"""What decides which jobs are taken and where they go, turn by turn.

Goal     Let ways of planning stand in for one another in one scheduler process.
Promise  A planner has no I/O: it asks by effects, as the process does.
Source   docs/decisions/0031-one-process-two-drivers.md.
"""

from typing import Protocol

from omega.framework.effects import Steps


class Planner(Protocol):
    """Plans the work of one scheduler process."""

    def turn(self) -> Steps[int]:
        """Take work, decide on it, commit and settle it; return how many jobs it was about."""
        ...

    def idle_s(self) -> float:
        """Say how long to wait after a turn that was about no job, in seconds."""
        ...
