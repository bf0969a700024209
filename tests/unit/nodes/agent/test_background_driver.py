"""The thread that works a driver: what it does when, and what is shown meanwhile.

The clock stands still unless a test moves it, so that nothing is due by chance.
"""

from collections.abc import Iterator
from threading import Thread

import pytest

from omega.clock import ManualClock
from omega.model.exits import Exit, ExitCause
from omega.model.programs import Check, Program
from omega.nodes.agent.background_driver import (
    KILL_AGAIN_S,
    LATE_LOOK_S,
    LOOK_S,
    OUTPUT_S,
    BackgroundDriver,
)
from omega.nodes.agent.task_driver import Launch, NotStarted, Stream, TaskKey
from tests.agent.waiting import until
from tests.unit.nodes.agent.held_driver import HeldDriver

RUNS, ENDED, NEW, OTHER = (TaskKey(job, 0, 1_000) for job in range(1, 5))
DONE = Exit(cause=ExitCause.EXITED, code=0)
OUT = Stream.STDOUT


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def driver() -> HeldDriver:
    """A driver of two tasks that an earlier agent has started; one of them has ended."""
    said = {(RUNS, OUT): b"one\n", (ENDED, OUT): b"bye\n"}
    return HeldDriver(exits={RUNS: None, ENDED: DONE}, said=said)


@pytest.fixture
def background(driver: HeldDriver, clock: ManualClock) -> Iterator[BackgroundDriver]:
    """The driver in a thread that has nothing more to do."""
    background = BackgroundDriver(driver, clock)
    until(lambda: "stderr 1" in driver.began)
    yield background
    driver.let_go()
    background.close()


def a_launch(key: TaskKey, restarts: int = 0) -> Launch:
    program = Program(command=("x",), image="image")
    return Launch(key=key, program=program, env={}, cpu_milli=0, memory_mib=0, restarts=restarts)


def keep_busy(driver: HeldDriver, background: BackgroundDriver) -> None:
    """Have the driver begin a start that does not end."""
    driver.hold()
    background.start(a_launch(OTHER))
    assert driver.is_held_in("start 4")


def done_at_the_end(driver: HeldDriver, background: BackgroundDriver) -> list[str]:
    """Close it while the driver is busy; return what it does after that."""
    before = len(driver.began)
    closing = Thread(target=background.close)
    closing.start()
    until(lambda: background._is_closed)  # noqa: SLF001
    driver.let_go()
    closing.join()
    assert not background._thread.is_alive()  # noqa: SLF001
    return driver.began[before:]


def see_again(driver: HeldDriver, background: BackgroundDriver, clock: ManualClock) -> None:
    """Wait until a look that begins now has been shown."""
    looks = driver.began.count("look")
    clock.advance(LOOK_S)
    until(lambda: driver.began.count("look") > looks)
    background.signal(RUNS, "USR2")  # it is sent after the look
    until(lambda: (RUNS, "USR2") in driver.signals)


def test_what_is_there_is_known_at_once(background: BackgroundDriver) -> None:
    assert {RUNS: None, ENDED: DONE} == background.look()
    assert (4, b"bye\n") == background.output(ENDED, OUT, 100)


def test_no_method_waits_while_the_driver_is_busy(
    driver: HeldDriver, background: BackgroundDriver
) -> None:
    keep_busy(driver, background)

    background.start(a_launch(NEW))
    background.signal(RUNS, "TERM")
    background.forget(ENDED)
    assert {RUNS: None, OTHER: None, NEW: None} == background.look()
    assert (4, b"e\n") == background.output(RUNS, OUT, 2)
    assert (4, b"") == background.output(RUNS, OUT, 0)
    assert background.steps(RUNS) is None
    assert background.probe_of(a_launch(RUNS), Check(command=("x",)))() is None
    assert "start 4" == driver.began[-1]


def test_a_task_is_shown_as_running_before_the_driver_has_started_it(
    driver: HeldDriver, background: BackgroundDriver, clock: ManualClock
) -> None:
    driver.hold()
    clock.advance(LOOK_S)
    assert driver.is_held_in("look")
    driver.end(RUNS)
    background.start(a_launch(NEW))
    assert {RUNS: None, ENDED: DONE, NEW: None} == background.look()

    driver.let_go(3)  # the look, and the outputs of what has ended
    assert driver.is_held_in("start 3")
    assert {RUNS: DONE, ENDED: DONE, NEW: None} == background.look()
    assert NEW not in driver.exits


def test_a_task_that_runs_is_not_started_again(background: BackgroundDriver) -> None:
    with pytest.raises(NotStarted, match="runs already"):
        background.start(a_launch(RUNS))


def test_a_start_that_is_refused_is_an_exit_until_it_is_forgotten(
    driver: HeldDriver, background: BackgroundDriver, clock: ManualClock
) -> None:
    driver.refuses = "there is no such image"
    background.start(a_launch(NEW, restarts=2))
    until(lambda: background.look()[NEW] is not None)
    assert background.look()[NEW] == Exit(
        cause=ExitCause.NOT_STARTED, restarts=2, detail="there is no such image"
    )

    background.forget(NEW)
    until(lambda: "forget 3" in driver.began)
    see_again(driver, background, clock)
    assert {RUNS: None, ENDED: DONE} == background.look()


def test_a_start_that_was_refused_may_succeed_later(
    driver: HeldDriver, background: BackgroundDriver, clock: ManualClock
) -> None:
    driver.refuses = "no"
    background.start(a_launch(NEW))
    until(lambda: background.look()[NEW] is not None)
    driver.refuses = ""
    background.start(a_launch(NEW))
    until(lambda: NEW in driver.exits)
    see_again(driver, background, clock)
    assert background.look()[NEW] is None


def test_signals_and_starts_go_before_removals(
    driver: HeldDriver, background: BackgroundDriver
) -> None:
    keep_busy(driver, background)
    background.forget(ENDED)
    background.signal(RUNS, "TERM")
    background.start(a_launch(NEW))
    driver.let_go(1)
    assert driver.is_held_in("TERM 1")
    driver.let_go(1)
    assert driver.is_held_in("start 3")
    driver.let_go()
    until(lambda: "forget 2" in driver.began)


def test_a_signal_that_still_waits_is_not_queued_twice(
    driver: HeldDriver, background: BackgroundDriver
) -> None:
    keep_busy(driver, background)
    for signal in ("TERM", "TERM", "KILL", "KILL", "TERM"):
        background.signal(RUNS, signal)
    background.signal(OTHER, "TERM")
    assert ["TERM 1", "KILL 1", "TERM 4"] == done_at_the_end(driver, background)


def test_a_task_that_was_killed_is_killed_again_after_a_while(
    driver: HeldDriver, background: BackgroundDriver, clock: ManualClock
) -> None:
    def kill_it_and(after: str) -> list[str]:
        """Kill it, and wait for what was told after that."""
        driver.signals.clear()
        background.signal(RUNS, "KILL")
        background.signal(RUNS, after)
        until(lambda: (RUNS, after) in driver.signals)
        return [signal for _, signal in driver.signals]

    assert ["KILL", "USR1"] == kill_it_and("USR1")
    assert ["USR2"] == kill_it_and("USR2")
    clock.advance(0.9 * KILL_AGAIN_S)
    assert ["USR1"] == kill_it_and("USR1")
    clock.advance(0.2 * KILL_AGAIN_S)
    assert ["KILL", "USR2"] == kill_it_and("USR2")


def test_a_task_that_was_killed_and_started_again_is_killed_at_once(
    driver: HeldDriver, background: BackgroundDriver, clock: ManualClock
) -> None:
    background.signal(RUNS, "KILL")
    until(lambda: driver.signals)
    driver.end(RUNS)
    clock.advance(0.5 * KILL_AGAIN_S)
    until(lambda: background.look()[RUNS] is not None)
    background.start(a_launch(RUNS))
    background.signal(RUNS, "KILL")
    until(lambda: [(RUNS, "KILL")] * 2 == driver.signals)


def test_a_look_waits_for_signals_and_starts_but_not_for_ever(
    driver: HeldDriver, background: BackgroundDriver, clock: ManualClock
) -> None:
    driver.hold()
    background.signal(RUNS, "USR1")
    assert driver.is_held_in("USR1 1")
    for signal in ("INT", "HUP", "TERM"):
        background.signal(RUNS, signal)
    clock.advance(LOOK_S)
    driver.let_go(1)
    assert driver.is_held_in("INT 1")
    clock.advance(LATE_LOOK_S)
    driver.let_go(1)
    assert driver.is_held_in("look")
    driver.let_go(1)
    assert driver.is_held_in("HUP 1")


def test_a_start_does_not_put_a_late_look_off(
    driver: HeldDriver, background: BackgroundDriver, clock: ManualClock
) -> None:
    keep_busy(driver, background)
    background.signal(RUNS, "TERM")
    clock.advance(LOOK_S + LATE_LOOK_S)
    driver.let_go(1)
    assert driver.is_held_in("look")


def test_what_was_forgotten_is_not_shown_while_it_waits_to_be_removed(
    driver: HeldDriver, background: BackgroundDriver
) -> None:
    keep_busy(driver, background)
    background.forget(ENDED)
    assert ENDED not in background.look()
    assert (0, b"") == background.output(ENDED, OUT, 100)

    driver.let_go(2)  # the start, and a look
    assert driver.is_held_in("forget 2")
    assert ENDED in driver.exits
    assert {RUNS: None, OTHER: None} == background.look()


def test_what_could_not_be_removed_is_shown_again_with_its_output(
    driver: HeldDriver, background: BackgroundDriver, clock: ManualClock
) -> None:
    driver.keeps_what_is_removed = True
    background.forget(ENDED)
    until(lambda: "forget 2" in driver.began)
    clock.advance(LOOK_S)
    until(lambda: ENDED in background.look())
    assert DONE == background.look()[ENDED]
    assert (4, b"bye\n") == background.output(ENDED, OUT, 100)

    driver.keeps_what_is_removed = False
    background.forget(ENDED)
    until(lambda: ENDED not in driver.exits)


def test_a_start_replaces_what_waits_for_the_start_before(
    driver: HeldDriver, background: BackgroundDriver, clock: ManualClock
) -> None:
    """Or the removal would hide the task, and remove it as soon as it ends."""
    keep_busy(driver, background)
    background.forget(ENDED)
    background.start(a_launch(ENDED))
    driver.let_go()
    until(lambda: ENDED in driver.running)
    driver.end(ENDED, 3)
    clock.advance(LOOK_S)
    until(lambda: background.look()[ENDED] is not None)
    background.close()
    assert "forget 2" not in driver.began


def test_a_signal_for_the_start_before_does_not_stand_for_one_for_the_next(
    driver: HeldDriver, background: BackgroundDriver, clock: ManualClock
) -> None:
    driver.end(RUNS)
    driver.hold()
    clock.advance(LOOK_S)
    assert driver.is_held_in("look")
    background.signal(RUNS, "INT")
    background.signal(RUNS, "TERM")
    driver.let_go(3)  # the look, and the outputs of what has ended
    assert driver.is_held_in("INT 1")
    background.start(a_launch(RUNS))
    background.signal(RUNS, "TERM")
    driver.let_go()
    until(lambda: [(RUNS, "TERM")] == driver.signals)


def test_a_task_that_waits_to_be_started_is_not_checked(
    driver: HeldDriver, background: BackgroundDriver
) -> None:
    """Else the check would be made where it ran before."""
    driver.fails_checks, check = "it is gone", Check(command=("x",))
    keep_busy(driver, background)
    background.start(a_launch(ENDED))
    assert background.probe_of(a_launch(ENDED), check)() is None
    driver.let_go()
    until(lambda: ENDED in driver.running)
    assert "it is gone" == background.probe_of(a_launch(ENDED), check)()


def test_an_end_is_shown_together_with_all_that_was_written(
    driver: HeldDriver, background: BackgroundDriver, clock: ManualClock
) -> None:
    assert LOOK_S < OUTPUT_S, "outputs are not due"
    driver.said[RUNS, OUT] = b"one\ntwo\n"
    driver.end(RUNS)
    clock.advance(LOOK_S)
    until(lambda: background.look()[RUNS] is not None)
    assert (8, b"one\ntwo\n") == background.output(RUNS, OUT, 100)


def test_the_outputs_of_what_runs_are_read_from_time_to_time(
    driver: HeldDriver, background: BackgroundDriver, clock: ManualClock
) -> None:
    driver.said[RUNS, OUT] = b"one\ntwo\n"
    clock.advance(OUTPUT_S)
    until(lambda: background.output(RUNS, OUT, 4) == (8, b"two\n"))


def test_the_total_of_an_output_never_goes_back(
    driver: HeldDriver, background: BackgroundDriver, clock: ManualClock
) -> None:
    """While a container is started again, the driver may know less than before."""
    assert (4, b"one\n") == background.output(RUNS, OUT, 100)
    driver.said[RUNS, OUT] = b""
    before = driver.began.count("stderr 1")
    clock.advance(OUTPUT_S)
    until(lambda: driver.began.count("stderr 1") > before)
    assert (4, b"one\n") == background.output(RUNS, OUT, 100)
    driver.said[RUNS, OUT] = b"one\ntwo\n"
    clock.advance(OUTPUT_S)
    until(lambda: background.output(RUNS, OUT, 100) == (8, b"one\ntwo\n"))


def test_an_error_of_the_driver_is_raised_by_looks(
    driver: HeldDriver, background: BackgroundDriver, clock: ManualClock
) -> None:
    def look_for_ever() -> bool:
        background.look()
        return False

    driver.fails = ZeroDivisionError("a fault")
    clock.advance(LOOK_S)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="a fault"):
            until(look_for_ever)
    background.close()


def test_what_waits_is_done_before_the_end_and_then_the_driver_is_closed(
    driver: HeldDriver, background: BackgroundDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "close", lambda: driver.began.append("close"))
    keep_busy(driver, background)
    background.forget(ENDED)
    background.signal(RUNS, "TERM")
    assert ["TERM 1", "forget 2", "close"] == done_at_the_end(driver, background)


def test_a_driver_that_hangs_is_left_when_its_time_is_up(
    driver: HeldDriver, background: BackgroundDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omega.nodes.agent.background_driver.CLOSE_S", 0.0)
    keep_busy(driver, background)
    background.close()
    assert not driver.is_closed, "the thread still uses it"


def test_unknown_tasks_are_harmless(driver: HeldDriver, background: BackgroundDriver) -> None:
    keep_busy(driver, background)
    background.signal(NEW, "KILL")
    background.forget(NEW)
    background.forget(RUNS)  # it runs
    background.signal(ENDED, "KILL")  # it does not
    assert background.steps(NEW) is None
    assert (0, b"") == background.output(NEW, OUT, 10)
    assert NEW not in background.look()
    assert [] == done_at_the_end(driver, background)
