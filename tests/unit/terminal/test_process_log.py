"""The log of a process: what is said, and how often."""

import pytest

from omega.clock import ManualClock
from omega.events import (
    AgentWarned,
    JobsLeased,
    MachinesExpired,
    MemoRefused,
    RateUnknown,
    StoreCallFailed,
    TurnChanged,
)
from omega.terminal.process_log import REASONS_MAX, REPEATED_AFTER_S, ProcessLog

REFUSED = StoreCallFailed("lease", "connection refused")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def log(clock: ManualClock) -> ProcessLog:
    return ProcessLog("batch 0", clock)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_a_line_has_the_time_a_level_and_the_process(
    log: ProcessLog, capsys: pytest.CaptureFixture[str]
) -> None:
    warned = AgentWarned("no space")
    for event in (REFUSED, RateUnknown("none"), MemoRefused("long"), warned, TurnChanged((0, 2))):
        log(event)

    at = "2000-01-01T00:00:00+00:00"
    assert [
        f"{at} WARNING batch 0: lease: connection refused",
        f"{at} WARNING batch 0: rates: none",
        f"{at} WARNING batch 0: memo: long",
        f"{at} WARNING batch 0: tasks: no space",
        f"{at} INFO batch 0: turn: 1/2",
    ] == lines(capsys)


def test_an_outage_is_said_at_once_and_then_once_a_minute(
    log: ProcessLog, clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(121):
        log(REFUSED)
        clock.advance(REPEATED_AFTER_S / 60)

    first, *others = [line.partition(" WARNING ")[2] for line in lines(capsys)]
    assert "batch 0: lease: connection refused" == first
    assert [f"{first} (59 more since it was last said)"] * 2 == others


def test_machines_whose_agents_are_silent_are_counted(
    log: ProcessLog, capsys: pytest.CaptureFixture[str]
) -> None:
    log(MachinesExpired(1))
    log(MachinesExpired(1_200))

    one, many = [line.partition(" WARNING batch 0: ")[2] for line in lines(capsys)]
    assert "machines: 1 machine is down: its agent has not renewed its lease" == one
    assert "machines: 1,200 machines are down: their agents have not renewed their leases" == many


def test_another_reason_is_said_at_once(
    log: ProcessLog, capsys: pytest.CaptureFixture[str]
) -> None:
    log(REFUSED)
    log(StoreCallFailed("lease", "starting up"))
    log(StoreCallFailed("commit", "starting up"))

    assert 2 == len(lines(capsys))


def test_any_number_of_reasons_takes_little_memory(
    log: ProcessLog, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(REASONS_MAX + 1):
        log(StoreCallFailed("lease", f"reason {number}"))
    log(StoreCallFailed("lease", "reason 0"))

    assert REASONS_MAX + 2 == len(lines(capsys)), "reason 0 was forgotten with the others"


def test_what_is_no_failure_is_not_logged(
    log: ProcessLog, capsys: pytest.CaptureFixture[str]
) -> None:
    log(JobsLeased(1, ()))

    assert [] == lines(capsys)
