"""The watchdog, without processes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

import pytest

from omega.clock import Clock, ManualClock, RealClock
from omega.errors import SettingsError
from omega.nodes.agent.machine_lease import Deadline
from omega.nodes.agent.task_driver import TaskKey
from omega.nodes.agent.watchdog import Watchdog, kill_running, watch_all
from tests.agent.waiting import DEADLINE_S
from tests.unit.nodes.agent.fake_driver import FakeDriver

KEY = TaskKey(1, 0, 1)


@dataclass
class Folder:
    """The folder of an agent whose tasks fakes run."""

    path: Path
    clock: Clock = field(default_factory=ManualClock)
    driver: FakeDriver = field(default_factory=lambda: FakeDriver(exits={KEY: None}))
    is_alone: bool = True
    said: list[str] = field(default_factory=list)

    @property
    def deadline(self) -> Deadline:
        return Deadline(self.path)

    def kill(self) -> set[TaskKey]:
        """Kill what runs, which ends at once."""
        killed = kill_running(self.driver)
        for key in killed:
            self.driver.kill(key, 9)
        return killed

    def watchdog(
        self, kill: Callable[[], set[TaskKey]] | None = None, deadline: Deadline | None = None
    ) -> Watchdog:
        return Watchdog(
            deadline or self.deadline,
            self.clock,
            kill=kill or self.kill,
            is_alone=lambda: self.is_alone,
            warn=self.said.append,
        )


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def away() -> set[TaskKey]:
    raise SettingsError(["the container engine at 'unix:///x' does not answer"])


def test_it_waits_for_the_first_lease_of_a_slow_database(folder: Folder) -> None:
    folder.is_alone = False
    watchdog = folder.watchdog()
    watchdog.look()
    assert not watchdog.is_over
    folder.is_alone = True
    watchdog.look()

    assert watchdog.is_over
    assert [KEY] == folder.driver.running, "no deadline has passed"


def test_a_deadline_that_is_put_off_while_it_is_read_has_not_passed(folder: Folder) -> None:
    """The agent may write it between the look at the clock and the look at the file."""
    clock = folder.clock = ManualClock()
    folder.deadline.write(1.0)

    class Slow(Deadline):
        """Takes long to read the file; the agent puts it off just after."""

        def read(self) -> float | None:
            found = super().read()
            clock.advance(2.0)
            self.write(100.0)
            return found

    folder.watchdog(deadline=Slow(folder.path)).look()

    assert [KEY] == folder.driver.running


def test_it_kills_until_nothing_runs_and_counts_each_task_once(folder: Folder) -> None:
    folder.deadline.write(0.0)
    watchdog = folder.watchdog(lambda: kill_running(folder.driver))
    watchdog.look()
    watchdog.look()
    assert [(KEY, "KILL")] * 2 == folder.driver.signals
    assert not watchdog.is_over
    folder.driver.kill(KEY, 9)
    watchdog.look()

    assert watchdog.is_over
    assert {KEY} == watchdog.killed


def test_what_an_agent_starts_while_the_watchdog_looks_is_killed_though_the_agent_ends(
    folder: Folder,
) -> None:
    folder.deadline.write(0.0)
    folder.driver.exits.clear()
    folder.is_alone = False

    def kill() -> set[TaskKey]:
        killed = folder.kill()
        if not folder.is_alone:
            folder.driver.exits[KEY] = None
            folder.is_alone = True
        return killed

    watchdog = folder.watchdog(kill)
    watchdog.look()
    assert not watchdog.is_over
    watchdog.look()

    assert {KEY} == watchdog.killed


def test_while_it_cannot_know_what_runs_it_asks_again_and_warns_once(folder: Folder) -> None:
    folder.deadline.write(0.0)
    answers = [away, away, folder.kill, folder.kill, away]
    looks = iter(answers)

    def kill() -> set[TaskKey]:
        return next(looks)()

    watchdog = folder.watchdog(kill)
    overs = []
    for _ in answers:
        watchdog.look()
        overs.append(watchdog.is_over)

    assert [False, False, False, True, False] == overs
    assert {KEY} == watchdog.killed
    warning = (
        "the watchdog cannot see what runs: the container engine at 'unix:///x' does not answer"
    )
    assert [warning] * 2 == folder.said, "once for each time that it was away"


def test_processes_are_killed_while_an_engine_is_away_and_containers_once_it_is_back(
    folder: Folder,
) -> None:
    stop = Event()
    folder.clock = RealClock(stop)
    folder.deadline.write(0.0)
    container = TaskKey(2, 0, 1)
    engine = Folder(folder.path, driver=FakeDriver(exits={container: None}))
    killed_processes = Event()

    def kill_processes() -> set[TaskKey]:
        if not (killed := folder.kill()):
            killed_processes.set()
        return killed

    def kill_containers() -> set[TaskKey]:
        return engine.kill() if killed_processes.is_set() else away()

    here, there = folder.watchdog(kill_processes), folder.watchdog(kill_containers)

    assert {KEY, container} == watch_all(here, [there], folder.clock, stop)
    assert here.is_over
    assert there.is_over


def test_an_engine_that_hangs_delays_neither_the_kill_nor_the_end_on_a_signal(
    folder: Folder,
) -> None:
    stop, is_asked, may_answer = Event(), Event(), Event()
    folder.clock = RealClock(stop)
    folder.deadline.write(0.0)

    def hang() -> set[TaskKey]:
        is_asked.set()
        assert may_answer.wait(DEADLINE_S)
        return set()

    def kill_processes() -> set[TaskKey]:
        assert is_asked.wait(DEADLINE_S)
        if not (killed := folder.kill()):
            stop.set()  # as a signal does
        return killed

    there = folder.watchdog(hang)
    killed = watch_all(folder.watchdog(kill_processes), [there], folder.clock, stop)

    assert {KEY} == killed
    assert not may_answer.is_set()
    assert not there.is_over
    may_answer.set()
