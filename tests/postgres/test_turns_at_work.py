"""Schedulers that share out their reading, as processes on a real server."""

import json
import signal
from collections.abc import Iterator
from contextlib import closing

import pytest

from benchmarks.postgres.turns import held
from omega.lifecycle.states import State
from omega.store.postgres.connection import Link
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from tests.fixtures.command_line import Omega, Started

SETTINGS = {"LEASE_MS": 1_000, "HEARTBEAT_INTERVAL_MS": 200, "RESCUE_INTERVAL_MS": 100}
PARTITIONED = ("scheduler", "run", "batch", "--sync", "partitioned", "--gap", "0.2", "--replica")


@pytest.fixture(autouse=True)
def _cell(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every command work on the test's own database, with leases that end soon."""
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    for name, value in SETTINGS.items():
        monkeypatch.setenv(f"OMEGA_{name}", str(value))


@pytest.fixture
def link(database_url: str) -> Iterator[Link]:
    with closing(Link(database_url, application_name="test", statement_timeout_ms=9_000)) as link:
        yield link


def members(link: Link) -> int:
    """Return how many are counted at this moment, with a turn or without one."""
    ((count,),) = link.call("SELECT count(*) FROM omega.turn WHERE expires_at > clock_timestamp()")
    return int(count)


def turns(link: Link) -> dict[str, str]:
    """Return the turns that are leased at this moment, by replica."""
    return {replica: f"{number + 1}/{of}" for replica, (number, of) in held(link).items()}


def test_replicas_find_turns_by_themselves_and_again_when_one_dies(
    store: PostgresStore, started: Started, link: Link
) -> None:
    store.add_machines(a_cell(40))
    processes = {replica: started(*PARTITIONED, replica) for replica in "abc"}
    started.wait_for(lambda: {"1/3", "2/3", "3/3"} == set(turns(link).values()))
    died = processes.pop("a")
    died.send_signal(signal.SIGKILL)
    died.wait()
    started.processes.remove(died)

    started.wait_for(
        lambda: {"b", "c"} == set(turns(link)) and {"1/2", "2/2"} == set(turns(link).values())
    )
    (job,) = store.submit([a_spec(20)])
    started.wait_for(lambda: State.RUNNING in store.use().jobs_by_state)
    assert 20 == len(store.placements(job))
    for process in processes.values():
        process.terminate()
    assert [0, 0] == [process.wait() for process in processes.values()]
    assert 0 == members(link), "turns are given back"
    assert [] == list(store.verify())


def test_a_turn_that_another_replica_holds_is_refused_and_nothing_is_left_behind(
    store: PostgresStore, started: Started, link: Link, omega: Omega
) -> None:
    store.add_machines(a_cell(3))
    started(*PARTITIONED, "a", "--turn", "1/2")
    started.wait_for(lambda: {"a": "1/2"} == turns(link))

    ran = omega(*PARTITIONED, "b", "--turn", "1/2")

    says = "omega: field --turn: 1/2 is the turn of batch/a: give each replica its own, or `auto`\n"
    assert (2, "", says) == (ran.code, ran.out, ran.err)
    assert {"a": "1/2"} == turns(link)
    assert 1 == members(link)
    assert {"b"}.isdisjoint(report.replica for report in store.reports())


def test_turns_are_told_as_they_change(store: PostgresStore, started: Started, link: Link) -> None:
    store.add_machines(a_cell(3))
    process = started(*PARTITIONED, "a")
    started.wait_for(lambda: {"a": "1/1"} == turns(link))
    process.terminate()

    assert 0 == process.wait()
    said = [json.loads(line) for line in started.log().splitlines()]
    assert ["1/1"] == [line["message"] for line in said if line["about"] == "turn"][:1]
    assert "at work; a summary follows each minute" in {line["message"] for line in said}
