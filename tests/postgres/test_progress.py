"""Jobs in steps on a real server: interrupted and taken up again, with replies lost on the way."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from omega.errors import StoreUnavailable
from omega.events import StoreCallFailed, TasksEnded
from omega.lifecycle.states import State
from omega.store.postgres.assignment import assign_machines
from omega.store.postgres.store import PostgresStore
from omega.testing.faults import FaultyStore
from omega.testing.steps import status_of
from tests.fixtures.gangs import K80, V100, V100_TOO, GangCell, a_gang, rates_of
from tests.fixtures.logins import Login, user_of


class LosesEveryOtherReply:
    """Makes each call, and forgets to answer the first, the third and so on of a kind."""

    def __init__(self) -> None:
        self.lost: dict[str, bool] = {}

    def __call__(self, name: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - any call's
        answer = call()
        self.lost[name] = not self.lost.get(name, False)
        if self.lost[name]:
            raise StoreUnavailable("the reply was lost")
        return answer


@pytest.fixture
def cell(store: PostgresStore) -> GangCell:
    return GangCell(store)


def test_two_runs_with_an_interruption_between_them_make_a_job(
    cell: GangCell, store: PostgresStore, tmp_path: Path
) -> None:
    nodes = cell.nodes(rates_of(tmp_path, restart_s=30))
    nodes.step(store.now_ms())
    job = cell.run(a_gang(steps=500), V100, V100)
    first_ms = cell.since(job)
    nodes.step(first_ms + 10_000)
    assert (400, 10_000) == cell.made(job)
    again = cell.interrupt(job, V100)
    assert -1 == cell.since(job)
    cell.place(again, K80, K80)
    second_ms = cell.since(job)

    assert [0, 0, 2] == [nodes.step(second_ms + after) for after in (29_999, 39_999, 40_000)]
    assert (500, 50_000) == cell.made(job)
    assert State.SUCCEEDED is status_of(store, job).state
    assert [TasksEnded(2)] == cell.events
    assert [] == list(store.verify())


def test_lost_replies_do_no_harm(cell: GangCell, store: PostgresStore, tmp_path: Path) -> None:
    nodes = cell.nodes(rates_of(tmp_path), store=FaultyStore(store, LosesEveryOtherReply()))
    nodes.step(store.now_ms())
    job = cell.run(a_gang(steps=400), V100, V100)
    since_ms = cell.since(job)

    ended = [nodes.step(since_ms + after) for after in (0, 5_000, 9_999, 10_000)]

    assert [0, 0, 0, 2] == ended
    assert (400, 10_000) == cell.made(job)
    assert State.SUCCEEDED is status_of(store, job).state
    faltered = {event.what for event in cell.events if isinstance(event, StoreCallFailed)}
    assert {"progress", "allocations_of", "snapshot", "report_progress", "end_tasks"} <= faltered


def test_nodes_of_a_login_step_what_runs_on_their_machines_alone(
    cell: GangCell, store: PostgresStore, login: Login, database_url: str, tmp_path: Path
) -> None:
    url = login("warden", "omega_node")
    assign_machines(database_url, user_of(url), ["machine-1"])
    with closing(PostgresStore(url)) as own:
        nodes = cell.nodes(rates_of(tmp_path), store=own)
        nodes.step(store.now_ms())
        across = cell.run(a_gang(steps=10), V100_TOO, K80)
        mine = cell.run(a_gang(steps=400), V100, V100)
        since_ms = cell.since(mine)

        assert [0, 2] == [nodes.step(since_ms + after) for after in (9_999, 10_000)]
        assert (0, 0) == cell.made(across)
        assert (400, 10_000) == cell.made(mine)

        assign_machines(database_url, user_of(url), None)
        assert 2 == nodes.step(since_ms + 20_000)
        assert State.SUCCEEDED is status_of(store, across).state
