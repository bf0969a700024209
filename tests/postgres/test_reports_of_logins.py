"""A report is its login's: no other replaces or removes it, unless it has fallen silent."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from omega.errors import NotAllowed
from omega.store.base import Store
from omega.store.postgres.store import PostgresStore
from tests.fixtures.logins import Login, user_of


@pytest.fixture
def alice(login: Login) -> Iterator[Store]:
    with closing(PostgresStore(login("reporter", "omega_scheduler"))) as store:
        yield store


@pytest.fixture
def bob(login: Login) -> Iterator[Store]:
    with closing(PostgresStore(login("rival_reporter", "omega_node"))) as store:
        yield store


def facts_of(store: Store) -> list[object]:
    return [report.facts for report in store.reports()]


def test_another_login_replaces_and_removes_nothing(
    store: PostgresStore, alice: Store, bob: Store
) -> None:
    alice.report("batch", "0", pid=1, facts={"by": "alice"})

    with pytest.raises(NotAllowed, match="a process of another login reports as batch 0"):
        bob.report("batch", "0", pid=1, facts={"by": "bob"})
    bob.forget("batch", "0")

    assert [{"by": "alice"}] == facts_of(store)


def test_a_login_replaces_and_removes_its_own(store: PostgresStore, alice: Store) -> None:
    alice.report("batch", "0", pid=1, facts={"jobs": 1})
    alice.report("batch", "0", pid=2, facts={"jobs": 2})
    assert [{"jobs": 2}] == facts_of(store)

    alice.forget("batch", "0")
    assert [] == facts_of(store)


def test_one_that_has_fallen_silent_is_replaced(
    store: PostgresStore, alice: Store, bob: Store, database_url: str, login: Login
) -> None:
    alice.report("batch", "0", pid=1, facts={"by": "alice"})
    (before,) = store.reports()
    with psycopg.connect(database_url) as owner:
        owner.execute("UPDATE omega.process SET seen_at = seen_at - interval '11 seconds'")
    bob.report("batch", "0", pid=1, facts={"by": "bob"})
    with psycopg.connect(database_url) as owner:
        logins = owner.execute("SELECT login FROM omega.process").fetchall()
    (after,) = store.reports()

    assert {"by": "bob"} == after.facts
    assert [(user_of(login("rival_reporter", "omega_node")),)] == logins
    assert before.started_ms < after.started_ms, "the same number, but another process"
    with pytest.raises(NotAllowed):
        alice.report("batch", "0", pid=1, facts={})


def test_the_owner_replaces_and_removes_any(store: PostgresStore, alice: Store) -> None:
    alice.report("batch", "0", pid=1, facts={})
    store.report("batch", "0", pid=1, facts={"by": "owner"})
    assert [{"by": "owner"}] == facts_of(store)

    alice.forget("batch", "0")
    assert [{"by": "owner"}] == facts_of(store)
    store.forget("batch", "0")
    assert [] == facts_of(store)
