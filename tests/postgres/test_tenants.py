"""`omega tenant` and `omega fairness`, and what only a real server shows of lanes."""

import json
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from omega.model.jobs import Constraint, Operator
from omega.model.lanes import Lane, QueueOrder
from omega.ordering.tenants import Tenant
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_group, a_spec
from omega.testing.steps import LONG_MS, a_running_job, add_a_cell
from tests.fixtures.command_line import Omega, Ran

pytestmark = pytest.mark.usefixtures("kept_sessions")

SSD = Constraint("ssd", Operator.EXISTS)


@pytest.fixture(autouse=True)
def _cell(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every command work on the test's own database."""
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)


def document(ran: Ran) -> dict[str, Any]:
    assert 0 == ran.code, ran.err
    read: dict[str, Any] = json.loads(ran.out)
    assert ["parameters", "environment", "rows", "summary"] == list(read)
    return read


def lines(ran: Ran) -> list[str]:
    assert (0, "") == (ran.code, ran.err)
    return [" ".join(line.split()) for line in ran.out.splitlines()]


def test_a_job_goes_to_one_of_two_that_lease_its_lane(
    store: PostgresStore, database_url: str
) -> None:
    jobs = store.submit([a_spec(tenant="ann") for _ in range(8)])
    lanes = {Lane.of(a_spec(tenant="ann")): 4}
    with closing(PostgresStore(database_url)) as other:
        leased = [
            job.id
            for replica in (store, other)
            for job in replica.lease("batch", holder="0", jobs_max=8, lease_ms=LONG_MS, lanes=lanes)
        ]

    assert jobs == sorted(leased)


def test_a_tenant_is_set_listed_and_removed(omega: Omega, store: PostgresStore) -> None:
    assert ["No tenant was set: all have the weight 1 and no parent."] == lines(
        omega("tenant", "list")
    )
    assert ["Tenant org has the weight 3."] == lines(omega("tenant", "set", "org", "--weight", 3))
    assert ["Tenant ann has the weight 1 below org."] == lines(
        omega("tenant", "set", "ann", "--parent", "org")
    )
    assert ["tenant weight parent", "ann 1 org", "org 3 -"] == lines(omega("tenant", "list"))
    assert [Tenant("ann", 1, "org"), Tenant("org", 3)] == store.tenants()
    assert {"tenant": "ann", "weight": 1, "parent": "org"} == document(
        omega("tenant", "list", "--json", "-")
    )["rows"][0]
    assert ["Tenant ann has the weight 1 and no parent again."] == lines(
        omega("tenant", "remove", "ann")
    )
    assert [Tenant("org", 3)] == store.tenants()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("set", "ann", "--weight", "0"), "--weight: a weight is from 1 to 10,000, not 0"),
        (("set", "ann", "--parent", "ann"), "parent"),
        (("set", "ann", "--parent", "nobody"), "'nobody'"),
        (("set", "org", "--parent", "team"), "its own ancestor"),
        (("set", ""), "NAME: it must not be empty"),
        (("remove", "org"), "org is the parent of others"),
    ],
)
def test_what_is_no_tenant_is_refused_in_one_sentence(
    omega: Omega, store: PostgresStore, arguments: tuple[str, ...], told: str
) -> None:
    store.set_tenant(Tenant("org"))
    store.set_tenant(Tenant("team", 1, "org"))
    ran = omega("tenant", *arguments)

    assert (2, "") == (ran.code, ran.out)
    assert told in ran.err
    assert 1 == len(ran.err.splitlines())
    assert ["org", "team"] == [tenant.name for tenant in store.tenants()]


def test_a_tenant_that_was_not_set_cannot_be_removed(omega: Omega) -> None:
    ran = omega("tenant", "remove", "ann")

    assert (1, "omega: tenant ann was not set; see: omega tenant list\n") == (ran.code, ran.err)


def test_fairness_of_an_empty_cell(omega: Omega) -> None:
    assert ["No job runs or waits."] == lines(omega("fairness"))


def test_fairness_compares_each_share_with_what_is_fair(omega: Omega, store: PostgresStore) -> None:
    add_a_cell(store, 3, cpu_milli=4_000)
    store.set_tenant(Tenant("bob", 2))
    a_running_job(store, a_spec(9, tenant="ann"), [1, 1, 1, 1, 2, 2, 2, 2, 3])
    store.submit([a_spec(8, tenant="ann"), a_spec(8, tenant="bob"), a_spec(1, tenant="eve")])
    before = lines(omega("fairness"))
    store.agree_on_order("batch", "0", QueueOrder.DRF, lease_ms=LONG_MS)
    read = document(omega("fairness", "--json", "-"))

    assert before[1].startswith("bob 2 0.0% 61.1% -61.1% 8 has less than is fair: no scheduler")
    assert "orders: none, no scheduler leases from the queue" == before[-1]
    assert [("bob", "below"), ("eve", "below"), ("ann", "above")] == [
        (row["tenant"], row["state"]) for row in read["rows"]
    ]
    shares = {row["tenant"]: (row["share"], row["fair_share"]) for row in read["rows"]}
    assert (0.75, pytest.approx(11 / 36)) == shares["ann"]
    assert (0, pytest.approx(1 / 12)) == shares["eve"]
    assert {"cpu_milli": 9_000, "memory_mib": 0, "disk_mib": 0, "gpu_slices": 0} == (
        read["rows"][-1]["used"]
    )
    assert {"batch": "drf"} == read["summary"]["orders"]


def test_fairness_asks_whether_the_kinds_that_a_tenant_waits_for_have_a_fair_order(
    omega: Omega, store: PostgresStore
) -> None:
    add_a_cell(store, 1, cpu_milli=4_000)
    a_running_job(store, a_spec(4, tenant="ann"), [1, 1, 1, 1])
    for tenant, kinds in {
        "bob": ["batch"],
        "eve": ["service"],
        "fay": ["batch", "service"],
    }.items():
        store.submit([a_spec(tenant=tenant, scheduler=kind) for kind in kinds])
    store.agree_on_order("batch", "0", QueueOrder.DRF, lease_ms=LONG_MS)
    store.agree_on_order("service", "0", QueueOrder.FIFO, lease_ms=LONG_MS)
    rows = document(omega("fairness", "--json", "-"))["rows"]

    assert {"ann": "above", "bob": "below", "eve": "unordered", "fay": "below"} == {
        row["tenant"]: row["state"] for row in rows
    }


def test_fairness_knows_which_machines_a_tenant_may_use(omega: Omega, store: PostgresStore) -> None:
    store.add_machines(a_cell(2, cpu_milli=4_000, attributes={"ssd": ["yes", None]}))
    a_running_job(store, a_spec(3, tenant="bob"), [2, 2, 2])
    picky = replace(a_group(9), constraints=(SSD,))
    store.submit([a_spec(groups=[picky], tenant="ann"), a_spec(9, tenant="bob")])
    rows = document(omega("fairness", "--json", "-"))["rows"]

    assert {"ann": pytest.approx(0.5), "bob": pytest.approx(0.5)} == {
        row["tenant"]: row["fair_share"] for row in rows
    }
    store.submit([a_spec(groups=[picky], tenant="eve")])
    rows = document(omega("fairness", "--json", "-"))["rows"]
    assert {"ann": 0.25, "bob": 0.5, "eve": 0.25} == pytest.approx(
        {row["tenant"]: row["fair_share"] for row in rows}
    )


def test_an_order_that_is_none_is_refused(omega: Omega) -> None:
    ran = omega("scheduler", "run", "batch", "--set", "order=chosy")

    assert (2, 1) == (ran.code, len(ran.err.splitlines()))
    assert "there is no order 'chosy'; did you mean 'choosy'? (fifo, drf, choosy, " in ran.err


def test_rounds_have_the_order_of_their_policy(omega: Omega) -> None:
    ran = omega("scheduler", "run", "ml-gpu", "--set", "order=drf", "--set", "round=60")

    assert (2, 1) == (ran.code, len(ran.err.splitlines()))
    assert "order: ml-gpu leases all its jobs, and plans them by rounds" in ran.err


@pytest.mark.parametrize(
    ("kind", "settings", "sentence"),
    [
        ("ml-gpu", ("reclaim=5", "round=60"), "reclaim: ml-gpu leases all its jobs"),
        ("service", ("reclaim=5", "order=drf"), "reclaim: service evicts tasks of all tenants"),
        ("batch", ("reclaim=5",), "reclaim: only schedulers with a fair order compare what"),
    ],
)
def test_a_scheduler_that_could_not_reclaim_does_not_start(
    omega: Omega, kind: str, settings: tuple[str, ...], sentence: str
) -> None:
    words = [word for setting in settings for word in ("--set", setting)]
    ran = omega("scheduler", "run", kind, *words)

    assert (2, 1) == (ran.code, len(ran.err.splitlines()))
    assert sentence in ran.err
