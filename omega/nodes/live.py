"""Virtual nodes at work: their life, answered by a store in real time.

Goal     Run virtual nodes against a store for as long as they are wanted.
Promise  Outlives restarts of the store.
Source   docs/decisions/0031-one-process-two-drivers.md.
"""

import threading
from collections.abc import Callable

from omega.clock import Clock
from omega.errors import StoreUnavailable
from omega.events import Sink
from omega.framework.driver import Driver
from omega.framework.effects import Effects, drive
from omega.framework.retry import Retry
from omega.nodes.stepper import NO_RATES, StepRates
from omega.nodes.virtual import VirtualNodes, nothing_else
from omega.store.protocols import Store


class LiveNodes:
    """Virtual nodes on a store. Call `run`, or `step` for one step at a time."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        sink: Sink,
        retry: Retry,
        *,
        speedup: float,
        rates: StepRates = NO_RATES,
    ) -> None:
        self._nodes = VirtualNodes(sink, speedup=speedup, rates=rates)
        self._driver = Driver(store, clock, retry)

    def run(
        self, stop: threading.Event, after_each: Callable[[], Effects[None]] = nothing_else
    ) -> None:
        """Work until the stop event is set; the clock's sleeps must end with it."""
        try:
            drive(self._nodes.life(stop, after_each), self._driver.answer)
        except StoreUnavailable:
            if not stop.is_set():
                raise

    def step(self, now_ms: int) -> int:
        """Hear of new tasks and end those that are over at that time; return how many ended."""
        return drive(self._nodes.step(now_ms), self._driver.answer)
