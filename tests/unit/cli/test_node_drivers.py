"""Which engine an agent is to work with."""

from pathlib import Path

import pytest

from omega.cli.node.drivers import engine_to_use, kill_containers
from omega.errors import BadInput, SettingsError
from tests.agent.agent_processes import note_container

ENGINE, OTHER = "unix:///engine", "unix:///other"


@pytest.fixture(autouse=True)
def found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have another engine than the recorded one answer where engines are looked for."""
    monkeypatch.setattr("omega.cli.node.drivers.find_engine", lambda: OTHER)


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.mark.parametrize(
    ("containers", "engine"), [("auto", OTHER), (OTHER, OTHER), ("none", None)]
)
def test_without_containers_it_is_what_the_option_says(
    tmp_path: Path, said: list[str], containers: str, engine: str | None
) -> None:
    assert engine == engine_to_use(tmp_path, containers, said.append)
    assert [] == said


@pytest.mark.parametrize("containers", ["auto", ENGINE])
def test_the_engine_of_containers_that_run_is_used_again(
    tmp_path: Path, said: list[str], containers: str
) -> None:
    note_container(tmp_path, ENGINE)
    assert ENGINE == engine_to_use(tmp_path, containers, said.append)
    assert [] == said


def test_another_engine_is_refused_while_containers_may_run(
    tmp_path: Path, said: list[str]
) -> None:
    note_container(tmp_path, ENGINE)
    with pytest.raises(BadInput, match=rf"--containers.*{OTHER}.*{ENGINE}"):
        engine_to_use(tmp_path, OTHER, said.append)


def test_a_warning_tells_of_containers_that_are_given_up(tmp_path: Path, said: list[str]) -> None:
    note_container(tmp_path, ENGINE)
    assert engine_to_use(tmp_path, "none", said.append) is None
    assert [f"containers of tasks may run on in the engine '{ENGINE}': they are given up"] == said


def test_a_link_to_the_socket_is_the_same_engine(tmp_path: Path, said: list[str]) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "var").symlink_to(tmp_path / "run")
    note_container(tmp_path, f"unix://{tmp_path}/run/docker.sock")
    linked = f"unix://{tmp_path}/var/docker.sock"
    assert linked == engine_to_use(tmp_path, linked, said.append)


def test_an_engine_that_is_away_keeps_no_other_from_being_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also the one of the option: tasks of an agent of an earlier version are on no record."""
    note_container(tmp_path, ENGINE)
    asked: list[str] = []

    def away(engine: str, agent: str) -> None:
        asked.append(engine)
        raise SettingsError([f"{engine} is away"])

    monkeypatch.setattr("omega.nodes.agent.engine_search.kill_containers", away)
    with pytest.raises(SettingsError, match=f"{ENGINE} is away"):
        kill_containers(tmp_path, "auto")
    assert [ENGINE, OTHER] == asked
