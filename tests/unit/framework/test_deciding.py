"""The report of a scheduler while it decides."""

import pytest

from omega.clock import ManualClock
from omega.events import ProcessReported, TasksEnded
from omega.framework.deciding import DECIDING_AFTER_S, DecidingReporter
from omega.store.memory.store import MemoryStore


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(clock: ManualClock) -> MemoryStore:
    return MemoryStore(clock)


@pytest.fixture
def reporter(clock: ManualClock) -> DecidingReporter:
    return DecidingReporter("batch", "0", 7, lambda: {"totals": {"jobs": 1}}, clock)


def test_a_busy_main_loop_is_reported_with_its_silence(
    reporter: DecidingReporter, store: MemoryStore, clock: ManualClock
) -> None:
    reporter(ProcessReported())
    clock.advance(DECIDING_AFTER_S)
    reporter(TasksEnded(1))
    reporter.report(store)

    (report,) = store.reports()
    assert {"totals": {"jobs": 1}, "deciding_s": DECIDING_AFTER_S} == report.facts
    assert ("batch", "0", 7) == (report.kind, report.replica, report.pid)


def test_a_main_loop_that_reports_is_left_to_it(
    reporter: DecidingReporter, store: MemoryStore, clock: ManualClock
) -> None:
    reporter.report(store)
    reporter(ProcessReported())
    clock.advance(DECIDING_AFTER_S - 0.1)
    reporter.report(store)

    assert [] == store.reports()


def test_after_its_end_nothing_is_reported(
    reporter: DecidingReporter, store: MemoryStore, clock: ManualClock
) -> None:
    reporter(ProcessReported())
    clock.advance(60.0)
    reporter.end()
    reporter.report(store)

    assert [] == store.reports()
