"""Reclaiming by whole processes on a virtual cell: evictions give a tenant its share."""

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest

from omega.config import Settings
from omega.errors import BadInput
from omega.model.jobs import Constraint, JobSpec, Operator
from omega.model.lanes import QueueOrder
from omega.model.machines import Machines
from omega.nodes.virtual import VirtualNodes, nothing_else
from omega.ordering.tenants import Tenant
from omega.sim.virtual_cell import VirtualCell
from omega.testing.builders import a_cell, a_spec, join_cells
from schedulers.batch import BatchScheduler

MACHINES, CORES = 10, 4
EQUAL = a_cell(MACHINES, cpu_milli=CORES * 1_000)
AFTER_S = 5.0
SOON_S = AFTER_S + 12
"""Until room was reclaimed: a job may be tried again only ten seconds after it has found none."""
LONG_MS = 10**9
ABOVE = 10


def jobs_of(tenant: str, jobs: int, *, precedence: int = 0, tasks: int = 1) -> list[JobSpec]:
    """Return jobs whose tasks take a core for good."""
    spec = a_spec(tasks, tenant=tenant, precedence=precedence, cpu_milli=1_000, duration_ms=LONG_MS)
    return [spec] * jobs


class Cell:
    """Machines, by default of forty cores together, and replicas of batch in a fair order."""

    def __init__(
        self,
        *,
        reclaim: float | None = AFTER_S,
        replicas: int = 2,
        order: QueueOrder = QueueOrder.DRF,
        machines: Machines = EQUAL,
    ) -> None:
        self.cell = VirtualCell(machines, seed=7, settings=Settings.model_construct())
        self.store = self.cell.store
        self.cell.live(
            VirtualNodes(lambda _: None, speedup=1.0).life(threading.Event(), nothing_else)
        )
        for replica in range(replicas):
            scheduler = BatchScheduler()
            scheduler.queue_order = order
            scheduler.reclaim_after_s = reclaim
            self.cell.schedule(scheduler, str(replica))

    def run(self, *jobs: Sequence[JobSpec], seconds: float) -> list[list[int]]:
        """Submit lists of jobs, and let time pass; return their ids."""
        ids = [self.store.submit(specs) for specs in jobs]
        self.cell.run(self.cell.clock.now() + seconds)
        self.cell.check()
        return ids

    def tasks(self) -> Counter[str]:
        """Return how many tasks of each tenant run."""
        found = [self.store.job(job) for job in self.store.allocations().job.tolist()]
        return Counter(job.tenant for job in found if job is not None)

    def evicted(self, jobs: Sequence[int]) -> int:
        """Return how many of these jobs were evicted at some time."""
        found = [self.store.job(job) for job in jobs]
        return sum(job is not None and job.evicted_by is not None for job in found)


def test_without_it_nobody_makes_way() -> None:
    cell = Cell(reclaim=None)
    cell.run(jobs_of("a", 100), seconds=10)
    cell.run(jobs_of("b", 100, precedence=ABOVE), seconds=4 * SOON_S)

    assert {"a": 40} == cell.tasks()


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_a_tenant_below_its_share_gets_it_and_no_more(replicas: int) -> None:
    cell = Cell(replicas=replicas)
    (first,) = cell.run(jobs_of("a", 100), seconds=10)
    cell.run(jobs_of("b", 100, precedence=ABOVE), seconds=AFTER_S - 1)
    assert {"a": 40} == cell.tasks()

    cell.run(seconds=4 * SOON_S)

    assert {"a": 20, "b": 20} == cell.tasks()
    assert 20 == cell.evicted(first)
    cell.run(seconds=4 * SOON_S)
    assert 20 == cell.evicted(first)


def test_jobs_of_a_precedence_that_is_not_higher_evict_nobody() -> None:
    cell = Cell()
    cell.run(jobs_of("a", 100), seconds=10)
    cell.run(jobs_of("b", 100, precedence=ABOVE - 1), seconds=4 * SOON_S)

    assert {"a": 40} == cell.tasks()


def test_a_job_of_many_tasks_gets_its_tenants_share_too() -> None:
    cell = Cell()
    cell.run(jobs_of("a", 1, tasks=40), seconds=10)
    cell.run(jobs_of("b", 1, tasks=60, precedence=ABOVE), seconds=4 * SOON_S)

    assert {"a": 20, "b": 20} == cell.tasks()


def test_a_gang_gets_room_only_if_all_of_it_is_within_the_share() -> None:
    for tasks, gets in ((20, 20), (21, 0)):
        cell = Cell()
        cell.run(jobs_of("a", 100), seconds=10)
        gang = a_spec(
            tasks, minimum=tasks, tenant="b", precedence=ABOVE, duration_ms=LONG_MS, cpu_milli=1_000
        )
        cell.run([gang], seconds=4 * SOON_S)

        assert gets == cell.tasks()["b"]


def test_gangs_fall_as_a_whole() -> None:
    cell = Cell()
    gang = a_spec(4, minimum=4, tenant="a", duration_ms=LONG_MS, cpu_milli=1_000)
    cell.run([gang] * 10, seconds=10)
    cell.run(jobs_of("b", 20, precedence=ABOVE), seconds=4 * SOON_S)

    assert {"a": 20, "b": 20} == cell.tasks()


def test_a_gang_that_its_tenant_would_be_below_without_does_not_fall() -> None:
    cell = Cell()
    gang = a_spec(21, minimum=21, tenant="a", duration_ms=LONG_MS, cpu_milli=1_000)
    cell.run([gang], jobs_of("a", 19), seconds=10)
    assert {"a": 40} == cell.tasks()
    cell.run(jobs_of("b", 20, precedence=ABOVE), seconds=4 * SOON_S)

    assert {"a": 21, "b": 19} == cell.tasks()


@pytest.mark.parametrize("order", [QueueOrder.DRF, QueueOrder.CHOOSY])
def test_room_is_made_on_whole_machines_where_tasks_are_large(order: QueueOrder) -> None:
    """Those that began last run on all machines; only some of them make room for a task."""
    cell = Cell(order=order)
    cell.run(jobs_of("a", 100), seconds=10)
    large = replace(jobs_of("b", 1, precedence=ABOVE)[0].groups[0], cpu_milli=CORES * 1_000)
    spec = replace(jobs_of("b", 1, precedence=ABOVE)[0], groups=(large,))
    cell.run([spec] * 8, seconds=8 * SOON_S)

    assert {"a": 20, "b": 5} == cell.tasks()


@pytest.mark.parametrize("replicas", [1, 3])
def test_those_with_most_make_way_first(replicas: int) -> None:
    cell = Cell(replicas=replicas)
    cell.run(jobs_of("a", 30), seconds=10)
    cell.run(jobs_of("c", 10), seconds=10)
    assert {"a": 30, "c": 10} == cell.tasks()
    cell.run(jobs_of("b", 40, precedence=ABOVE), seconds=4 * SOON_S)

    assert {"a": 15, "b": 15, "c": 10} == cell.tasks()


@pytest.mark.parametrize("replicas", [1, 2])
def test_of_two_above_their_shares_the_one_with_more_makes_way(replicas: int) -> None:
    cell = Cell(replicas=replicas)
    cell.run(jobs_of("a", 25), seconds=10)
    cell.run(jobs_of("c", 15), seconds=10)
    cell.run(jobs_of("b", 5, precedence=ABOVE), seconds=4 * SOON_S)

    assert {"a": 20, "b": 5, "c": 15} == cell.tasks()


def test_a_tenant_at_its_share_keeps_it_where_one_with_more_is_not_looked_at() -> None:
    """For a job of one task 66 of 101 machines are looked at, often without that of `a`."""
    machines = join_cells(
        a_cell(1, cpu_milli=400_000, memory_mib=10**6, attributes={"zone": ["a"]}),
        a_cell(100, cpu_milli=1_000, first=2, attributes={"zone": ["c"] * 100}),
    )
    cell = Cell(machines=machines)
    for tenant, tasks in (("a", 400), ("c", 100)):
        (spec,) = jobs_of(tenant, 1, tasks=tasks)
        in_zone = (Constraint("zone", Operator.IN, (tenant,)),)
        cell.run([replace(spec, groups=(replace(spec.groups[0], constraints=in_zone),))], seconds=9)
    assert {"a": 400, "c": 100} == cell.tasks()
    cell.run(jobs_of("b", 250, precedence=ABOVE), seconds=8 * SOON_S)

    assert {"a": 200, "b": 200, "c": 100} == cell.tasks()


def test_what_holds_nothing_of_what_is_lacking_stays() -> None:
    """A gang has all GPUs. Other tasks of its tenant began later, and hold none."""
    cell = Cell(machines=a_cell(MACHINES, cpu_milli=CORES * 1_000, gpus=1))
    gang = a_spec(
        10, minimum=10, tenant="a", cpu_milli=1_000, gpus=1, gpu_slices=1_000, duration_ms=LONG_MS
    )
    cell.run([gang], seconds=10)
    cell.run(jobs_of("a", 30), seconds=10)
    assert {"a": 40} == cell.tasks()
    one = replace(gang, tenant="b", precedence=ABOVE, minimum=0)
    one = replace(one, groups=(replace(one.groups[0], tasks=1),))
    cell.run([one], seconds=4 * SOON_S)

    assert {"a": 30, "b": 1} == cell.tasks()


def test_large_and_small_tasks_of_a_job_count_by_what_each_needs() -> None:
    cell = Cell()
    cell.run(jobs_of("a", 100), seconds=10)
    spec = jobs_of("b", 1, precedence=ABOVE)[0]
    large = replace(spec.groups[0], tasks=6, cpu_milli=CORES * 1_000)
    small = replace(spec.groups[0], tasks=36, cpu_milli=500)
    cell.run([replace(spec, groups=(large, small))], seconds=8 * SOON_S)

    used = cell.store.sum_use()
    assert used["b"][0] <= used["a"][0]
    assert used["b"][0] >= 16_000


def test_weights_and_parents_are_respected() -> None:
    cell = Cell()
    for tenant in (Tenant("org", 3), Tenant("x", 2, "org"), Tenant("y", 1, "org")):
        cell.store.set_tenant(tenant)
    cell.run(jobs_of("other", 100), seconds=10)
    cell.run(
        jobs_of("x", 100, precedence=ABOVE), jobs_of("y", 100, precedence=ABOVE), seconds=6 * SOON_S
    )

    assert {"x": 20, "y": 10, "other": 10} == dict(cell.tasks())


def test_an_order_that_compares_no_shares_refuses_it() -> None:
    cell = VirtualCell(a_cell(1), seed=1, settings=Settings.model_construct())
    scheduler = BatchScheduler()
    scheduler.reclaim_after_s = 1.0
    cell.schedule(scheduler, "0")
    with pytest.raises(BadInput, match="the order of batch is fifo"):
        cell.run(1)
