"""The container driver with an engine that is late or broken, and the watchdog's kill."""

import threading
from pathlib import Path

import pytest

from omega.model.exits import Exit, ExitCause
from omega.nodes.agent import container_engine
from omega.nodes.agent.container_driver import ContainerDriver, kill_containers
from omega.nodes.agent.container_engine import EngineError
from tests.agent.waiting import ended, until
from tests.unit.nodes.agent.container_steps import (
    AGENT,
    KEY,
    OTHER,
    THIRD,
    a_launch,
    labels,
    opened,
    run_to_end,
    running,
)
from tests.unit.nodes.agent.fake_engine import FakeEngine


class TestHangingEngines:
    """What an engine that is late or broken does to one task is no failure of it, nor others'."""

    @pytest.mark.parametrize("call", ["POST create", "GET list"])
    def test_a_start_that_gets_no_answer_is_lost(
        self,
        engine: FakeEngine,
        driver: ContainerDriver,
        monkeypatch: pytest.MonkeyPatch,
        call: str,
    ) -> None:
        engine.held[call] = threading.Event()
        monkeypatch.setattr(container_engine, "TIMEOUT_S", 0.5)
        driver.start(a_launch(restarts=2))
        start = driver._starting[KEY]  # noqa: SLF001
        until(start.done.is_set)
        assert start.refused is not None
        assert (ExitCause.LOST, 2) == (start.refused.cause, start.refused.restarts)

    def test_one_that_may_have_started_and_cannot_be_removed_is_looked_at(
        self, engine: FakeEngine, driver: ContainerDriver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        engine.held["POST start"] = threading.Event()
        engine.refused.add("DELETE remove")
        monkeypatch.setattr(container_engine, "TIMEOUT_S", 0.5)
        driver.start(a_launch())
        start = driver._starting[KEY]  # noqa: SLF001
        until(start.done.is_set)
        (container,) = engine.containers.values()
        container["State"] = "running"

        until(lambda: not driver.look()[KEY] and not driver._starting)  # noqa: SLF001
        engine.end(container["Id"])
        assert Exit(cause=ExitCause.EXITED, code=0) == ended(driver, KEY)

    def test_one_that_cannot_be_inspected_hides_no_other(
        self, engine: FakeEngine, driver: ContainerDriver, said: list[str]
    ) -> None:
        driver.start(a_launch())
        engine.end(running(driver, engine))
        engine.add(labels(OTHER), "running")
        engine.refused.add("GET json")
        until(lambda: OTHER in driver.look())
        assert {KEY: None, OTHER: None} == driver.look()
        looks = engine.asked("GET json")
        until(lambda: driver.look() and engine.asked("GET json") > looks + 2)
        (line,) = said
        assert "the container of task 1-0-1000 cannot be looked at" in line
        engine.refused.clear()
        assert Exit(cause=ExitCause.EXITED, code=0) == ended(driver, KEY)

    def test_a_signal_waits_for_a_container_that_is_not_listed_yet(
        self, engine: FakeEngine, driver: ContainerDriver
    ) -> None:
        driver.start(a_launch())
        start = driver._starting[KEY]  # noqa: SLF001
        until(start.done.is_set)
        engine.refused.add("GET list")
        until(lambda: driver.look() and not driver._starting)  # noqa: SLF001
        driver.signal(KEY, "TERM")
        assert not engine.asked("POST kill")
        engine.refused.clear()
        assert ended(driver, KEY).is_success
        assert 1 == engine.asked("POST kill")


def test_who_kills_asks_for_nothing_else(engine: FakeEngine) -> None:
    """An agent's lease is over: there is no time for outputs and old containers."""
    for key, state in ((KEY, "running"), (KEY, "running"), (OTHER, "exited"), (THIRD, "paused")):
        engine.add(labels(key), state)
    engine.add({**labels(), "omega.agent": "another"}, "running")
    assert {KEY, THIRD} == kill_containers(engine.address, AGENT)
    assert ["GET list", *["POST kill"] * 3] == engine.calls
    assert set() == kill_containers(engine.address, AGENT)


def test_who_kills_says_so_if_one_could_not_be_killed(engine: FakeEngine) -> None:
    engine.add(labels(), "paused")
    engine.add(labels(OTHER), "running")
    engine.refused.add("POST kill")
    with pytest.raises(EngineError, match="POST kill is refused"):
        kill_containers(engine.address, AGENT)
    assert 2 == engine.asked("POST kill"), "all were tried"


def test_an_output_that_comes_too_late_is_asked_for_once_more(
    engine: FakeEngine, tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container_engine, "TIMEOUT_S", 0.5)
    driver = opened(engine, tmp_path, said)
    run_to_end(driver, engine, a_launch())
    engine.are_logs_silent = True
    driver.forget(KEY)
    assert 1 == len(engine.containers)
    assert [True, False] == ["not be removed" in said[0], "not be kept" in said[0]]
    driver.forget(KEY)
    assert {} == engine.containers
    assert "not be kept" in said[-1]
    driver.close()


def test_a_start_that_is_lost_is_said(
    engine: FakeEngine, driver: ContainerDriver, said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.held["POST create"] = threading.Event()
    monkeypatch.setattr(container_engine, "TIMEOUT_S", 0.5)
    driver.start(a_launch())
    assert ended(driver, KEY).cause is ExitCause.LOST
    why = "the container was not created: the engine sent nothing for 0.5 s"
    assert [f"task {KEY} is started again: {why}"] == said
