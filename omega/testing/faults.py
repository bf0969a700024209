"""Faults in front of a store: calls that are lost or late, or at which the process is stopped.

Goal     A test chooses at which call, and before or after its effect, something fails.
Promise  A lost request had no effect; a lost reply had its whole effect. The same seed and the same
         calls give the same faults. Every fault is counted.
Source   FoundationDB's buggify; lost replies are designed for: docs/decisions/0003.
"""

import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Protocol, cast

import numpy as np

from omega.clock import Clock
from omega.errors import StoreUnavailable
from omega.store.protocols import Store
from omega.testing.pass_through import PassThrough


class Side(Enum):
    """Whether something happens before or after a call's effect."""

    BEFORE = "before"
    AFTER = "after"


class Spoiler(Protocol):
    """Is called instead of every call to a store, with the method's name and the call itself."""

    def __call__(self, name: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - any call's
        """Make the call or not; return its answer or raise an error."""
        ...


class FaultyStore(PassThrough):
    """A store each of whose calls is passed to a spoiler."""

    def __init__(self, store: Store, spoiler: Spoiler) -> None:
        super().__init__(cast("Store", _Around(store, spoiler)))


class _Around:
    """Returns for any method's name a function that passes the call to the spoiler."""

    def __init__(self, store: Store, spoiler: Spoiler) -> None:
        self._store = store
        self._spoiler = spoiler

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._store, name)

        def spoilt(*arguments: object, **named: object) -> Any:  # noqa: ANN401 - any method's
            return self._spoiler(name, lambda: method(*arguments, **named))

        return spoilt


@dataclass(frozen=True, kw_only=True)
class Rates:
    """How often calls fail, as shares of all calls."""

    lose_request: float = 0.0
    lose_reply: float = 0.0
    delay: float = 0.0
    delay_s_max: float = 0.0


class Losses:
    """Loses and delays calls at random."""

    def __init__(self, rates: Rates, rng: np.random.Generator, clock: Clock) -> None:
        self._rates = rates
        self._rng = rng
        self._clock = clock
        self.counts: Counter[str] = Counter()
        """The number of faults of each kind."""

    def __call__(self, name: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - any call's
        """Make the call, perhaps late; raise StoreUnavailable if request or reply is lost."""
        if name == "close":
            return call()
        if self._rng.random() < self._rates.delay:
            self.counts["delays"] += 1
            self._clock.sleep(self._rng.uniform(0, self._rates.delay_s_max))
        if self._rng.random() < self._rates.lose_request:
            self.counts["lost requests"] += 1
            raise StoreUnavailable(f"the request was lost: {name} had no effect")
        answer = call()
        if self._rng.random() < self._rates.lose_reply:
            self.counts["lost replies"] += 1
            raise StoreUnavailable(f"the reply was lost: {name} had its effect")
        return answer


class Halt:
    """Sends this process a signal at one call: SIGKILL, or SIGSTOP until a test sends SIGCONT."""

    def __init__(
        self, name: str, side: Side, *, calls_before: int = 0, number: int = signal.SIGKILL
    ) -> None:
        self._name = name
        self._side = side
        self._left = calls_before
        self._number = number

    def __call__(self, name: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - any call's
        """Make the call; send the signal before or after it if it is the chosen one."""
        if name != self._name:
            return call()
        self._left -= 1
        if self._left == -1 and self._side is Side.BEFORE:
            os.kill(os.getpid(), self._number)
        answer = call()
        if self._left == -1 and self._side is Side.AFTER:
            os.kill(os.getpid(), self._number)
        return answer


class SkewedClock:
    """A clock that is wrong by a fixed number of seconds."""

    def __init__(self, clock: Clock, *, ahead_s: float) -> None:
        self._clock = clock
        self._ahead_s = ahead_s

    def now(self) -> float:
        """Return the time of the right clock plus the error."""
        return self._clock.now() + self._ahead_s

    def sleep(self, seconds: float) -> None:
        """Sleep as the right clock does."""
        self._clock.sleep(seconds)

    def wall(self) -> datetime:
        """Return the calendar time plus the error."""
        return self._clock.wall() + timedelta(seconds=self._ahead_s)
