"""When something that is done every so often is due."""

import numpy as np

from omega.clock import ManualClock
from omega.framework.timer import Timer


def test_it_is_due_at_once_and_then_once_an_interval() -> None:
    clock = ManualClock(now=100.0)
    timer = Timer(clock, interval_ms=2_000)

    due = []
    for seconds in (0.0, 0.0, 1.9, 0.2, 0.1, 10.0, 0.0):
        clock.advance(seconds)
        due.append(timer.due())

    assert [True, False, False, True, False, True, False] == due


def test_with_chance_two_that_began_together_do_not_stay_in_step() -> None:
    clock = ManualClock()
    timers = [Timer(clock, 1_000, np.random.default_rng(seed)) for seed in range(2)]

    due_at: list[list[float]] = [[], []]
    for _ in range(5_000):
        for timer, its in zip(timers, due_at, strict=True):
            if timer.due():
                its.append(clock.now())
        clock.advance(0.01)

    for its in due_at:
        assert all(0.74 <= gap <= 1.02 for gap in np.diff(its))
    assert len(set(due_at[0]) & set(due_at[1])) < len(due_at[0]) / 2
