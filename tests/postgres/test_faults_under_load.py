"""Calls, connections and transactions that fail in the middle of a race."""

from collections.abc import Callable
from functools import partial

import numpy as np
import psycopg

from omega.clock import RealClock
from omega.store.postgres.store import PostgresStore
from omega.testing.faults import FaultyStore, Losses, Rates
from omega.testing.proxy import ABANDONED, CUT, SWALLOWED, NetworkRates, Proxy
from omega.testing.races import hot_cell
from omega.testing.rivals import Rivals
from tests.fixtures.at_work import wait_until
from tests.fixtures.doses import Dose, Tallier
from tests.fixtures.networks import connection_to, through
from tests.fixtures.rivals import RIVAL, RIVALS, open_store
from tests.fixtures.under_load import LAP, race_through


def open_lossy_store(url: str, rates: Rates, rival: int) -> FaultyStore:
    """A store that loses calls inside the rival's own process."""
    losses = Losses(rates, np.random.default_rng(rival), RealClock())
    return FaultyStore(open_store(url, rival), losses)


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
            rivals, store, row, wanted=dose(short=5, long=200), injected=lambda: rivals.faults
        )


def test_a_network_that_loses_requests_and_replies(
    database_url: str, store: PostgresStore, dose: Dose, tally: Tallier
) -> None:
    hot_cell(store)
    rates = NetworkRates(
        cut_request=0.015, swallow_reply=0.015, abandon_request=0.015, delay=0.02, delay_s_max=0.02
    )
    with (
        tally("requests cut or abandoned, replies swallowed by the network") as row,
        Proxy(connection_to(database_url), rates=rates, rng=np.random.default_rng(1)) as proxy,
        Rivals(partial(open_store, through(proxy, database_url)), RIVALS) as rivals,
    ):
        race_through(
            rivals,
            store,
            row,
            wanted=dose(short=5, long=300),
            injected=lambda: sum(proxy.counts[fault] for fault in (CUT, SWALLOWED, ABANDONED)),
            settle=proxy.wait_for_the_abandoned,
        )


def test_backends_that_are_terminated(
    database_url: str, store: PostgresStore, dose: Dose, tally: Tallier
) -> None:
    hot_cell(store)
    rng = np.random.default_rng(2)
    terminated = 0

    with (
        tally("pg_terminate_backend of a rival") as row,
        psycopg.connect(database_url, autocommit=True) as console,
        Rivals(partial(open_store, database_url), RIVALS) as rivals,
    ):

        def terminate_now_and_then(is_over: Callable[[], bool]) -> None:
            most = terminated + LAP // 4  # so that a race ends where to connect takes long

            def it_is_over() -> bool:
                if terminated < most:
                    terminate_perhaps()
                return is_over()

            wait_until(it_is_over, "the race to end")

        def terminate_perhaps() -> None:
            nonlocal terminated
            if rng.random() < 0.3:
                found = console.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND application_name = %s",
                    (f"{RIVAL} {rng.integers(RIVALS)}",),
                ).fetchall()
                terminated += found.count((True,))

        race_through(
            rivals,
            store,
            row,
            wanted=dose(short=5, long=200),
            injected=lambda: terminated,
            meanwhile=terminate_now_and_then,
        )
