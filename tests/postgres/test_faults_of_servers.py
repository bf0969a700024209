"""Servers that go down at once, under load: one of our own, with fsync on, that comes back."""

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from omega.errors import StoreUnavailable
from omega.lifecycle.states import State
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from omega.testing.races import hot_cell
from omega.testing.rivals import Rivals
from tests.fixtures.at_work import Plan, assert_whole, at_work, drain, wait_until
from tests.fixtures.doses import Dose, Tallier
from tests.fixtures.fragile import Fragile
from tests.fixtures.rivals import RIVALS, open_store
from tests.fixtures.under_load import LAP, race_through

pytestmark = pytest.mark.postgres

SCHEDULERS = 2
JOBS = 200
TASKS = 3


@pytest.fixture
def store(fragile: Fragile) -> Iterator[PostgresStore]:
    """An empty cell on it."""
    with closing(PostgresStore(fragile.url)) as store:
        yield store


def test_a_server_that_crashes_in_a_race(
    fragile: Fragile, store: PostgresStore, dose: Dose, tally: Tallier
) -> None:
    hot_cell(store)
    rng = np.random.default_rng(3)
    crashes = 0
    with (
        tally("immediate shutdown of Postgres in a race") as row,
        Rivals(partial(open_store, fragile.url), RIVALS) as rivals,
    ):

        def crash(is_over: Callable[[], bool]) -> None:
            nonlocal crashes
            # In the middle of it, wherever that is.
            until = commits(store) + int(rng.integers(5, LAP // 4))
            wait_until(lambda: commits(store) >= until or is_over(), "the race to get going")
            crashes += not is_over()
            fragile.crash()
            wait_until(lambda: answers(store), "the server to be back")

        race_through(
            rivals,
            store,
            row,
            wanted=dose(short=1, long=20),
            injected=lambda: crashes,
            meanwhile=crash,
        )


def test_a_server_that_crashes_while_schedulers_work(
    fragile: Fragile, store: PostgresStore, tmp_path: Path, dose: Dose, tally: Tallier
) -> None:
    """They wait for it, and go on; what they were told before it crashed holds."""
    store.add_machines(a_cell(4, cpu_milli=JOBS * TASKS * 250))
    rng = np.random.default_rng(4)
    logs = (tmp_path / str(number) for number in count())
    with tally("immediate shutdown of Postgres under schedulers") as row:
        while row.tried < dose(short=1, long=15):
            plans = [
                Plan(
                    url=fragile.url,
                    log=next(logs),
                    name=str(number),
                    thinks_s=0.005,
                )
                for number in range(SCHEDULERS)
            ]
            until = commits(store) + int(rng.integers(1, 5))
            jobs = store.submit([a_spec(TASKS) for _ in range(JOBS)])
            with at_work(*plans) as processes:
                wait_until(partial(has_seen, store, until), "them to get going")
                row.tried += not is_drained(store)  # or they were too quick for us
                fragile.crash()
                wait_until(partial(is_drained, store), "the queue to drain")
                for process in processes:
                    process.terminate()
                    process.join()
                    assert 0 == process.exitcode
            drain(fragile.url)
            assert_whole(store, jobs, *(plan.log for plan in plans))
            row.survived = row.tried
            for job in jobs:
                store.cancel(job)


def has_seen(store: PostgresStore, until: int) -> bool:
    return commits(store) >= until


def commits(store: PostgresStore) -> int:
    """Count the grants on machines so far."""
    return int(store.snapshot().rows.sequence.sum())


def answers(store: PostgresStore) -> bool:
    try:
        return store.now_ms() > 0
    except StoreUnavailable:
        return False


def is_drained(store: PostgresStore) -> bool:
    """Say whether nothing waits, if the server says so."""
    try:
        states = store.use().jobs_by_state
    except StoreUnavailable:
        return False
    return not any(map(states.get, (State.PENDING, State.PLANNING, State.PARKED)))
