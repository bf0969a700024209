"""When something that is done every so often is due."""

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
