"""`omega quota`, run on a real server as an operator would run it."""

import json
from typing import Any

import pytest

from omega.lifecycle.states import ParkReason
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.store.leases import Parking
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_spec
from omega.testing.steps import a_leased_job, a_running_job, add_a_cell
from tests.fixtures.command_line import Omega, Ran

pytestmark = pytest.mark.usefixtures("kept_sessions")


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


def test_a_quota_is_set_with_what_it_finds_used(omega: Omega, store: PostgresStore) -> None:
    add_a_cell(store, 1, gpus=2)
    a_running_job(store, a_spec(3, tenant="ann"), [1, 1, 1], cpu_milli=1_000, memory_mib=512)

    ran = omega(
        "quota", "set", "--tenant", "ann", "--cpu", 100, "--memory", "4GiB", "--gpus", "1.5"
    )

    assert [
        "The quota of tenant ann is set.",
        "quota cpu memory disk gpus jobs",
        "tenant ann limit 100 4 GiB - 1.5 -",
        "used 3 1.5 GiB - 0 -",
        "left 97 2.5 GiB - 1.5 -",
    ] == lines(ran)
    (use,) = store.quotas()
    assert {
        Budget.CPU_MILLI: 100_000,
        Budget.MEMORY_MIB: 4_096,
        Budget.GPU_SLICES: 1_500,
    } == use.quota.limits


def test_a_quota_that_is_set_again_has_only_the_limits_that_are_named(
    omega: Omega, store: PostgresStore
) -> None:
    omega("quota", "set", "--scheduler", "batch", "--cpu", "500m", "--disk", "2TiB")
    ran = omega("quota", "set", "--scheduler", "batch", "--jobs", 20, "--json", "-")

    told = document(ran)
    (use,) = store.quotas()
    assert Quota(QuotaScope.SCHEDULER, "batch", {Budget.JOBS: 20}) == use.quota
    assert ("scheduler", "batch", "20") == tuple(
        told["parameters"][field] for field in ("scope", "name", "jobs")
    )
    assert [(None, 20)] == [(r["limits"]["cpu_milli"], r["left"]["jobs"]) for r in told["rows"]]
    assert "The quota of scheduler batch is set." in ran.err


def test_a_quota_below_what_is_used_says_what_that_means(
    omega: Omega, store: PostgresStore
) -> None:
    add_a_cell(store, 1)
    a_running_job(store, a_spec(3, tenant="ann"), [1, 1, 1])

    told = lines(omega("quota", "set", "--tenant", "ann", "--cpu", 1))

    assert "left -2 - - - -" in told
    assert "More is used than it allows: that goes on, and nothing is added to it." == told[-1]


def test_quotas_are_listed(omega: Omega, store: PostgresStore) -> None:
    assert ["There are no quotas: everybody may hold whatever there is."] == lines(
        omega("quota", "list")
    )
    store.set_quota(Quota(QuotaScope.TENANT, "ann", {Budget.CPU_MILLI: 0, Budget.JOBS: 5}))
    store.set_quota(Quota(QuotaScope.SCHEDULER, "batch", {Budget.DISK_MIB: 1_024}))

    told, written = lines(omega("quota", "list")), document(omega("quota", "list", "--json", "-"))

    assert "scheduler batch limit - - 1 GiB - -" == told[1]
    assert "tenant ann limit 0 - - - 5" == told[4]
    assert [("scheduler", "batch"), ("tenant", "ann")] == [
        (row["scope"], row["name"]) for row in written["rows"]
    ]
    assert {"quotas": 2, "used_up": 1} == written["summary"]


def test_a_quota_is_removed_once(omega: Omega, store: PostgresStore) -> None:
    store.set_quota(Quota(QuotaScope.TENANT, "ann", {Budget.JOBS: 5}))

    removed = omega("quota", "remove", "--tenant", "ann")
    again = omega("quota", "remove", "--tenant", "ann")

    assert ["The quota of tenant ann is lifted."] == lines(removed)
    assert (1, "", "omega: there is no quota of tenant ann; see: omega quota list\n") == again
    assert [] == store.quotas()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("set", "--cpu", "1"), "field --tenant or --scheduler: a quota is for one tenant"),
        (
            ("set", "--tenant", "a", "--scheduler", "b", "--cpu", "1"),
            "field --tenant or --scheduler",
        ),
        (("remove",), "field --tenant or --scheduler"),
        (("set", "--tenant", "a"), "name at least one of --cpu, --memory, --disk, --gpus, --jobs"),
        (("set", "--tenant", " ", "--cpu", "1"), "field --tenant: it must not be empty"),
        (("set", "--tenant", "a\0", "--cpu", "1"), "cannot be printed"),
        (("remove", "--scheduler", "k" * 201), "field --scheduler: it is longer than 200"),
        (("set", "--tenant", "a", "--cpu", "-1"), "field --cpu: '-1' is not an amount of CPU"),
        (("set", "--tenant", "a", "--memory", "4"), "field --memory: '4' is not an amount"),
        (("set", "--tenant", "a", "--jobs", "many"), "field --jobs: 'many' is not an amount"),
        (("set", "--tenant", "a", "--cpu", "1", "--gpus", "x"), "field --gpus: 'x' is not"),
        (("set", "--tenant", "a", "--cpu", "1", "--json", "/nowhere/x"), "no folder /nowhere"),
    ],
)
def test_what_cannot_be_meant_changes_nothing(
    omega: Omega, store: PostgresStore, arguments: tuple[str, ...], said: str
) -> None:
    ran = omega("quota", *arguments)

    assert (2, "", 1) == (ran.code, ran.out, ran.err.count("\n"))
    assert said in ran.err
    assert [] == store.quotas()


def test_a_name_is_kept_as_it_is_written(omega: Omega, store: PostgresStore) -> None:
    name = "[red]o'neill; --"

    assert (
        "The quota of tenant [red]o'neill; -- is set."
        == lines(omega("quota", "set", "--tenant", name, "--jobs", 1))[0]
    )
    assert [name] == [use.quota.name for use in store.quotas()]
    assert "The quota of tenant [red]o'neill; -- is lifted." in lines(
        omega("quota", "remove", "--tenant", name)
    )


def test_a_job_that_met_its_quota_says_so_wherever_it_is_shown(
    omega: Omega, store: PostgresStore
) -> None:
    add_a_cell(store, 1)
    a_running_job(store, a_spec(3, tenant="ann"), [1, 1, 1])
    store.set_quota(Quota(QuotaScope.TENANT, "ann", {Budget.CPU_MILLI: 3_000, Budget.JOBS: 9}))
    job = a_leased_job(store, a_spec(tenant="ann"))
    store.park([Parking(job.id, job.token, ParkReason.OVER_QUOTA, "not enough is left")])

    why = document(omega("job", job.id, "--json", "-"))["summary"]["why"]
    status = document(omega("status", "--json", "-"))["summary"]

    assert "over_quota" == why["reason"]
    assert "not enough is left; left for tenant ann: cpu 0, jobs 8" == why["evidence"]
    assert "omega quota list" in why["next_step"]
    assert "over_quota" in omega("jobs", "--state", "parked").out
    assert "1 parked (1 over_quota)" in omega("status").out
    assert "used up: tenant ann (cpu)" in omega("status").out
    assert {"over_quota": 1} == status["parked_by_reason"]
    assert [("tenant", "ann")] == [(q["scope"], q["name"]) for q in status["quotas_used_up"]]
