"""`omega why` of a job whose kind has a fair order."""

import pytest

from omega.model.lanes import QueueOrder
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_spec
from omega.testing.steps import LONG_MS, a_running_job, add_a_cell
from tests.fixtures.command_line import Omega, document

pytestmark = pytest.mark.usefixtures("kept_sessions")


def test_it_says_whose_jobs_come_first_by_share(
    omega: Omega, store: PostgresStore, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    add_a_cell(store, 1, cpu_milli=20_000)
    store.agree_on_order("batch", "0", QueueOrder.CHOOSY, lease_ms=LONG_MS)
    store.report("batch", "0", pid=1, facts={})
    a_running_job(store, a_spec(5, tenant="ann"), [1] * 5)
    job, _ = store.submit([a_spec(tenant="ann"), a_spec(tenant="bob")])
    screen = " ".join(omega("why", job).out.split())
    told = document(omega("why", job, "--json", "-"))["summary"]

    assert "come first (order choosy; equal shares go by name): bob with 0.0%." in screen
    assert "Its own tenant: ann with 25.0%." in screen
    assert "by share (choosy): ann with 25.0% of the cell; before it bob with 0.0%" in screen
    assert [{"tenant": "bob", "weight": 1, "share": 0.0}] == told["fair_order"]["before"]
    assert 0.25 == told["fair_order"]["share"]
