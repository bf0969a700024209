"""Processes that were killed: shown as silent, listed for an hour, and dropped when asked."""

import psycopg
import pytest

from omega.store.postgres.store import PostgresStore
from tests.fixtures.command_line import Omega


@pytest.fixture(autouse=True)
def _cell(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)


def be_silent(database_url: str, minutes: int) -> None:
    """Let so many minutes pass since each process has reported."""
    with psycopg.connect(database_url, autocommit=True) as link:
        link.execute(
            "UPDATE omega.process SET seen_at = seen_at - make_interval(mins => %s)", (minutes,)
        )


def test_a_killed_scheduler_is_shown_since_when_and_can_be_dropped(
    store: PostgresStore, omega: Omega, database_url: str
) -> None:
    store.report("batch", "a", pid=4_321, facts={})
    lives = omega("scheduler", "forget", "batch", "--replica", "a")
    be_silent(database_url, 7)
    shown = omega("status")
    dropped = omega("scheduler", "forget", "batch", "--replica", "a")
    again = omega("scheduler", "forget", "batch", "--replica", "a")

    assert (1, "omega: batch a runs, as process 4321: stop it instead\n") == (lives.code, lives.err)
    assert "silent 7 min" in shown.out
    assert (0, "batch a is dropped.\n") == (dropped.code, dropped.out)
    assert (1, "omega: no process has reported as batch a\n") == (again.code, again.err)
    assert [] == store.reports()


def test_one_that_is_silent_for_an_hour_is_counted_only(
    store: PostgresStore, omega: Omega, database_url: str
) -> None:
    store.report("batch", "a", pid=4_321, facts={})
    be_silent(database_url, 61)

    shown = omega("status")

    assert "1 scheduler silent for over an hour, as batch a" in shown.out
    assert "silent 61" not in shown.out
