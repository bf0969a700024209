"""Patience with a store that is away."""

import threading

import numpy as np
import pytest

from omega.clock import ManualClock
from omega.config import Settings
from omega.errors import InvariantBroken, StoreUnavailable
from omega.events import Event, StoreFaltered
from omega.framework.retry import Retry


class Moody:
    """Answers from the nth call on."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.failures = failures
        self.error = error
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.failures:
            raise self.error
        return "answer"


AWAY = StoreUnavailable("the server is starting up")


class TestRetry:
    """A patience on a clock that is moved by hand."""

    def setup_method(self) -> None:
        self.clock = ManualClock()
        self.events: list[Event] = []
        self.stop = threading.Event()
        settings = Settings(backoff_initial_ms=100, backoff_max_ms=1_000)
        rng = np.random.default_rng(1)
        self.retry = Retry(self.clock, self.events.append, settings, rng, self.stop)

    def test_a_call_that_succeeds_is_made_once(self) -> None:
        call = Moody(0, AWAY)

        assert "answer" == self.retry("lease", call)
        assert (1, [], []) == (call.calls, self.events, self.clock.slept)

    def test_a_call_is_repeated_until_it_is_answered_and_each_failure_told(self) -> None:
        assert "answer" == self.retry("lease", Moody(3, AWAY))

        assert [StoreFaltered("lease", "the server is starting up")] * 3 == self.events

    def test_delays_grow_up_to_the_longest_and_are_jittered(self) -> None:
        self.retry("lease", Moody(8, AWAY))

        ceilings = [0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0, 1.0]
        assert all(
            ceiling / 2 <= slept <= ceiling
            for slept, ceiling in zip(self.clock.slept, ceilings, strict=True)
        )
        assert len(set(self.clock.slept[4:])) > 1

    def test_nobody_waits_once_the_process_is_to_stop(self) -> None:
        self.stop.set()

        with pytest.raises(StoreUnavailable):
            self.retry("lease", Moody(1, AWAY))
        assert [] == self.clock.slept

    def test_other_errors_are_not_waited_out(self) -> None:
        call = Moody(1, InvariantBroken("two allocations"))

        with pytest.raises(InvariantBroken):
            self.retry("commit", call)
        assert 1 == call.calls
