"""What the options of an agent make of its folder."""

import threading
from pathlib import Path
from uuid import UUID

import numpy as np
import pytest

from omega.cli.node.run import AgentPlan, OnSilence
from omega.clock import ManualClock
from omega.config import Settings
from omega.errors import BadInput, NotAllowed
from omega.framework.retry import Retry
from omega.model.resources import KINDS
from omega.nodes.agent.live import keep_tasks
from omega.nodes.agent.machine_lease import Deadline, holder_of
from omega.nodes.agent.own_machine import OwnMachine
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_cell


def test_who_keeps_tasks_has_no_lease(tmp_path: Path) -> None:
    assert AgentPlan(on_silence=OnSilence.KEEP).machine_lease(tmp_path, 0.0) is None


def test_who_keeps_tasks_cannot_end_them() -> None:
    with pytest.raises(BadInput, match="--end-tasks: it contradicts --on-silence keep"):
        AgentPlan(on_silence=OnSilence.KEEP, end_tasks=True).refuse_contradictions()
    AgentPlan(end_tasks=True).refuse_contradictions()
    AgentPlan(on_silence=OnSilence.KEEP).refuse_contradictions()


@pytest.mark.parametrize("is_held_elsewhere", [False, True])
def test_the_watchdog_of_an_earlier_lease_is_at_work_until_the_machine_is_free(
    tmp_path: Path,
    is_held_elsewhere: bool,  # noqa: FBT001 - both
) -> None:
    clock = ManualClock()
    store = MemoryStore(clock)
    store.add_machines(a_cell(1))
    holder = UUID(int=2) if is_held_elsewhere else holder_of(tmp_path, UUID(int=1))
    assert store.hold_machine(1, holder, lease_ms=1_000)
    Deadline(tmp_path).write(1.0)
    stop = threading.Event()
    retry = Retry(clock, lambda _: None, Settings(), np.random.default_rng(0), stop)
    machine = OwnMachine(id=1, name="m1", capacity=np.zeros(KINDS, dtype=np.int64))

    if is_held_elsewhere:
        with pytest.raises(NotAllowed, match="another agent holds the machine m1"):
            keep_tasks(store, retry, machine, tmp_path)
        assert 1.0 == Deadline(tmp_path).read()
    else:
        keep_tasks(store, retry, machine, tmp_path)
        assert Deadline(tmp_path).read() is None
        clock.advance(2)
        assert [] == store.expire_machines()


def test_the_folder_is_the_same_wherever_the_agent_is_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is on the containers, by which the next agent finds them."""
    monkeypatch.chdir(tmp_path)
    assert tmp_path / "state" == AgentPlan(state_dir=Path("state")).folder(Path("data"))
    assert tmp_path / "data/agents/a_b" == AgentPlan(name="a/b").folder(Path("data"))
