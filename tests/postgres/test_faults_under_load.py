"""Faults in the middle of a race: whatever was answered in the end has a serial order all the same.

A worker that had no answer asks again, under the same id, until it has one: so every transaction of
these races was acknowledged, and none may be lost or applied twice.
"""

import signal
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import psycopg
import pytest

from omega.clock import RealClock
from omega.errors import StoreUnavailable
from omega.store.embedded import NAME, EmbeddedPostgres
from omega.store.postgres.schema import migrate
from omega.store.postgres.store import PostgresStore
from omega.store.wheel import WheelServer
from omega.testing.faults import FaultyStore, Losses, Rates
from omega.testing.proxy import CUT, SWALLOWED, NetworkRates, Proxy
from omega.testing.races import MODES, hot_cell
from omega.testing.rivals import Rivals, committed
from omega.testing.serial import serial_order
from tests.fixtures.at_work import wait_until
from tests.fixtures.doses import Dose, Row, Tallier, is_long
from tests.fixtures.networks import connection_to, through

RIVALS = 3
LAP = 180
"""Transactions of one race."""
RIVAL = "omega rival"

Meanwhile = Callable[[Callable[[], bool]], object]
"""What is done to a race until it is over."""


@pytest.fixture(autouse=True)
def only_in_the_long_dose(pytestconfig: pytest.Config) -> None:
    """Leave these to `make prove`: the record of a race cannot tell yet what a call did whose
    reply was lost, where the call has no id of its own (ends of tasks), and the checker then
    refuses histories that are sound.
    """
    if not is_long(pytestconfig):
        pytest.skip("in make prove only")


def open_store(url: str, rival: int) -> PostgresStore:
    return PostgresStore(url, application_name=f"{RIVAL} {rival}")


def open_lossy_store(url: str, rates: Rates, rival: int) -> FaultyStore:
    """A store that loses calls inside the rival's own process."""
    losses = Losses(rates, np.random.default_rng(rival), RealClock())
    return FaultyStore(open_store(url, rival), losses)


def nothing(_is_over: Callable[[], bool]) -> None:
    """Let them race: the faults are on their way."""


def race_through(
    rivals: Rivals,
    store: PostgresStore,
    row: Row,
    *,
    wanted: int,
    injected: Callable[[], int],
    meanwhile: Meanwhile = nothing,
) -> None:
    """Race, mode after mode, until so much has gone wrong; explain every race."""
    lap = 0
    while row.tried < wanted:
        race = rivals.begin(store, MODES[lap % len(MODES)], seed=lap, transactions=LAP)
        meanwhile(rivals.are_done)
        history = race.finish()
        row.tried = injected()
        serial_order(history)
        assert [] == list(store.verify())
        assert committed([history]) > LAP // 2, "they ran out of work"
        row.survived = row.tried
        lap += 1


def test_calls_that_are_lost(
    database_url: str, store: PostgresStore, dose: Dose, tally: Tallier
) -> None:
    hot_cell(store)
    rates = Rates(lose_request=0.03, lose_reply=0.03, delay=0.03, delay_s_max=0.02)
    with (
        tally("requests and replies lost in the process") as row,
        Rivals(partial(open_lossy_store, database_url, rates), RIVALS) as rivals,
    ):
        race_through(
            rivals, store, row, wanted=dose(short=8, long=400), injected=lambda: rivals.faults
        )


def test_a_network_that_loses_requests_and_replies(
    database_url: str, store: PostgresStore, dose: Dose, tally: Tallier
) -> None:
    hot_cell(store)
    rates = NetworkRates(cut_request=0.02, swallow_reply=0.02, delay=0.02, delay_s_max=0.02)
    with (
        tally("requests cut and replies swallowed by the network") as row,
        Proxy(connection_to(database_url), rates=rates, chance=np.random.default_rng(1)) as proxy,
        Rivals(partial(open_store, through(proxy, database_url)), RIVALS) as rivals,
    ):
        race_through(
            rivals,
            store,
            row,
            wanted=dose(short=8, long=400),
            injected=lambda: proxy.counts[CUT] + proxy.counts[SWALLOWED],
        )


def test_backends_that_are_terminated(
    database_url: str, store: PostgresStore, dose: Dose, tally: Tallier
) -> None:
    hot_cell(store)
    chance = np.random.default_rng(2)
    terminated = 0

    with (
        tally("pg_terminate_backend of a rival") as row,
        psycopg.connect(database_url, autocommit=True) as console,
        Rivals(partial(open_store, database_url), RIVALS) as rivals,
    ):

        def terminate_now_and_then(is_over: Callable[[], bool]) -> None:
            wait_until(lambda: terminate_one() and is_over(), "the race to end")

        def terminate_one() -> bool:
            nonlocal terminated
            if chance.random() < 0.3:
                found = console.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND application_name = %s",
                    (f"{RIVAL} {chance.integers(RIVALS)}",),
                ).fetchall()
                terminated += found.count((True,))
            return True

        race_through(
            rivals,
            store,
            row,
            wanted=dose(short=8, long=300),
            injected=lambda: terminated,
            meanwhile=terminate_now_and_then,
        )


@pytest.mark.postgres
def test_a_server_that_crashes_and_comes_back(tmp_path: Path, dose: Dose, tally: Tallier) -> None:
    """A private one, with fsync on."""
    with EmbeddedPostgres(tmp_path) as postgres:
        migrate(postgres.url)
        server = WheelServer(tmp_path.resolve() / NAME, RealClock())
        chance = np.random.default_rng(3)
        crashes = 0
        with (
            tally("immediate shutdown of Postgres under load") as row,
            closing(PostgresStore(postgres.url)) as store,
            Rivals(partial(open_store, postgres.url), RIVALS) as rivals,
        ):
            hot_cell(store)

            def crash(is_over: Callable[[], bool]) -> None:
                nonlocal crashes
                # In the middle of it, wherever that is.
                until = commits(store) + int(chance.integers(5, LAP // 4))
                wait_until(lambda: commits(store) >= until, "the race to get going")
                crashes += not is_over()
                crash_now(tmp_path / NAME)
                server.start()
                wait_until(lambda: answers(store), "the server to be back")

            race_through(
                rivals,
                store,
                row,
                wanted=dose(short=1, long=20),
                injected=lambda: crashes,
                meanwhile=crash,
            )


def crash_now(server: Path) -> None:
    """Shut a server down at once, as `pg_ctl -m immediate` does; it will have to recover."""
    postmaster = psutil.Process(int((server / "postmaster.pid").read_text().split()[0]))
    postmaster.send_signal(signal.SIGQUIT)
    postmaster.wait()


def commits(store: PostgresStore) -> int:
    """Count the grants on machines so far."""
    return int(store.snapshot().rows.sequence.sum())


def answers(store: PostgresStore) -> bool:
    try:
        return store.now_ms() > 0
    except StoreUnavailable:
        return False
