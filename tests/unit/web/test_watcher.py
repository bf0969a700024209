"""What the one reader behind the page reads, and what it tells of it."""

import json
from typing import Any

import numpy as np
import pytest

from omega.clock import ManualClock
from omega.errors import StoreUnavailable
from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_cell, a_spec
from omega.testing.pass_through import PassThrough
from omega.testing.steps import a_running_job, add_a_cell, end
from omega.web.pace import REST, Paced
from omega.web.watcher import Watcher

LINE = "the database is away, and the page goes on without it: gone fishing"


class Counted(PassThrough):
    """A store that counts calls, and may be away."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.calls: list[str] = []
        self.is_away = False

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - of any method
        if name.startswith("_") or name in {"calls", "is_away"}:
            return super().__getattribute__(name)
        method = super().__getattribute__(name)

        def call(*arguments: object) -> object:
            if self.is_away:
                raise StoreUnavailable("gone fishing")
            self.calls.append(name)
            return method(*arguments)

        return call


class Watched:
    """A watcher of a memory store, and what it has published."""

    def __init__(self, machines: int = 3) -> None:
        self.clock = ManualClock(now=1_000.0)
        self.memory = MemoryStore(self.clock)
        self.machines = add_a_cell(self.memory, machines) if machines else []
        self.store = Counted(self.memory)
        self.log: list[str] = []
        self.chunks: list[bytes] = []
        self.watcher = Watcher(
            self.store, self.clock, tell=self.log.append, publish=self.chunks.append
        )

    def look(self) -> dict[str, Any]:
        """Look a second later; return the events by name."""
        self.clock.advance(1.0)
        self.chunks.clear()
        self.store.calls.clear()
        self.watcher.look()
        (chunk,) = self.chunks
        told = [each.split("\n") for each in chunk.decode().split("\n\n") if each]
        return {
            name.removeprefix("event: "): json.loads(data.removeprefix("data: "))
            for name, data in told
        }

    def state(self) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(self.watcher.state())
        return state


def test_the_first_look_tells_everything() -> None:
    watched = Watched()

    told = watched.look()

    assert 3 == told["map"]["machines"]
    parts = {"cell", "schedulers", "queue", "quotas", "conflicts", "point", "away"}
    assert parts == set(told["state"])
    assert parts | {"history", "map"} == set(watched.state())
    assert 3 == told["state"]["cell"]["machines"]


def test_a_later_look_tells_what_is_new() -> None:
    watched = Watched()
    watched.look()
    a_running_job(watched.memory, a_spec(), watched.machines[1:2], cpu_milli=2_000)

    told = watched.look()

    assert (1, 1) == (told["rows"]["map"], told["rows"]["version"])
    assert "map" not in told
    assert "quotas" not in told["state"]
    assert 2_000 == told["state"]["cell"]["used"]["cpu_milli"]
    assert 1 == told["state"]["conflicts"]["transactions"]
    assert "rows" not in watched.look()


def test_a_look_reads_each_thing_once_and_the_cell_only_in_the_first() -> None:
    watched = Watched()
    watched.look()
    first = list(watched.store.calls)
    watched.look()
    second = list(watched.store.calls)

    assert len(set(first)) == len(first)
    assert {"snapshot", "judged_since", "reports", "use", "queue", "quotas", "notices"} == set(
        first
    )
    assert {"changes_since", "judged_since", "reports", "use", "queue"} == set(second)


def test_what_is_slow_is_read_less_often() -> None:
    clock = ManualClock()
    read = 0

    def slowly() -> int:
        nonlocal read
        clock.advance(2.0)
        read += 1
        return read

    paced = Paced(clock, 1.0, 0)
    for _ in range(100):
        paced.read(slowly)
        clock.advance(1.0)

    assert paced.value == read
    assert 100 / (2.0 * REST) <= read <= 4


def test_new_machines_begin_a_new_map() -> None:
    watched = Watched()
    watched.look()
    watched.memory.add_machines(a_cell(2, first=4))

    told = watched.look()

    assert {"map": 2, "machines": 5, "names_per_block": 1_000} == told["map"]
    assert "machine-5" in watched.watcher.names(0)
    assert [] == watched.watcher.names(1)


def test_machines_are_found_by_name_and_read_by_number() -> None:
    watched = Watched()
    assert watched.watcher.machine(1) is None
    watched.look()
    watched.memory.set_state(integers([2]), MachineState.DRAINING)
    watched.look()

    one = watched.watcher.machine(2)

    assert one is not None
    assert (("machine-2",), [MachineState.DRAINING]) == (one.names, one.rows.state.tolist())
    assert watched.watcher.machine(9) is None
    assert 2 == watched.watcher.machine_named("machine-2")
    assert watched.watcher.machine_named("nobody") is None


def test_the_sums_of_machines_are_those_of_the_store() -> None:
    watched = Watched()
    job = a_running_job(watched.memory, a_spec(3), watched.machines, cpu_milli=500)
    watched.memory.set_state(integers([2]), MachineState.DOWN)
    watched.memory.set_state(integers([3]), MachineState.GONE)
    end(watched.memory, job, 0)

    use, cell = watched.memory.use(), watched.look()["state"]["cell"]

    assert dict(use.used) == cell["used"]
    assert dict(use.capacity) == cell["capacity"]
    assert {"open": 1, "down": 1, "gone": 1} == cell["machines_by_state"]
    assert use.stranded == cell["stranded"] == 2


def test_while_the_store_is_away_the_last_state_stays_and_the_log_says_so_once() -> None:
    watched = Watched()
    watched.look()
    watched.store.is_away = True

    first, second = watched.look(), watched.look()

    assert [LINE] == watched.log
    assert {"away"} == set(first["state"]) == set(second["state"])
    assert first == second
    state = watched.state()
    assert first["state"]["away"] == state["away"]
    assert 3 == state["cell"]["machines"]
    assert not watched.watcher.seen.is_up


def test_it_heals_by_itself() -> None:
    watched = Watched()
    watched.store.is_away = True
    assert watched.watcher.looked_s_ago is None
    watched.look()
    watched.store.is_away = False

    told = watched.look()

    assert [LINE, "the database is back"] == watched.log
    assert {"since": None} == told["state"]["away"] == watched.state()["away"]
    assert 0 == watched.watcher.looked_s_ago
    assert watched.watcher.seen.is_up


def test_a_fault_of_ours_is_not_taken_for_an_absence(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched()
    monkeypatch.setattr(watched.memory, "queue", lambda: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        watched.look()


def test_the_history_is_bounded() -> None:
    watched = Watched()
    for _ in range(605):
        watched.look()

    points = watched.state()["history"]

    assert 600 == len(points)
    assert np.diff([point["at_ms"] for point in points]).tolist() == [1_000] * 599


def test_a_cell_without_machines_is_shown_too() -> None:
    watched = Watched(machines=0)

    told = watched.look()

    assert 0 == told["map"]["machines"]
    assert told["state"]["point"]["use_cpu_milli"] is None
