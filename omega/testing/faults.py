"""Faults in front of a store: calls that are lost, late, or the last that a process makes.

Goal     Let a test choose at which call, and on which side of its effect, something goes wrong.
Promise  A request that is lost had no effect; a reply that is lost had its effect in full. The same
         seed spoils the same calls of the same caller. Every fault is counted.
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
    """Which side of a call's effect."""

    BEFORE = "before"
    AFTER = "after"


class Spoiler(Protocol):
    """Stands around every call to a store."""

    def __call__(self, name: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - any call's
        """Make the call, or not; return its answer, or raise."""
        ...


class FaultyStore(PassThrough):
    """A store whose every call goes through a spoiler."""

    def __init__(self, store: Store, spoiler: Spoiler) -> None:
        super().__init__(cast("Store", _Around(store, spoiler)))


class _Around:
    """Answers to any method's name with that method, spoilt."""

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
    """How often things go wrong: shares of all calls."""

    lose_request: float = 0.0
    lose_reply: float = 0.0
    delay: float = 0.0
    delay_s_max: float = 0.0


class Losses:
    """Loses and delays calls by chance."""

    def __init__(self, rates: Rates, rng: np.random.Generator, clock: Clock) -> None:
        self._rates = rates
        self._rng = rng
        self._clock = clock
        self.counts: Counter[str] = Counter()
        """How many faults of each kind there were."""

    def __call__(self, name: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - any call's
        """Make the call, perhaps late, perhaps in vain."""
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
    """Lets a signal stop this process at one call: SIGKILL for ever, SIGSTOP until SIGCONT."""

    def __init__(
        self, name: str, side: Side, *, calls_before: int = 0, number: int = signal.SIGKILL
    ) -> None:
        self._name = name
        self._side = side
        self._left = calls_before
        self._number = number

    def __call__(self, name: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - any call's
        """Make the call, unless the process ends first; or end after it."""
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
    """A clock that is wrong by a fixed time, as every clock is."""

    def __init__(self, clock: Clock, *, ahead_s: float) -> None:
        self._clock = clock
        self._ahead_s = ahead_s

    def now(self) -> float:
        """Return what the right clock shows, and so much more."""
        return self._clock.now() + self._ahead_s

    def sleep(self, seconds: float) -> None:
        """Wait: a wrong clock runs as fast as a right one."""
        self._clock.sleep(seconds)

    def wall(self) -> datetime:
        """Return the wrong calendar time."""
        return self._clock.wall() + timedelta(seconds=self._ahead_s)
