"""The log of a process: what is said, and how often."""

import json
from collections.abc import Sequence

import pytest

from omega.clock import ManualClock
from omega.events import (
    AgentWarned,
    Event,
    JobAttempted,
    JobParked,
    JobsLeased,
    MachinesExpired,
    MemoRefused,
    ProcessReported,
    ProgramEnded,
    RateUnknown,
    StoreCallFailed,
    TasksEnded,
    TransactionJudged,
    TurnChanged,
    ViewRefreshed,
)
from omega.terminal.process_log import (
    REASONS_MAX,
    REPEATED_AFTER_S,
    SUMMARY_AFTER_S,
    LogFormat,
    LogLevel,
    ProcessLog,
)

REFUSED = StoreCallFailed("lease", "connection refused")


CONFLICTED = TransactionJudged("batch 0", 2, 1, 5, {"stale": 3}, 0.5, 1.5, evicted=4)
WORK: Sequence[Event] = (
    ViewRefreshed(10, 0.25, 0.1, full=False),
    CONFLICTED,
    TransactionJudged("batch 0", 1, 0, 7, {}, 0.5, 0.5),
    JobAttempted(1, 1, 5, 0, thought_s=4.0),
    JobAttempted(2, 1, 7, 0, thought_s=6.0),
    JobParked(3, "no_room"),
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def log(clock: ManualClock) -> ProcessLog:
    return ProcessLog("batch 0", clock, form=LogFormat.TEXT)


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


def minute_of(log: ProcessLog, clock: ManualClock, work: Sequence[Event]) -> None:
    """Let a process do this work, and report after a minute."""
    log(ProcessReported())
    for event in work:
        log(event)
    clock.advance(SUMMARY_AFTER_S)
    log(ProcessReported())


def test_a_minute_is_summed_up(
    log: ProcessLog, clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    minute_of(log, clock, WORK)
    minute_of(log, clock, [])

    start, first, second = [line.partition(" INFO batch 0: ")[2] for line in lines(capsys)]
    assert "start: at work; a summary follows each minute" == start
    assert (
        "minute: 2 jobs attempted, 1 parked, 12 tasks placed, 4 evicted, 1 of 2 transactions"
        " conflicted, busy 20%, view up to 250 ms old"
    ) == first
    assert "minute: idle" == second


def test_nodes_count_what_ended(
    log: ProcessLog, clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    minute_of(
        log,
        clock,
        [TasksEnded(12), TasksEnded(1), ProgramEnded(1, 0, "exited with 0", is_success=True)],
    )

    assert lines(capsys)[-1].endswith("minute: 13 tasks ended, 1 program ended, 0 failed")


def test_a_summary_waits_for_its_minute(
    log: ProcessLog, clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    log(ProcessReported())
    clock.advance(SUMMARY_AFTER_S - 1)
    log(ProcessReported())

    assert 1 == len(lines(capsys)), "only the start is said"


def test_elsewhere_than_on_a_terminal_a_line_is_one_object(
    clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    log = ProcessLog("batch \x1b", clock)
    minute_of(log, clock, WORK)

    _, said = [json.loads(line) for line in lines(capsys)]
    assert ("info", "batch \\x1b", "minute") == (said["level"], said["process"], said["about"])
    assert (60.0, 2, 12, 2, 1) == tuple(
        said[name]
        for name in (
            "over_s",
            "jobs_attempted",
            "tasks_placed",
            "transactions",
            "transactions_conflicted",
        )
    )
    assert (0.2, 0.25) == (said["busy"], said["view_age_s"])


def test_debug_has_a_line_for_each_transaction(
    clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    log = ProcessLog("batch 0", clock, LogLevel.DEBUG, LogFormat.TEXT)
    for event in WORK:
        log(event)

    first, second, parked = [line.partition(" DEBUG batch 0: ")[2] for line in lines(capsys)]
    assert (
        "transaction: 2 jobs, 5 tasks placed; refused: 3 stale; 4 tasks evicted; decided in 500 ms,"
        " committed in 1.5 s"
    ) == first
    assert second.startswith("transaction: 1 job, 7 tasks placed; nothing refused; decided")
    assert "job 3: parked: no_room" == parked


def test_warning_leaves_out_what_is_less(
    clock: ManualClock, capsys: pytest.CaptureFixture[str]
) -> None:
    log = ProcessLog("batch 0", clock, LogLevel.WARNING, LogFormat.TEXT)
    minute_of(log, clock, [*WORK, TurnChanged((0, 2)), REFUSED])

    (line,) = lines(capsys)
    assert line.endswith("WARNING batch 0: lease: connection refused")
