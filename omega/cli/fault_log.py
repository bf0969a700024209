"""The sink of processes that run on their own: faults of the store go to standard error.

Goal     Let a log say when and why a process could not work.
Promise  Quiet while all is well.
Source   docs/decisions/0005-events.md.
"""

from omega.cli.consoles import warnings
from omega.clock import RealClock
from omega.events import Event, StoreFaltered


def warn(event: Event) -> None:
    """Say on standard error, which a supervisor keeps as a log, when the store is away."""
    if isinstance(event, StoreFaltered):
        at = RealClock().wall().isoformat(timespec="seconds")
        warnings().print(
            f"{at} {event.what}: {event.why}", markup=False, highlight=False, soft_wrap=True
        )
