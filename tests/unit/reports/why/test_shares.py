"""Where a tenant stands in a fair order."""

import pytest

from omega.cell.view import View
from omega.clock import ManualClock
from omega.model.lanes import QueueOrder
from omega.ordering.tenants import Tenant
from omega.reports.why.reasons import Reason
from omega.reports.why.report import WhyReport, why_job
from omega.reports.why.shares import FairPosition, read_fair_position
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_spec
from omega.testing.steps import LONG_MS, a_running_job, add_a_cell

CORES = 20


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore(ManualClock(now=1_000.0))
    add_a_cell(store, 1, cpu_milli=CORES * 1_000)
    store.agree_on_order("batch", "0", QueueOrder.DRF, lease_ms=LONG_MS)
    store.report("batch", "0", pid=1, facts={})
    return store


def use(store: MemoryStore, **cores: int) -> None:
    """Have tenants use so many cores."""
    for tenant, number in cores.items():
        a_running_job(store, a_spec(number, tenant=tenant), [1] * number)


def wait(store: MemoryStore, *tenants: str, scheduler: str = "batch") -> list[int]:
    """Submit a job of one core for each of these tenants."""
    return store.submit([a_spec(tenant=tenant, scheduler=scheduler) for tenant in tenants])


def place_of(store: MemoryStore, tenant: str, *, has_room: bool = True) -> FairPosition:
    view = View(store.snapshot())
    return read_fair_position(store, view, QueueOrder.DRF, tenant, has_room=has_room)


def before(store: MemoryStore, tenant: str) -> list[str]:
    return [it.tenant for it in place_of(store, tenant).before]


def why(store: MemoryStore, job: int) -> WhyReport:
    status = store.job(job)
    assert status is not None
    return why_job(store, status, lambda _: False)


def test_tenants_with_smaller_shares_are_before_it(store: MemoryStore) -> None:
    use(store, ann=4, bob=2, eve=6, fay=1)
    wait(store, "ann", "bob", "eve")

    assert {"ann": ["bob"], "bob": [], "eve": ["ann", "bob"], "fay": []} == {
        tenant: before(store, tenant) for tenant in ("ann", "bob", "eve", "fay")
    }


def test_equal_shares_go_by_name(store: MemoryStore) -> None:
    wait(store, "b", "a", "c")

    assert (["a"], []) == (before(store, "b"), before(store, "a"))


def test_shares_are_weighted(store: MemoryStore) -> None:
    store.set_tenant(Tenant("ann", 3))
    use(store, ann=5, bob=2)
    wait(store, "ann", "bob")

    assert (["ann"], []) == (before(store, "bob"), before(store, "ann"))


def test_tenants_of_a_tree_are_compared_where_they_part(store: MemoryStore) -> None:
    store.set_tenant(Tenant("org"))
    for team in ("x", "y"):
        store.set_tenant(Tenant(team, 1, "org"))
    use(store, x=1, y=5, other=3)
    wait(store, "x", "y", "other")

    assert [["other"], ["other", "x"], []] == [
        before(store, tenant) for tenant in ("x", "y", "other")
    ]


def test_who_waits_for_kinds_without_a_fair_order_or_is_held_is_not_before_it(
    store: MemoryStore,
) -> None:
    use(store, ann=4)
    _, held = wait(store, "ann", "bob")
    wait(store, "eve", scheduler="service")
    store.agree_on_order("service", "0", QueueOrder.FIFO, lease_ms=LONG_MS)
    store.hold(held)

    assert [] == before(store, "ann")


def test_it_is_told_in_one_line(store: MemoryStore) -> None:
    store.set_tenant(Tenant("ann", 2))
    use(store, ann=8)
    assert (
        "by share (drf): ann with 40.0% of weight 2 of the cell; no tenant that waits has less"
    ) == str(place_of(store, "ann"))
    wait(store, "a", "b", "c", "d", "e")

    assert (
        "by share (drf): ann with 40.0% of weight 2 of the cell; before it a with 0.0%, b with"
        " 0.0%, c with 0.0% and 2 tenants more; it finds no room now and is passed over"
    ) == str(place_of(store, "ann", has_room=False))


def test_a_job_with_room_is_told_whose_jobs_come_first(store: MemoryStore) -> None:
    use(store, ann=8)
    job, _ = wait(store, "ann", "bob")
    report = why(store, job)

    assert Reason.BEHIND_OTHERS is report.finding.reason
    assert (
        "There is room, but tenants that have less, or whose parents have, come first (order drf;"
        " equal shares go by name): bob with 0.0%. Its own tenant: ann with 40.0%."
        == report.finding.evidence
    )
    assert "omega tenant set ann --weight 2" in report.finding.next_step
    assert {
        "order": "drf",
        "tenant": "ann",
        "weight": 1,
        "share": 0.4,
        "before": [{"tenant": "bob", "weight": 1, "share": 0.0}],
        "passed_over": False,
    } == report.summary()["fair_order"]
    assert {"higher_precedence": 0, "older": 0, "first": []} == report.summary()["ahead"]


def test_a_job_of_the_poorest_tenant_is_next(store: MemoryStore) -> None:
    use(store, ann=8)
    _, job = wait(store, "ann", "bob")
    report = why(store, job)

    assert Reason.QUEUED is report.finding.reason
    assert "no tenant that waits has a smaller share" in report.finding.evidence


def test_a_job_without_room_is_said_to_be_passed_over(store: MemoryStore) -> None:
    use(store, ann=CORES)
    (job,) = wait(store, "ann")
    report = why(store, job)

    assert Reason.NO_ROOM is report.finding.reason
    assert report.fair_position is not None
    assert report.fair_position.is_passed_over


def test_by_precedence_and_age_there_is_no_share(store: MemoryStore) -> None:
    store.agree_on_order("service", "0", QueueOrder.FIFO, lease_ms=LONG_MS)
    first, job = wait(store, "ann", "bob", scheduler="service")
    report = why(store, job)

    assert report.summary()["fair_order"] is None
    assert [first] == [status.id for status in report.line.first]
