"""The container driver, with an engine that hangs, refuses and forgets as a test wants."""

import os
import signal as signals
import threading
from pathlib import Path

import pytest

from omega.model.exits import Exit, ExitCause
from omega.nodes.agent import container_engine
from omega.nodes.agent.container_driver import ContainerDriver
from omega.nodes.agent.container_engine import Engine, EngineError
from omega.nodes.agent.container_starts import STARTS_AT_ONCE_MAX
from omega.nodes.agent.output_file import OutputFile
from omega.nodes.agent.task_driver import TaskKey
from tests.agent.waiting import ended, until
from tests.unit.nodes.agent.container_steps import (
    AWAY,
    KEY,
    OTHER,
    THIRD,
    a_launch,
    labels,
    opened,
    run_to_end,
    running,
    starters,
    stdout,
)
from tests.unit.nodes.agent.fake_engine import FakeEngine


class TestTimeLimits:
    """No answer is silent for ever."""

    def test_logs_that_fall_silent_are_an_error(
        self, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(container_engine, "TIMEOUT_S", 2)
        engine.are_logs_silent = True
        container = engine.add(labels())
        client = Engine(engine.address)
        try:
            with pytest.raises(EngineError, match=r"^the engine sent nothing for 2 s$"):
                client.logs(container, is_stdout=True, bytes_max=100)
        finally:
            client.close()

    def test_a_pull_that_falls_silent_is_an_exit(
        self, engine: FakeEngine, driver: ContainerDriver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(container_engine, "PULL_SILENCE_S", 0.5, raising=False)
        engine.is_pull_silent = True
        driver.start(a_launch(image=AWAY))

        why = f"the image {AWAY!r} could not be pulled: the engine sent nothing for 0.5 s"
        assert Exit(cause=ExitCause.NOT_STARTED, detail=why) == ended(driver, KEY)

    def test_a_pull_may_take_longer_than_other_calls(
        self, engine: FakeEngine, driver: ContainerDriver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(container_engine, "TIMEOUT_S", 2)
        engine.is_pull_silent = True
        driver.start(a_launch(image=AWAY))
        until(engine.silent.is_set)
        client = Engine(engine.address)
        engine.are_logs_silent = True
        with pytest.raises(EngineError):  # which takes as long as the limit of other calls
            client.logs(engine.add({}), is_stdout=True, bytes_max=1)
        client.close()

        assert driver.look() == {KEY: None}


class TestEndedStarts:
    """A start that is ended before its program runs."""

    @pytest.mark.parametrize("signal", ["KILL", "TERM"])
    def test_a_pull_is_left(self, engine: FakeEngine, driver: ContainerDriver, signal: str) -> None:
        driver.start(a_launch(image=AWAY))
        until(lambda: engine.asked("POST images create"))
        driver.signal(KEY, signal)
        end = ended(driver, KEY)
        assert (ExitCause.SIGNALLED, signals.Signals[f"SIG{signal}"]) == (end.cause, end.signal)

        engine.pull_goes_on.set()
        until(engine.pull_was_left.is_set)
        until(lambda: not starters())
        assert not engine.asked("POST create")
        driver.forget(KEY)
        assert {} == driver.look()

    def test_a_container_that_was_created_does_not_start(
        self, engine: FakeEngine, driver: ContainerDriver
    ) -> None:
        created = engine.held["POST create"] = threading.Event()
        driver.start(a_launch())
        until(lambda: engine.asked("POST create"))
        driver.signal(KEY, "TERM")
        assert driver.look() == {KEY: None}, "its container may be there"
        created.set()

        assert ended(driver, KEY).signal == signals.SIGTERM
        assert not engine.asked("POST start")
        assert {} == engine.containers

    def test_a_container_that_has_just_started_gets_the_signal(
        self, engine: FakeEngine, driver: ContainerDriver
    ) -> None:
        started = engine.held["POST start"] = threading.Event()
        driver.start(a_launch())
        until(lambda: engine.asked("POST start"))
        driver.signal(KEY, "TERM")
        started.set()
        ended(driver, KEY)

        assert 1 == engine.asked("POST kill")

    def test_one_that_waits_for_others_ends_at_once(
        self, engine: FakeEngine, driver: ContainerDriver
    ) -> None:
        for job in range(STARTS_AT_ONCE_MAX):
            driver.start(a_launch(TaskKey(10 + job, 0, 1_000), image=AWAY))
        until(lambda: STARTS_AT_ONCE_MAX == engine.asked("POST images create"))
        driver.start(a_launch())
        driver.signal(KEY, "KILL")

        assert ended(driver, KEY).cause is ExitCause.SIGNALLED
        engine.over.set()
        engine.pull_goes_on.set()
        until(lambda: not starters())
        assert str(KEY) not in {it["Labels"]["omega.task"] for it in engine.containers.values()}

    def test_it_may_be_started_again_while_the_pull_goes_on(
        self, engine: FakeEngine, driver: ContainerDriver
    ) -> None:
        driver.start(a_launch(image=AWAY))
        until(lambda: engine.asked("POST images create"))
        driver.signal(KEY, "KILL")
        ended(driver, KEY)
        driver.start(a_launch(restarts=1))
        running(driver, engine)
        engine.over.set()
        engine.pull_goes_on.set()
        until(lambda: not starters())

        assert 1 == len(engine.containers)

    def test_an_end_of_the_driver_waits_for_no_pull(
        self, engine: FakeEngine, tmp_path: Path, said: list[str]
    ) -> None:
        driver = opened(engine, tmp_path, said)
        engine.is_pull_silent = True
        driver.start(a_launch(image=AWAY))
        until(engine.silent.is_set)
        driver.close()

        assert engine.silent.is_set()
        assert [True] == [it.daemon for it in starters()], "one would hold up the process's end"
        engine.over.set()
        engine.pull_goes_on.set()
        until(lambda: not starters())
        assert not engine.asked("POST create")

    def test_an_end_of_the_driver_waits_for_a_container_that_is_made(
        self, engine: FakeEngine, tmp_path: Path, said: list[str]
    ) -> None:
        driver = opened(engine, tmp_path, said)
        created = engine.held["POST create"] = threading.Event()
        driver.start(a_launch())
        until(lambda: engine.asked("POST create"))
        closing = threading.Thread(target=driver.close)
        closing.start()
        until(lambda: driver._starting[KEY].signal)  # noqa: SLF001
        assert closing.is_alive()
        created.set()
        closing.join()

        assert {} == engine.containers


class TestSeveralContainers:
    """Several containers of one task."""

    @pytest.mark.parametrize("order", [(0, 1), (1, 0)])
    def test_the_latest_start_counts_and_the_others_are_removed(
        self, engine: FakeEngine, tmp_path: Path, said: list[str], order: tuple[int, int]
    ) -> None:
        made = {nth: engine.add(labels(restarts=nth), "running") for nth in order}
        engine.end(made[1])
        driver = opened(engine, tmp_path, said)

        assert {KEY: Exit(cause=ExitCause.EXITED, code=0, restarts=1)} == driver.look()
        assert [made[1]] == list(engine.containers)
        both = f"of {made[0]}\nof {made[1]}\n".encode()
        assert (len(both), both) == stdout(driver)
        driver.close()

    def test_of_one_start_the_younger_counts(
        self, engine: FakeEngine, tmp_path: Path, said: list[str]
    ) -> None:
        young = engine.add(labels(), "running", created=2)
        engine.add(labels(), "running", created=1)
        opened(engine, tmp_path, said).close()

        assert [young] == list(engine.containers)

    def test_one_that_cannot_be_removed_is_ended_and_removed_before_the_task_is_forgotten(
        self, engine: FakeEngine, tmp_path: Path, said: list[str]
    ) -> None:
        engine.refused.add("DELETE remove")
        old = engine.add(labels(), "running")
        young = engine.add(labels(restarts=1), "exited")
        driver = opened(engine, tmp_path, said)
        assert "exited" == engine.containers[old]["State"]
        driver.forget(KEY)
        assert {old, young} == set(engine.containers)
        assert KEY in driver.look()
        looks = engine.asked("GET list")
        until(lambda: driver.look() and engine.asked("GET list") == looks + 3)
        assert ["a container could not be removed: DELETE remove is refused"] == said

        engine.refused.clear()
        driver.forget(KEY)
        assert {} == engine.containers
        assert {} == driver.look()
        both = f"of {old}\nof {young}\n".encode()
        assert (len(both), both) == stdout(driver)
        driver.close()

    def test_a_start_removes_all_earlier_ones(
        self, engine: FakeEngine, driver: ContainerDriver
    ) -> None:
        # The engine made them although it did not answer in time: the driver knows none of them.
        made = [engine.add(labels(), state) for state in ("created", "running")]
        other = engine.add({**labels(), "omega.agent": "another"}, "running")
        driver.start(a_launch(restarts=1))
        new = running(driver, engine)

        assert {other, new} == set(engine.containers)
        three = "".join(f"of {name}\n" for name in (*made, new)).encode()
        assert (len(three), three) == stdout(driver)

    def test_a_task_whose_container_others_removed_is_forgotten(
        self, engine: FakeEngine, driver: ContainerDriver
    ) -> None:
        driver.start(a_launch())
        del engine.containers[running(driver, engine)]
        assert ended(driver, KEY).cause is ExitCause.LOST
        driver.forget(KEY)

        assert {} == driver.look()


class TestOutputs:
    """What is kept of containers that are gone."""

    def test_one_container_is_saved_once(
        self, engine: FakeEngine, tmp_path: Path, said: list[str]
    ) -> None:
        driver = opened(engine, tmp_path, said)
        run_to_end(driver, engine, a_launch())
        written = stdout(driver)
        assert written[0]
        engine.refused.add("DELETE remove")
        driver.forget(KEY)
        driver.forget(KEY)
        assert written == stdout(driver)
        driver.close()
        again = opened(engine, tmp_path, said)
        assert written == stdout(again)
        again.forget(KEY)
        assert written == stdout(again)
        engine.refused.clear()
        again.forget(KEY)

        assert {} == engine.containers
        assert written == stdout(again)
        again.close()

    def test_of_forgotten_tasks_the_last_are_kept(
        self, engine: FakeEngine, tmp_path: Path, said: list[str]
    ) -> None:
        driver = opened(engine, tmp_path, said, outputs_max=2)
        for key in (KEY, OTHER, THIRD):
            run_to_end(driver, engine, a_launch(key))
        for key in (KEY, OTHER, THIRD):
            driver.forget(key)

        assert [False, True, True] == [stdout(driver, key)[0] > 0 for key in (KEY, OTHER, THIRD)]
        assert 2 == len(list((tmp_path / "containers").iterdir()))
        driver.close()

    def test_those_of_an_earlier_driver_count(
        self, engine: FakeEngine, tmp_path: Path, said: list[str]
    ) -> None:
        first = opened(engine, tmp_path, said)
        for key in (KEY, OTHER):
            run_to_end(first, engine, a_launch(key))
            first.forget(key)
        run_to_end(first, engine, a_launch(THIRD))
        run_to_end(first, engine, a_launch(THIRD, restarts=1))
        first.close()
        for at, key in enumerate((THIRD, OTHER, KEY)):
            os.utime(tmp_path / "containers" / str(key), (at, at))
        second = opened(engine, tmp_path, said, outputs_max=2)
        assert stdout(second, OTHER)[0] > 0
        second.forget(THIRD)

        kept = [stdout(second, key)[0] > 0 for key in (KEY, OTHER, THIRD)]
        assert [True, False, True] == kept
        second.close()

    def test_one_that_the_engine_cannot_give_holds_up_no_removal(
        self,
        engine: FakeEngine,
        driver: ContainerDriver,
        said: list[str],
    ) -> None:
        run_to_end(driver, engine, a_launch())
        engine.refused.add("GET logs")
        driver.forget(KEY)
        assert {} == engine.containers
        (line,) = said
        assert "the output of a container of task 1-0-1000 could not be kept" in line

        driver.start(a_launch(OTHER))
        engine.end(running(driver, engine, OTHER))
        ended(driver, OTHER)
        driver.start(a_launch(OTHER, restarts=1))
        running(driver, engine, OTHER)
        assert driver.look() == {OTHER: None}

    def test_what_an_earlier_version_saved_is_counted(
        self, engine: FakeEngine, driver: ContainerDriver, tmp_path: Path
    ) -> None:
        folder = tmp_path / "containers" / str(KEY)
        folder.mkdir()
        OutputFile(folder / "stdout").replace(5_000, b"no header\n1 2\n")
        assert (5_000, b"no header\n1 2\n") == stdout(driver)
        run_to_end(driver, engine, a_launch())
        written = stdout(driver)
        assert (5_006, b"no header\n1 2\nof c0\n") == written
        driver.forget(KEY)
        assert written == stdout(driver)
        assert {"stdout", "stderr"} == set(os.listdir(folder))


def test_a_start_and_an_end_make_no_more_calls_than_they_need(
    engine: FakeEngine, driver: ContainerDriver
) -> None:
    before = len(engine.calls)
    driver.start(a_launch())
    until(lambda: not starters())
    assert ["GET list", "GET images json", "POST create", "POST start"] == engine.calls[before:]

    engine.end(next(iter(engine.containers)))
    ended(driver, KEY)
    before = len(engine.calls)
    driver.forget(KEY)
    logs = ["GET logs", "GET json"]  # the SDK asks whether the container has a terminal
    assert [*logs, *logs, "DELETE remove"] == engine.calls[before:]
