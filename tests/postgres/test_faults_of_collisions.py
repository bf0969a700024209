"""Deadlocks, serialization failures, lock timeouts: tried again inside the store, and counted."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import psycopg
import pytest

from omega.errors import StoreBusy, StoreUnavailable
from omega.model.exits import Exit, ExitCause, TaskExit
from omega.model.jobs import LeasedJob
from omega.store.postgres.connection import COLLISIONS_MAX
from omega.store.postgres.store import PostgresStore
from omega.testing.races import hot_cell
from omega.testing.rivals import Rivals
from tests.fixtures.doses import Dose, Tallier
from tests.fixtures.rivals import RIVALS, open_store
from tests.fixtures.under_load import race_through
from tests.fixtures.victims import Console, assert_applied_once, claim, waiting_for_a_lock

COLLISIONS = {
    "SerializationFailure": "40001",
    "DeadlockDetected": "40P01",
    "LockNotAvailable": "55P03",
}
EVERY = 19
"""Of so many transactions of a race, one is made to collide."""


def test_a_deadlock_is_tried_again_inside_the_store_and_counted(
    store: PostgresStore, victim: PostgresStore, console: Console, contended_job: LeasedJob
) -> None:
    """Nobody of ours takes locks in this order; somebody at a console might."""
    victim.now_ms()
    transaction = claim(contended_job, 0)
    console.execute("SET deadlock_timeout = '60s'")  # it is the victim who finds out
    lock = "SELECT FROM omega.machine FOR UPDATE"
    with waiting_for_a_lock(console, lock, lambda: victim.commit(transaction)) as (call, _):
        # The victim holds rows of it. Its second try has to queue behind this.
        console.execute("LOCK TABLE omega.job IN EXCLUSIVE MODE")
        console.rollback()
        outcome = call.result()

    assert 1 == victim.counts["DeadlockDetected"]
    assert_applied_once(store, outcome)


@contextmanager
def colliding(url: str, *, when: str, errors: Sequence[str]) -> Iterator[Callable[[], int]]:
    """Let transactions whose turn it is fail at their last statement; gives how many turns were."""
    with psycopg.connect(url, autocommit=True) as console:
        console.execute("CREATE SEQUENCE omega.call_number")  # which no failure takes back
        console.execute(
            f"""
            CREATE FUNCTION omega.collide() RETURNS trigger LANGUAGE plpgsql AS $$
            DECLARE
                turn bigint := nextval('omega.call_number');
            BEGIN
                IF {when} THEN
                    RAISE EXCEPTION 'planted' USING ERRCODE = TG_ARGV[turn % TG_NARGS];
                END IF;
                RETURN NULL;
            END $$
            """.encode()
        )
        for table in ("transaction", "ended_task"):
            console.execute(
                f"CREATE TRIGGER collide AFTER INSERT ON omega.{table} FOR EACH STATEMENT"
                f" EXECUTE FUNCTION omega.collide({', '.join(map(repr, errors))})".encode()
            )

        def turns() -> int:
            (last,) = console.execute("SELECT last_value FROM omega.call_number").fetchone() or (0,)
            return int(last)

        try:
            yield turns
        finally:
            console.execute("DROP FUNCTION omega.collide CASCADE")
            console.execute("DROP SEQUENCE omega.call_number")


@pytest.mark.parametrize("name", COLLISIONS)
def test_a_collision_is_tried_again_inside_the_store_and_counted(
    database_url: str,
    store: PostgresStore,
    victim: PostgresStore,
    contended_job: LeasedJob,
    name: str,
) -> None:
    with colliding(database_url, when=f"turn <= {COLLISIONS_MAX}", errors=[COLLISIONS[name]]):
        outcome = victim.commit(claim(contended_job, 0, 1))

    assert {name: COLLISIONS_MAX} == victim.counts
    assert_applied_once(store, outcome)


def test_a_call_that_collides_again_and_again_had_no_effect(
    database_url: str, store: PostgresStore, victim: PostgresStore, contended_job: LeasedJob
) -> None:
    transaction = claim(contended_job, 0, 1)
    with colliding(
        database_url, when=f"turn <= {COLLISIONS_MAX + 1}", errors=list(COLLISIONS.values())
    ):
        with pytest.raises(StoreUnavailable, match="planted"):
            victim.commit(transaction)
        assert 0 == len(store.allocations())

        assert_applied_once(store, victim.commit(transaction))
    assert COLLISIONS_MAX + 1 == sum(victim.counts.values())


def test_a_report_of_exits_fails_at_the_first_lock_timeout_and_repeats_other_collisions(
    database_url: str, store: PostgresStore, victim: PostgresStore, contended_job: LeasedJob
) -> None:
    store.commit(claim(contended_job, 0))
    (started_ms,) = store.allocations().started_ms.tolist()
    ended = [TaskExit(contended_job.id, 0, started_ms, Exit(cause=ExitCause.EXITED, code=0))]
    timeout = COLLISIONS["LockNotAvailable"]
    others = [code for code in COLLISIONS.values() if code != timeout]
    with (
        colliding(database_url, when="turn <= 2", errors=[timeout]),
        pytest.raises(StoreBusy, match="planted"),
    ):
        victim.report_exits(ended)
    with colliding(database_url, when="turn <= 2", errors=others):
        assert 1 == victim.report_exits(ended)
    assert 1 == victim.counts["LockNotAvailable"]


def test_a_database_of_another_isolation_makes_no_commit_fail(
    database_url: str,
    store: PostgresStore,
    victim: PostgresStore,
    console: Console,
    contended_job: LeasedJob,
) -> None:
    """Whoever has waited for a row judges it as it is then, whatever the operator prefers."""
    prefer = "ALTER ROLE CURRENT_USER IN DATABASE {} {} default_transaction_isolation"
    (database,) = console.execute("SELECT quote_ident(current_database())").fetchone() or ("",)
    console.execute(f"{prefer.format(database, 'SET')} = 'repeatable read'".encode())
    console.commit()
    try:
        victim.now_ms()
        transaction = claim(contended_job, 0)
        change = "UPDATE omega.machine SET revision = revision + 1"
        with waiting_for_a_lock(console, change, lambda: victim.commit(transaction)) as (call, _):
            console.commit()
            outcome = call.result()
    finally:
        console.execute(prefer.format(database, "RESET").encode())
        console.commit()

    assert {} == victim.counts
    assert [2] == outcome.fresh.revision.tolist()
    assert_applied_once(store, outcome)


def test_collisions_in_a_race(
    database_url: str, store: PostgresStore, dose: Dose, tally: Tallier
) -> None:
    """Nobody outside the store notices."""
    hot_cell(store)
    with (
        tally("deadlocks, serialization failures, lock timeouts") as row,
        colliding(
            database_url, when=f"turn % {EVERY} = 0", errors=list(COLLISIONS.values())
        ) as turns,
        Rivals(partial(open_store, database_url), RIVALS) as rivals,
    ):
        race_through(
            rivals,
            store,
            row,
            wanted=dose(short=5, long=200),
            injected=lambda: turns() // EVERY,
        )

        assert 0 == rivals.faults
