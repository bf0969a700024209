"""Servers that go down at once, under load: one of our own, with fsync on, that comes back."""

import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np
import psutil
import pytest

from omega.clock import RealClock
from omega.errors import StoreUnavailable
from omega.lifecycle.states import State
from omega.store.embedded import NAME, EmbeddedPostgres
from omega.store.packaged_postgres import PackagedPostgres
from omega.store.postgres.schema import migrate
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from omega.testing.races import hot_cell
from omega.testing.rivals import Rivals
from tests.fixtures.at_work import Plan, assert_whole, at_work, drain, wait_until
from tests.fixtures.databases import RUN
from tests.fixtures.doses import Dose, Tallier
from tests.fixtures.under_load import LAP, RIVALS, open_store, race_through

pytestmark = pytest.mark.postgres

SCHEDULERS = 2
JOBS = 200
TASKS = 3


@dataclass(frozen=True)
class Fragile:
    """A server that can be crashed."""

    url: str
    home: Path

    def crash(self) -> None:
        """Shut it down at once, as `pg_ctl -m immediate` does, and start it again.

        Nothing is written on the way down: it has to recover from its log.
        """
        postmaster = psutil.Process(int((self.home / "postmaster.pid").read_text().split()[0]))
        postmaster.send_signal(signal.SIGQUIT)
        postmaster.wait()
        PackagedPostgres(self.home, RealClock()).start()


@pytest.fixture
def fragile(pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[Fragile]:
    """A private server with empty tables."""
    # Not below `tmp_path`, which other runs of pytest may close to the server's user.
    data_dir = pytestconfig.stash[RUN] / tmp_path.name
    with EmbeddedPostgres(data_dir) as postgres:
        migrate(postgres.url)
        yield Fragile(postgres.url, data_dir / NAME)


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
