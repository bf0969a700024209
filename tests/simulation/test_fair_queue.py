"""Fair orders by whole processes on a virtual cell: whose job is next, of the whole queue."""

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from omega.config import Settings
from omega.errors import BadInput
from omega.framework.passed_over import PAUSE_S_MAX
from omega.framework.scheduler import NO_DECISION_TIME, DecisionTime
from omega.model.jobs import Constraint, JobSpec, Operator
from omega.model.lanes import QueueOrder
from omega.nodes.virtual import VirtualNodes, nothing_else
from omega.ordering.tenants import Tenant
from omega.sim.virtual_cell import VirtualCell
from omega.testing.builders import a_cell, a_spec
from schedulers.batch import BatchScheduler
from schedulers.service import ServiceScheduler

MACHINES, CORES = 10, 4
TASK_S = 20
LOOKS_S = 1
"""Until room that comes free is seen, and a job that was tried just before may be tried again."""
FAIR = (QueueOrder.DRF, QueueOrder.CHOOSY)
IN_ZONE_B = (Constraint("zone", Operator.IN, ("b",)),)


def jobs_of(tenant: str, jobs: int, *, tasks: int = 1, scheduler: str = "batch") -> list[JobSpec]:
    """Return jobs whose tasks take a core for twenty seconds."""
    spec = a_spec(
        tasks, tenant=tenant, scheduler=scheduler, cpu_milli=1_000, duration_ms=TASK_S * 1_000
    )
    return [spec] * jobs


class FairCell:
    """Forty cores, virtual nodes, and replicas that lease in one order."""

    def __init__(
        self,
        order: QueueOrder,
        *,
        replicas: int = 2,
        seed: int = 7,
        decision_time: DecisionTime = NO_DECISION_TIME,
        in_b: int = 1,
        cores: int = CORES,
        share_gap_ms: int = 50,
        **amounts: int,
    ) -> None:
        """`amounts` are what each machine has besides its cores."""
        self.decision_time = decision_time
        zones = {"zone": ["b"] * in_b + ["a"] * (MACHINES - in_b)}
        machines = a_cell(MACHINES, cpu_milli=cores * 1_000, attributes=zones, **amounts)
        settings = Settings.model_construct(share_gap_ms=share_gap_ms)
        self.cell = VirtualCell(machines, seed=seed, settings=settings)
        self.store = self.cell.store
        self.cell.live(
            VirtualNodes(lambda _: None, speedup=1.0).life(threading.Event(), nothing_else)
        )
        for replica in range(replicas):
            self.start(BatchScheduler(), order, str(replica))

    def start(
        self, scheduler: BatchScheduler | ServiceScheduler, order: QueueOrder, replica: str
    ) -> None:
        scheduler.queue_order = order
        self.cell.schedule(scheduler, replica, decision_time=self.decision_time)

    def run(self, *jobs: Sequence[JobSpec], seconds: float) -> list[list[int]]:
        """Submit lists of jobs, and let time pass; return their ids."""
        ids = [self.store.submit(specs) for specs in jobs]
        self.cell.run(self.cell.clock.now() + seconds)
        self.cell.check()
        return ids

    def cores(self) -> Counter[str]:
        """Return how many cores each tenant uses."""
        return Counter(self.tenant(job) for job in self.store.allocations().job.tolist())

    def tenant(self, job: int) -> str:
        """Return whose job it is."""
        found = self.store.job(job)
        assert found is not None
        return found.tenant

    def begun(self, jobs: Sequence[int]) -> int:
        """Return how many of these jobs have all their tasks placed, or over."""
        found = [self.store.job(job) for job in jobs]
        return sum(job is not None and job.placed == job.tasks for job in found)


def test_by_precedence_and_age_a_long_queue_holds_up_everybody_else() -> None:
    cell = FairCell(QueueOrder.FIFO)
    cell.run(jobs_of("a", 500), seconds=30)
    (late,) = cell.run(jobs_of("b", 10), seconds=2 * TASK_S)

    assert 0 == cell.begun(late)


@pytest.mark.parametrize(
    ("order", "replicas"), [(QueueOrder.DRF, 1), (QueueOrder.CHOOSY, 2), (QueueOrder.DRF, 4)]
)
def test_a_late_tenant_begins_within_the_time_of_a_task(order: QueueOrder, replicas: int) -> None:
    cell = FairCell(order, replicas=replicas)
    cell.run(jobs_of("a", 600), seconds=2.5 * TASK_S)
    (late,) = cell.run(jobs_of("b", 10), seconds=TASK_S + LOOKS_S)

    assert 10 == cell.begun(late)


@pytest.mark.parametrize("order", FAIR)
def test_tenants_with_work_share_equally(order: QueueOrder) -> None:
    cell = FairCell(order)
    cell.run(jobs_of("a", 2_000), jobs_of("b", 300, tasks=3), jobs_of("c", 5), seconds=15)
    first = cell.cores()
    cell.run(seconds=100)

    assert 5 == first["c"]
    assert abs(first["a"] - first["b"]) <= 3
    assert {"a": 20, "b": 20} == pytest.approx(dict(cell.cores()), abs=3)


@pytest.mark.parametrize("order", FAIR)
def test_weights_and_parents_divide_the_cell(order: QueueOrder) -> None:
    cell = FairCell(order)
    for tenant in (Tenant("org", 3), Tenant("x", 2, "org"), Tenant("y", 1, "org")):
        cell.store.set_tenant(tenant)
    cell.run(*(jobs_of(name, 400) for name in ("x", "y", "other")), seconds=4.5 * TASK_S)

    assert {"x": 20, "y": 10, "other": 10} == pytest.approx(dict(cell.cores()), abs=2)


@pytest.mark.parametrize("order", FAIR)
def test_a_tenant_that_asks_for_nothing_does_not_have_the_schedulers_for_itself(
    order: QueueOrder,
) -> None:
    """They decide on ten jobs a second each, and it always uses less than the other tenant."""
    cell = FairCell(order, decision_time=DecisionTime(job_s=0.1))
    nothing = a_spec(tenant="a", cpu_milli=0, duration_ms=1_000)
    (many, _) = cell.run([nothing] * 5_000, jobs_of("b", 500), seconds=60)

    assert 35 < cell.cores()["b"] <= 40
    assert 300 < cell.begun(many) < 1_000


def test_all_kinds_count_for_a_tenants_share() -> None:
    cell = FairCell(QueueOrder.DRF, replicas=1)
    cell.start(ServiceScheduler(), QueueOrder.DRF, "0")
    cell.run(jobs_of("a", 20, scheduler="service"), seconds=5)
    cell.run(jobs_of("a", 500), jobs_of("b", 500), seconds=10)

    assert {"a": 20, "b": 20} == dict(cell.cores())


def test_jobs_that_few_machines_take_do_not_hold_up_others_in_choosy() -> None:
    picky = a_spec(tenant="a", cpu_milli=1_000, constraints=IN_ZONE_B, duration_ms=10**9)
    cores = {}
    for order in FAIR:
        cell = FairCell(order)
        cell.run([picky] * 200, jobs_of("a", 500), jobs_of("b", 500), seconds=60)
        cores[order] = cell.cores()

    assert {"a": 20, "b": 20} == pytest.approx(dict(cores[QueueOrder.CHOOSY]), abs=2)
    assert cores[QueueOrder.DRF]["a"] < cores[QueueOrder.DRF]["b"]


@pytest.mark.parametrize(
    ("order", "share_gap_ms"),
    [(QueueOrder.DRF, 50), (QueueOrder.CHOOSY, 500), (QueueOrder.DRF, 1_000)],
)
def test_a_poorer_tenant_gets_all_room_that_it_may_use(
    order: QueueOrder, share_gap_ms: int
) -> None:
    cell = FairCell(order, replicas=1, in_b=5, cores=40, share_gap_ms=share_gap_ms)
    lasts_ms = np.random.default_rng(1).integers(1_000, 20_000, size=1_500).tolist()
    cell.run(
        [a_spec(tenant="a", cpu_milli=1_000, duration_ms=each) for each in lasts_ms], seconds=2
    )
    picky = a_spec(tenant="late", cpu_milli=1_000, constraints=IN_ZONE_B, duration_ms=10**9)
    arrived_ms = cell.store.now_ms()
    cell.run([picky] * 150, seconds=0)
    while cell.cores()["late"] < 100:
        cell.run(seconds=1)
    live = cell.store.allocations()
    late = live.started_ms > arrived_ms + share_gap_ms

    assert {"late"} == {cell.tenant(job) for job in live.job[late & (live.machine <= 5)].tolist()}


@pytest.mark.parametrize(("order", "seed"), [(QueueOrder.DRF, 1), (QueueOrder.CHOOSY, 2)])
def test_a_tenant_of_one_kind_has_its_share_beside_tenants_of_two(
    order: QueueOrder, seed: int
) -> None:
    cell = FairCell(order, seed=seed)
    for replica in ("0", "1", "2"):
        service = ServiceScheduler()
        service.preempts = False
        cell.start(service, order, replica)
    both = [[*jobs_of(who, 300), *jobs_of(who, 300, scheduler="service")] for who in "ab"]
    cell.run(*both, seconds=31)
    cell.run(jobs_of("c", 300), seconds=65)

    assert {"a": 13, "b": 13, "c": 13} == pytest.approx(dict(cell.cores()), abs=2)


def test_room_is_not_kept_for_long_for_a_kind_that_does_not_take_it() -> None:
    cell = FairCell(QueueOrder.DRF, replicas=1)
    cell.store.agree_on_order("service", "gone", QueueOrder.DRF, lease_ms=10**6)
    cell.run(jobs_of("a", 300), jobs_of("b", 300, scheduler="service"), seconds=15)

    assert {"a": 40} == dict(cell.cores())


@pytest.mark.parametrize("order", FAIR)
@pytest.mark.parametrize("large", [{"cpu_milli": 4_000}, {"tasks": 40, "minimum": 40}], ids=str)
def test_small_jobs_are_placed_behind_one_that_finds_no_room(
    order: QueueOrder, large: dict[str, int]
) -> None:
    cell = FairCell(order)
    fill = a_spec(MACHINES, cpu_milli=3_000)
    cell.run([fill], seconds=2)
    whole = [a_spec(**{"tasks": 1, "cpu_milli": 1_000, "tenant": "a", **large})]  # type: ignore[arg-type]
    _, small = cell.run(whole, [a_spec(tenant="a", cpu_milli=1_000)] * MACHINES, seconds=5)

    assert MACHINES == cell.begun(small)


@pytest.mark.parametrize("order", FAIR)
@pytest.mark.parametrize("zone", ["b", "nowhere"])
def test_a_job_that_waits_for_few_machines_holds_up_nobody_for_long(
    order: QueueOrder, zone: str
) -> None:
    cell = FairCell(order)
    cell.run([a_spec(4, cpu_milli=1_000, constraints=IN_ZONE_B)], seconds=2)
    in_zone = (Constraint("zone", Operator.IN, (zone,)),)
    picky = [a_spec(tenant="a", cpu_milli=1_000, constraints=in_zone)] * 3
    _, others = cell.run(picky, [a_spec(tenant="a", cpu_milli=1_000)] * 20, seconds=20)

    assert 20 == cell.begun(others)


@pytest.mark.parametrize("order", FAIR)
def test_jobs_behind_one_that_has_waited_long_for_few_machines_go_once_one_was_placed(
    order: QueueOrder,
) -> None:
    cell = FairCell(order, replicas=1)
    cell.run([a_spec(4, cpu_milli=1_000, constraints=IN_ZONE_B)], seconds=2)
    picky = a_spec(tenant="a", cpu_milli=1_000, constraints=IN_ZONE_B, duration_ms=10**9)
    ((waiting,),) = cell.run([picky], seconds=60)
    (others,) = cell.run([a_spec(tenant="a", cpu_milli=1_000)] * 16, seconds=PAUSE_S_MAX + 1)

    assert 0 == cell.begun([waiting])
    assert 16 == cell.begun(others)


@pytest.mark.parametrize("order", FAIR)
def test_jobs_without_room_stay_pending_and_those_behind_them_are_not_tried(
    order: QueueOrder,
) -> None:
    cell = FairCell(order, replicas=1)
    ((_, *jobs),) = cell.run(jobs_of("a", 900), seconds=15)
    tried = sum((job := cell.store.job(id_)) is not None and job.attempts > 0 for id_ in jobs)

    assert not cell.store.use().parked_by_reason
    assert 40 <= tried < 80


@pytest.mark.parametrize("order", FAIR)
def test_a_smaller_job_that_comes_later_is_placed_though_nothing_gains_room(
    order: QueueOrder,
) -> None:
    cell = FairCell(order, replicas=1)
    cell.run([a_spec(MACHINES, cpu_milli=3_000, duration_ms=10**9)], seconds=5)
    ((large,),) = cell.run([a_spec(tenant="a", cpu_milli=2_000)], seconds=60)
    (small,) = cell.run(jobs_of("a", 1), seconds=5)

    assert 0 == cell.begun([large])
    assert 1 == cell.begun(small)


@pytest.mark.parametrize("order", FAIR)
@pytest.mark.parametrize(
    "large",
    [
        {"cpu_milli": 4_000},
        {"tasks": 20, "minimum": 20},
        {"gpus": 1},
        {"memory_mib": 5_000},
        {"cpu_milli": 2_000, "constraints": IN_ZONE_B},
    ],
    ids=str,
)
def test_a_small_job_behind_twenty_large_ones_of_its_tenant_is_placed_though_nothing_ends(
    order: QueueOrder, large: dict[str, Any]
) -> None:
    cell = FairCell(order, replicas=1, gpus=1, memory_mib=5_000)
    fill = a_spec(MACHINES, cpu_milli=3_000, gpus=1, memory_mib=1_000, duration_ms=10**9)
    cell.run([fill], seconds=2)
    small = a_spec(tenant="a", cpu_milli=1_000, constraints=large.get("constraints", ()))
    spec = a_spec(**{"tenant": "a", "cpu_milli": 1_000, "duration_ms": 10**9, **large})
    larger, (last,) = cell.run([spec] * 20, [small], seconds=10)

    assert 0 == cell.begun(larger)
    assert 1 == cell.begun([last])


@pytest.mark.parametrize("order", FAIR)
def test_room_that_is_gained_comes_at_once_to_those_who_found_none(order: QueueOrder) -> None:
    begun = []
    for waited_s in (20.0, 20.6, 21.2):  # not in step with the times after which they are tried
        cell = FairCell(order, replicas=1)
        ((base,),) = cell.run([a_spec(MACHINES, cpu_milli=3_000, duration_ms=10**9)], seconds=5)
        ((large,),) = cell.run([a_spec(tenant="a", cpu_milli=2_000)], seconds=waited_s)
        cell.store.cancel(base)
        cell.run(seconds=0.5)
        begun.append(cell.begun([large]))

    assert [1, 1, 1] == begun


@pytest.mark.parametrize("order", FAIR)
def test_jobs_without_room_are_tried_now_and_then_but_seldom(order: QueueOrder) -> None:
    cell = FairCell(order, replicas=1)
    cell.run([a_spec(MACHINES, cpu_milli=3_000, duration_ms=10**9)], seconds=5)
    ((large,),) = cell.run([a_spec(tenant="a", cpu_milli=2_000)], seconds=60)
    job = cell.store.job(large)

    assert job is not None
    assert 10 <= job.attempts <= 20


def test_replicas_of_a_kind_have_one_order() -> None:
    cell = FairCell(QueueOrder.DRF, replicas=1)
    cell.run(seconds=5)
    cell.start(BatchScheduler(), QueueOrder.FIFO, "1")
    with pytest.raises(BadInput, match=r"order: batch/0 has the order drf"):
        cell.run(seconds=1)


def test_the_settings_name_the_order_of_all_kinds() -> None:
    settings = Settings.model_construct(queue_order="drf")
    cell = VirtualCell(a_cell(1), seed=1, settings=settings)
    cell.schedule(BatchScheduler(), "0")
    scheduler = BatchScheduler()
    scheduler.queue_order = QueueOrder.CHOOSY
    cell.schedule(scheduler, "1")
    with pytest.raises(BadInput, match="drf"):
        cell.run(1)


def test_one_seed_gives_one_run() -> None:
    def placed() -> list[tuple[int, ...]]:
        cell = FairCell(QueueOrder.CHOOSY)
        cell.run(jobs_of("a", 300), jobs_of("b", 300), seconds=60)
        live = cell.store.allocations()
        return sorted(zip(live.job.tolist(), live.machine.tolist(), strict=True))

    assert placed() == placed()
