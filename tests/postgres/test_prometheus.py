"""The real Prometheus scrapes the page of a real cell while its schedulers are killed."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from tests.fixtures.at_work import wait_until
from tests.fixtures.command_line import Started
from tests.fixtures.logins import Login
from tests.fixtures.pages import HOST, PageAt, port_at
from tests.fixtures.prometheus import MISSING, Prometheus, is_here, scraping
from tests.unit.deployment.test_monitoring import RULES

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not is_here(), reason=MISSING)]

COUNTERS = '{__name__=~"omega_.+_(total|bucket|count|sum)"}'
OF_REPLICAS = 'count({job="omega", replica!=""})'
SERIES_MAX = 250
"""Of one replica, and of a cell with one kind of scheduler."""
OF = '{scheduler="batch", replica="%s"}'


@pytest.fixture
def filled(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[PostgresStore]:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    store = PostgresStore(database_url)
    store.add_machines(a_cell(3))
    yield store
    store.close()


@pytest.fixture
def page(started: Started, filled: PostgresStore, login: Login) -> PageAt:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMEGA_DATABASE_URL", login("reader", "omega_reader"))
        started("web", "--port", "0")
    return PageAt(port_at(started))


def kill(started: Started, process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()
    started.processes.remove(process)


def wait_for(server: Prometheus, expression: str) -> float:
    """Wait until an expression has a value that Prometheus has scraped; return it."""
    wait_until(lambda: server.value(expression) is not None, expression)
    value = server.value(expression)
    assert value is not None
    return value


def test_counters_do_not_fall_and_series_do_not_pile_up_while_schedulers_are_killed(
    filled: PostgresStore, page: PageAt, started: Started, tmp_path: Path
) -> None:
    done = f"omega_transactions_total{OF % 0}"
    with scraping(f"{HOST}:{page.port}", tmp_path / "prometheus", rules=RULES) as server:
        first = started("scheduler", "run", "batch", "--replica", "0")
        filled.submit([a_spec(), a_spec()])
        before = wait_for(server, f"{done} > 0")

        kill(started, first)
        second = started("scheduler", "run", "batch", "--replica", "0")
        filled.submit([a_spec()])
        after = wait_for(server, f"{done} > {before}")

        assert [] == server.falls(COUNTERS, "10m")
        assert 1 == server.value("count(omega_transactions_total)")
        in_database = 'omega_cell_transactions_total{scheduler="batch"}'
        assert after == wait_for(server, f"{in_database} == {after}"), "each is counted once"

        kill(started, second)
        wait_for(server, 'omega_processes_silent{kind="scheduler"} == 1')
        wait_for(server, 'ALERTS{alertname="OmegaProcessSilent", alertstate="pending"}')
        wait_until(lambda: server.value(OF_REPLICAS) is None, "the series of the dead to end")
        third = started("scheduler", "run", "batch", "--replica", "0")
        wait_for(server, f"{done} >= {after}")
        assert [] == server.falls(COUNTERS, "10m")
        assert SERIES_MAX > wait_for(server, OF_REPLICAS)
        assert SERIES_MAX > wait_for(server, 'count({job="omega", replica=""})')
        kill(started, third)
