"""A clock moves forward, and its sleeps can be cut short."""

import threading
from datetime import UTC, timedelta

import pytest

from omega.clock import Clock, ManualClock, RealClock

AN_HOUR_S = 3_600.0


def test_real_time_does_not_go_back() -> None:
    clock: Clock = RealClock()
    moments = [clock.now() for _ in range(100)]

    assert sorted(moments) == moments


def test_a_real_sleep_takes_its_time() -> None:
    clock = RealClock()
    before = clock.now()
    clock.sleep(0.01)

    assert clock.now() - before >= 0.01


def test_a_stop_that_is_set_ends_a_sleep_at_once() -> None:
    stop = threading.Event()
    stop.set()
    clock = RealClock(stop)
    before = clock.now()
    clock.sleep(AN_HOUR_S)

    assert clock.now() - before < AN_HOUR_S


def test_a_stop_wakes_a_sleeper() -> None:
    stop = threading.Event()
    sleeper = threading.Thread(target=RealClock(stop).sleep, args=(AN_HOUR_S,))
    sleeper.start()
    stop.set()
    sleeper.join()

    assert not sleeper.is_alive()


def test_a_wait_that_is_already_over_is_none() -> None:
    clock = RealClock()
    clock.sleep(-AN_HOUR_S)

    assert clock.now() > 0


def test_the_wall_clock_is_in_utc() -> None:
    assert UTC is RealClock().wall().tzinfo
    assert UTC is ManualClock().wall().tzinfo


def test_a_manual_clock_moves_only_when_told() -> None:
    clock = ManualClock(now=10.0)
    clock.advance(2.5)
    clock.sleep(0.5)
    clock.sleep(-1.0)

    assert 13.0 == clock.now()
    assert [0.5, -1.0] == clock.slept


def test_a_manual_wall_moves_along() -> None:
    clock = ManualClock(now=1e9)
    before = clock.wall()
    clock.advance(90)

    assert timedelta(seconds=90) == clock.wall() - before


def test_manual_time_does_not_go_back_either() -> None:
    with pytest.raises(AssertionError, match="does not go back"):
        ManualClock().advance(-1)
