"""Orders of start deadlines by whole processes on a virtual cell: which stage is next."""

import threading
from collections.abc import Sequence

import pytest

from omega.lifecycle.states import State
from omega.model.jobs import JobSpec
from omega.model.lanes import QueueOrder
from omega.model.pipelines import PipelineSpec, PipelineStage, TokenRate
from omega.nodes.virtual import VirtualNodes, nothing_else
from omega.sim.virtual_cell import VirtualCell
from omega.testing.builders import a_cell, a_spec
from schedulers.batch import BatchScheduler

TASK_S = 4
SLOTS = 8
BY_DEADLINES = (QueueOrder.DEADLINE, QueueOrder.EDF)
BY_KEY = tuple(order for order in QueueOrder if order.is_by_key)


def a_pipeline(
    name: str, *stages: JobSpec, within_s: int, tokens: TokenRate | None = None
) -> PipelineSpec:
    """Return a pipeline of stages one after another."""
    names = [f"s{number}" for number in range(len(stages))]
    return PipelineSpec(
        name=name,
        within_ms=within_s * 1_000,
        tokens=tokens,
        stages=tuple(
            PipelineStage(stage, job, tuple(names[at - 1 : at]))
            for at, (stage, job) in enumerate(zip(names, stages, strict=True))
        ),
    )


def a_task(seconds: int = TASK_S, *, cores: int = 1) -> JobSpec:
    return a_spec(cpu_milli=1_000 * cores, duration_ms=1_000 * seconds)


class DeadlineCell:
    """Eight cores, virtual nodes, and replicas that lease in one order."""

    def __init__(self, order: QueueOrder, *, replicas: int = 1) -> None:
        self.cell = VirtualCell(a_cell(2, cpu_milli=4_000), seed=5)
        self.store = self.cell.store
        self.cell.live(
            VirtualNodes(lambda _: None, speedup=1.0).life(threading.Event(), nothing_else)
        )
        for replica in range(replicas):
            scheduler = BatchScheduler()
            scheduler.queue_order = order
            self.cell.schedule(scheduler, str(replica))
        self.run(seconds=1)

    def run(self, *pipelines: PipelineSpec, seconds: float) -> list[int]:
        """Submit pipelines, and let time pass; return their ids."""
        ids = self.store.submit_pipelines(pipelines)
        self.cell.run(self.cell.clock.now() + seconds)
        self.cell.check()
        return ids

    def ended(self, pipelines: Sequence[int]) -> int:
        """Return how many of these have ended."""
        found = [self.store.pipeline(it) for it in pipelines]
        return sum(it is not None and it.finished_ms is not None for it in found)

    def in_order_of_start(self) -> list[int]:
        """Return the jobs that have begun, in the order in which they were leased first."""
        begun = [job for job in self.store.jobs(jobs_max=1_000) if job.first_leased_ms is not None]
        return [job.id for job in sorted(begun, key=lambda job: (job.first_leased_ms, job.id))]


def with_costs(order: QueueOrder, *, replicas: int = 1) -> DeadlineCell:
    """Return a cell in which the costs of tight and lax pipelines are known."""
    cell = DeadlineCell(order, replicas=replicas)
    cell.run(tight(), lax(), seconds=3 * TASK_S)
    assert {"s0", "s1"} == set(cell.store.stage_picos("default", "tight"))
    return cell


def tight() -> PipelineSpec:
    return a_pipeline("tight", a_task(), a_task(), within_s=5 * TASK_S)


def lax() -> PipelineSpec:
    return a_pipeline("lax", a_task(), within_s=1_000 * TASK_S)


@pytest.mark.parametrize("order", BY_DEADLINES)
@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_tight_pipelines_keep_their_target_behind_many_lax_ones(
    order: QueueOrder, replicas: int
) -> None:
    cell = with_costs(order, replicas=replicas)
    cell.run(*[lax()] * 200, seconds=TASK_S)
    late = cell.run(*[tight()] * 4, seconds=5 * TASK_S)

    assert 4 == cell.ended(late)


def test_by_age_they_do_not() -> None:
    cell = with_costs(QueueOrder.FIFO)
    cell.run(*[lax()] * 200, seconds=TASK_S)
    late = cell.run(*[tight()] * 4, seconds=5 * TASK_S)

    assert 0 == cell.ended(late)


@pytest.mark.parametrize(("order", "known"), [(QueueOrder.DEADLINE, True), (QueueOrder.SJF, False)])
def test_small_stages_run_behind_large_ones_that_find_no_room(
    order: QueueOrder,
    known: bool,  # noqa: FBT001 - one of a case
) -> None:
    """Seven of eight cores are free at most, three or four of a machine."""
    cell = DeadlineCell(order)
    hour = a_pipeline("hour", a_task(3_600), within_s=1)
    cell.run(hour, hour, *[lax()] * known, seconds=2)
    cell.run(*[a_pipeline("large", a_task(cores=4), within_s=2)] * 20, seconds=20)
    small = cell.run(a_pipeline("small", a_task(), within_s=9_000), seconds=20)

    assert 1 == cell.ended(small)


@pytest.mark.parametrize("order", BY_DEADLINES)
def test_with_equal_targets_and_costs_stages_go_by_age(order: QueueOrder) -> None:
    cell = with_costs(order)
    before = len(cell.store.jobs(jobs_max=1_000))
    cell.run(*[lax()] * 40, seconds=8 * TASK_S)
    begun = [job for job in cell.in_order_of_start() if job > before]

    assert len(begun) >= 40
    assert sorted(begun) == begun


def test_of_one_stage_and_equal_costs_both_orders_by_deadlines_are_the_same() -> None:
    orders = []
    for order in BY_DEADLINES:
        cell = with_costs(order)
        for within_s in (400, 300, 500, 200, 350) * 8:
            cell.store.submit_pipelines([a_pipeline("lax", a_task(), within_s=within_s)])
        cell.run(seconds=8 * TASK_S)
        orders.append(cell.in_order_of_start())

    assert orders[0] == orders[1]
    assert sorted(orders[0]) != orders[0]


def test_short_stages_go_first_in_the_order_of_the_shortest() -> None:
    cell = with_costs(QueueOrder.SJF)
    cell.run(a_pipeline("short", a_task(1), within_s=900), seconds=2)
    cell.run(*[lax()] * 100, seconds=TASK_S)
    late = cell.run(*[a_pipeline("short", a_task(1), within_s=900)] * 4, seconds=2 * TASK_S)

    assert 4 == cell.ended(late)


def test_sources_that_always_have_work_are_served_in_proportion_to_their_tokens() -> None:
    cell = DeadlineCell(QueueOrder.TOKENS)
    rates = {"a": 1, "b": 2, "c": 5}
    served = dict.fromkeys(rates, 0)
    for _ in range(60):
        specs = [
            a_pipeline(name, a_task(1), within_s=900, tokens=TokenRate(rate, 1_000))
            for name, rate in rates.items()
            for _ in range(2 * rate)
        ]
        cell.run(*specs, seconds=1)
    for it in cell.store.pipelines(pipelines_max=10_000):
        served[it.name] += it.finished_ms is not None

    whole = sum(served.values())
    assert whole > 200
    assert all(abs(served[name] - whole * rate / 8) <= 2 for name, rate in rates.items())


@pytest.mark.parametrize("order", BY_KEY)
def test_a_stage_without_room_stays_pending_and_holds_up_no_smaller_one(order: QueueOrder) -> None:
    cell = DeadlineCell(order)
    blocker = a_pipeline("blocker", a_task(10_000, cores=2), within_s=20_000)
    cell.run(*[blocker] * 3, seconds=2)
    (large,) = cell.run(a_pipeline("large", a_task(cores=3), within_s=1), seconds=1)
    small = cell.run(*[a_pipeline("small", a_task(1), within_s=900)] * 10, seconds=20)
    status = cell.store.pipeline(large)

    assert 10 == cell.ended(small)
    assert status is not None
    assert status.stages[0].state in (State.PENDING, State.PLANNING)
