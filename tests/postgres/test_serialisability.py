"""Real processes race for a small hot cell: what they are told has a serial order, always."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import count, islice

import psycopg
import pytest

from omega.errors import InvariantBroken
from omega.model.claims import ConflictRule
from omega.model.outcomes import Verdict
from omega.store.postgres.schema import migrate
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell
from omega.testing.races import MACHINES, MODES, Mode, Unit, hot_cell
from omega.testing.recorder import History, Judged
from omega.testing.rivals import Rivals, committed
from omega.testing.serial import serial_order
from tests.fixtures.doses import Dose, Row, Tallier
from tests.fixtures.poolers import Pooler
from tests.fixtures.rivals import RIVALS, open_store
from tests.fixtures.servers import share_of

STALE_MATTERS = Mode(ConflictRule.SEQUENCE, Unit.INCREMENTAL)
LAP = 2_000
"""Transactions of one lap, at most."""


def verdicts_of(history: History) -> Counter[Verdict]:
    return Counter(
        Verdict(verdict)
        for events in history.workers
        for event in events
        if isinstance(event, Judged)
        for verdict in event.outcome.verdicts.tolist()
    )


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_every_race_has_a_serial_order(
    database_url: str, store: PostgresStore, dose: Dose, tally: Tallier, mode: Mode
) -> None:
    transactions = dose(short=60, long=share_of(102_000) // len(MODES))
    with tally(str(mode), of="concurrent transactions") as row:
        race(store, database_url, mode, transactions, row)


@pytest.mark.parametrize("mode", [STALE_MATTERS], ids=str)
def test_every_race_through_a_pooler_has_a_serial_order(
    database_url: str, store: PostgresStore, pooler: Pooler, dose: Dose, tally: Tallier, mode: Mode
) -> None:
    transactions = dose(short=60, long=share_of(17_000))
    with tally(f"{mode}, through pgbouncer", of="concurrent transactions") as row:
        race(store, pooler.through(database_url), mode, transactions, row)


def race(store: PostgresStore, url: str, mode: Mode, transactions: int, row: Row) -> None:
    """Have rivals at this URL race for so many transactions, and order each lap."""
    hot_cell(store)
    met: Counter[Verdict] = Counter()
    left, seeds = transactions, count()
    with Rivals(partial(open_store, url), RIVALS) as rivals:
        # A lap in which nobody got in another's way was no race.
        while left > 0 or not refusals_of(mode) <= met.keys():
            history = rivals.race(
                store, mode, seed=next(seeds), transactions=min(LAP, max(left, 60))
            )
            row.tried += committed([history])
            serial_order(history)
            row.survived += committed([history])
            left -= committed([history])
            met += verdicts_of(history)

    assert met.keys() <= refusals_of(mode) | {
        Verdict.ACCEPTED,
        Verdict.LEASE_LOST,
        Verdict.PRECEDENCE,
    }
    assert [] == list(store.verify())


def refusals_of(mode: Mode) -> set[Verdict]:
    """What is refused sooner or later where several race."""
    always = {Verdict.OVERCOMMIT, Verdict.ALREADY_PLACED}
    by_rule = {Verdict.STALE} if mode.rule is ConflictRule.SEQUENCE else set()
    by_unit = set() if mode.unit is Unit.INCREMENTAL else {Verdict.GANG_BROKEN}
    return always | by_rule | by_unit


PLANTED = {
    "an end whose update is lost": (
        "release_tasks",
        "m.cpu_milli_used - e.cpu_milli",
        "m.cpu_milli_used",
    ),
    "a grant that counts twice": (
        "grant_no_device",
        "m.cpu_milli_used + a.cpu_milli,",
        "m.cpu_milli_used + 2 * a.cpu_milli,",
    ),
    "a forgotten sequence": ("grant_no_device", "m.sequence + 1", "m.sequence"),
    # A commit that waited for a row has to judge it as it is by then. A little wait makes it sure
    # that another changes it.
    "machines judged as they were": (
        "grant_no_device",
        "AND NOT (_by_sequence AND (a.least_seen <> m.sequence OR a.most_seen <> m.sequence))",
        "AND NOT (_by_sequence AND EXISTS (SELECT FROM machine o WHERE o.id = a.machine"
        " AND pg_sleep(0.002) IS NOT NULL AND a.least_seen <> o.sequence))",
    ),
}
"""A function, something in it, and what a bug would have made of it."""


@contextmanager
def planted(url: str, bug: str) -> Iterator[None]:
    """A database with a bug in one of its functions."""
    function, right, wrong = PLANTED[bug]
    with psycopg.connect(url, autocommit=True) as connection:
        definition = "SELECT pg_get_functiondef(%s::regproc)"
        (text,) = connection.execute(definition, (f"omega.{function}",)).fetchone() or ("",)
        assert 1 == text.count(right), bug
        connection.execute(text.replace(right, wrong).encode())
        yield
        connection.execute(text.encode())


def test_a_bug_in_a_function_is_found_out(empty_database_url: str) -> None:
    """Under the sequence rule: whoever judges an old row grants a stale claim."""
    migrate(empty_database_url)
    with (
        closing(PostgresStore(empty_database_url)) as store,
        Rivals(partial(open_store, empty_database_url), RIVALS) as rivals,
    ):
        # Roomy machines: what would be oversold is stopped by the tables' CHECKs.
        store.add_machines(a_cell(MACHINES, cpu_milli=10_000_000, memory_mib=10_000_000))
        races = (rivals.race(store, STALE_MATTERS, seed=n, transactions=90) for n in count())
        for bug in PLANTED:
            with (
                planted(empty_database_url, bug),
                pytest.raises(InvariantBroken, match="no serial order explains the answers"),
            ):
                list(map(serial_order, islice(races, 20)))
