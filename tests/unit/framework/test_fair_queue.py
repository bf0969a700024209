"""From which lanes a process leases, on a store in memory whose clock stands still."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from omega.cell.view import View
from omega.clock import ManualClock
from omega.framework.attention import WINDOW_S
from omega.framework.effects import Call, Effects, Refresh
from omega.framework.fair_queue import JOBS_LEASED_MIN, LEFT_TO_OTHERS_S, FairQueue
from omega.framework.job_attempt import AttemptEnd, JobResult
from omega.lifecycle.states import ParkReason
from omega.model.jobs import Constraint, JobSpec, LeasedJob, Operator
from omega.model.lanes import Lane, QueueOrder
from omega.placement.diagnosis import Diagnosis
from omega.store.leases import HandBack, Parking
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_spec
from omega.testing.steps import LONG_MS, a_running_job, add_a_cell, end

GAP_MS = 50
CORES = 20
NEVER_FITS = Diagnosis(ParkReason.NEVER_FITS, "it is too large")
IN_ZONE_B = (Constraint("zone", Operator.IN, ("b",)),)


def attempted(
    job: LeasedJob,
    ending: AttemptEnd = AttemptEnd.NO_ROOM,
    diagnosis: Diagnosis | None = None,
) -> JobResult:
    """Return the result of an attempt that placed nothing."""
    tasks = len(job.unplaced)
    return JobResult(
        job=job, placed=0, tries=1, tasks_decided=tasks, ending=ending, diagnosis=diagnosis
    )


class Bed:
    """A queue of the kind batch, its store, and who answers its effects."""

    def __init__(self, order: QueueOrder = QueueOrder.DRF, *, preempts: bool = False) -> None:
        self.clock = ManualClock(now=1_000.0)
        self.store = MemoryStore(self.clock)
        add_a_cell(self.store, 1, cpu_milli=CORES * 1_000)
        self.queue = FairQueue("batch", order, self.clock, GAP_MS, preempts=preempts)
        self.reads = 0
        """How often lanes were read."""

    def answer(self, effects: Effects[Any]) -> Any:  # noqa: ANN401 - whatever is returned
        """Run a generator of effects."""
        answer: object = None
        try:
            while True:
                match effects.send(answer):
                    case Call() as call:
                        self.reads += call.operation == "lanes"
                        answer = call.make(self.store)
                    case Refresh():
                        answer = View(self.store.snapshot())
        except StopIteration as over:
            return over.value

    def use(self, **cores: int) -> None:
        """Have tenants use so many cores."""
        for tenant, number in cores.items():
            a_running_job(self.store, a_spec(number, tenant=tenant), [1] * number)

    def wait(self, *specs: JobSpec) -> list[int]:
        """Submit jobs."""
        return self.store.submit(specs)

    def lanes(self, jobs_max: int = 64) -> dict[str, int]:
        """Return how many jobs are to be leased of each tenant."""
        found: dict[Lane, int] = self.answer(self.queue.lanes(jobs_max))
        jobs: dict[str, int] = {}
        for lane, count in found.items():
            jobs[lane.tenant] = jobs.get(lane.tenant, 0) + count
        return jobs

    def lease(self, jobs_max: int = 64) -> list[LeasedJob]:
        """Lease the next jobs."""
        lanes = self.answer(self.queue.lanes(jobs_max))
        jobs = self.store.lease(
            "batch", holder="0", jobs_max=jobs_max, lease_ms=LONG_MS, lanes=lanes
        )
        return self.queue.took(lanes, jobs)

    def find_no_room(self, jobs: Sequence[LeasedJob]) -> None:
        """Have an attempt at these jobs find no room, and hand them back."""
        self.queue.note([attempted(job) for job in jobs])
        self.store.hand_back([HandBack(job.id, job.token, 0, progressed=False) for job in jobs])

    def wait_for_a_gap(self) -> None:
        self.clock.advance((GAP_MS + 10) / 1_000)


def some(tenant: str, jobs: int, **asked: Any) -> list[JobSpec]:  # noqa: ANN401 - fields of a group
    return [a_spec(tenant=tenant, **asked)] * jobs


@pytest.fixture
def bed() -> Bed:
    return Bed()


def test_an_empty_queue_has_no_lanes(bed: Bed) -> None:
    assert {} == bed.lanes()


def test_the_tenant_with_the_smaller_share_is_served_until_shares_are_equal(bed: Bed) -> None:
    bed.use(a=6)
    bed.wait(*some("a", 50), *some("b", 50))

    assert {"b": 6} == bed.lanes(6)
    assert {"a": 2, "b": 8} == bed.lanes(10)


@pytest.mark.parametrize(("used", "leased"), [(8, 12), (16, JOBS_LEASED_MIN), (CORES, 8)])
def test_no_more_jobs_are_leased_than_there_is_room_for_but_some_are(
    bed: Bed, used: int, leased: int
) -> None:
    bed.use(a=used)
    bed.wait(*some("b", 50))

    assert {"b": leased} == bed.lanes()


def test_a_scheduler_that_preempts_leases_as_many_as_it_wants() -> None:
    bed = Bed(preempts=True)
    bed.use(a=CORES)
    bed.wait(*some("b", 50))

    assert {"b": 64} == bed.lanes()


def test_lanes_are_read_once_a_gap(bed: Bed) -> None:
    bed.wait(*some("a", 50))
    for _ in range(3):
        bed.lanes()
    assert 1 == bed.reads
    bed.wait_for_a_gap()
    bed.lanes()

    assert 2 == bed.reads


def test_lanes_are_read_at_once_if_a_lease_found_fewer_jobs(bed: Bed) -> None:
    bed.wait(*some("a", 3))
    assert 3 == len(bed.lease())
    bed.lanes()

    assert 2 == bed.reads


def test_what_was_leased_counts_until_use_is_summed_up_anew(bed: Bed) -> None:
    bed.wait(*some("a", 9), *some("b", 9))
    taken = bed.lease(5)

    assert ["a", "b", "a", "b", "a"] == [job.spec.tenant for job in taken]
    assert {"b": 1} == bed.lanes(1)
    bed.wait_for_a_gap()
    assert {"a": 1} == bed.lanes(1)


def test_the_charge_for_what_was_not_placed_is_taken_back(bed: Bed) -> None:
    bed.wait(*some("a", 9), *some("b", 9))
    (first,) = bed.lease(1)
    bed.queue.note([attempted(first, AttemptEnd.LEASE_LOST)])

    assert "a" == first.spec.tenant
    assert {"a": 1} == bed.lanes(1)


def test_a_patient_job_does_not_hold_up_others_of_its_lane(bed: Bed) -> None:
    bed.wait(*some("a", 3, cpu_milli=CORES * 1_000))
    (first,) = bed.lease(1)
    bed.queue.note([replace(attempted(first), patience_ms=9_000)])
    assert {"a": 1} == bed.lanes(1)
    bed.queue.note([attempted(first)])

    assert {} == bed.lanes(1)


def test_the_time_that_a_tenant_took_of_the_scheduler_counts_as_a_share(bed: Bed) -> None:
    bed.use(b=8)
    bed.wait(*some("a", 50, cpu_milli=0), *some("b", 50))
    taken = bed.lease(8)
    bed.clock.advance(WINDOW_S / 2)
    bed.queue.note([attempted(job, AttemptEnd.DONE) for job in taken])

    assert {"a"} == {job.spec.tenant for job in taken}
    assert {"b"} == bed.lanes(1).keys()
    bed.clock.advance(WINDOW_S)
    assert {"a"} == bed.lanes(1).keys()


@pytest.mark.parametrize(("order", "others"), [(QueueOrder.DRF, 0), (QueueOrder.CHOOSY, 8)])
def test_who_waits_for_a_job_without_room_depends_on_the_order(
    order: QueueOrder, others: int
) -> None:
    bed = Bed(order)
    bed.use(z=CORES)
    bed.wait(*some("a", 9, constraints=IN_ZONE_B))
    bed.find_no_room(bed.lease(1))
    bed.wait(*some("a", 9))
    bed.wait_for_a_gap()

    assert others == bed.lanes().get("a", 0)


@pytest.mark.parametrize("order", [QueueOrder.DRF, QueueOrder.CHOOSY])
def test_larger_jobs_of_another_lane_without_constraints_are_passed_over_too(
    order: QueueOrder,
) -> None:
    bed = Bed(order)
    bed.use(z=CORES)
    bed.wait(*some("a", 1, cpu_milli=2_000))
    bed.find_no_room(bed.lease(1))
    bed.wait(*some("a", 3, cpu_milli=9_000), *some("a", 4, cpu_milli=100))
    bed.wait_for_a_gap()
    lanes = bed.answer(bed.queue.lanes(8))

    assert [Lane.of(a_spec(tenant="a", cpu_milli=100))] == list(lanes)


def test_a_job_that_never_fits_holds_up_nobody(bed: Bed) -> None:
    bed.use(z=CORES)
    bed.wait(*some("a", 9))
    (job,) = bed.lease(1)
    bed.queue.note([attempted(job, diagnosis=NEVER_FITS)])

    assert {"a": 8} == bed.lanes()


def test_a_gain_of_room_lets_everybody_go(bed: Bed) -> None:
    running = a_running_job(bed.store, a_spec(CORES, tenant="z"), [1] * CORES)
    bed.wait(*some("a", 9))
    bed.find_no_room(bed.lease(1))
    bed.wait_for_a_gap()
    before = bed.lanes()
    end(bed.store, running, 0)
    bed.wait_for_a_gap()

    assert {} == before
    assert {"a": 8} == bed.lanes()


def test_room_is_left_to_a_poorer_tenant_of_another_kind_for_a_second(bed: Bed) -> None:
    bed.store.agree_on_order("service", "0", QueueOrder.DRF, lease_ms=LONG_MS)
    bed.use(a=4)
    bed.wait(*some("a", 50), *[a_spec(tenant="b", scheduler="service")] * 9)
    first = bed.lanes(4)
    bed.clock.advance(LEFT_TO_OTHERS_S)

    assert {} == first
    assert {"a": 4} == bed.lanes(4)


def test_room_is_not_left_to_jobs_of_another_kind_that_fit_on_no_machine(bed: Bed) -> None:
    bed.store.agree_on_order("service", "0", QueueOrder.DRF, lease_ms=LONG_MS)
    bed.use(a=4)
    large, picky = {"cpu_milli": 17_000}, {"constraints": IN_ZONE_B}
    bed.wait(*some("a", 50))
    for asked in (large, picky):
        bed.wait(a_spec(tenant="b", scheduler="service", **asked))

    assert {"a": 4} == bed.lanes(4)


def test_parked_jobs_are_woken_in_fair_order(bed: Bed) -> None:
    bed.use(a=4, b=2)
    ids = bed.wait(*some("a", 2), *some("b", 2), *some("c", 2))
    jobs = bed.store.lease("batch", holder="0", jobs_max=9, lease_ms=LONG_MS)
    bed.store.park([Parking(job.id, job.token, ParkReason.NO_ROOM, "") for job in jobs])
    parked = bed.store.parked("batch", jobs_max=9)
    view = View(bed.store.snapshot())
    in_order = bed.answer(bed.queue.parked_in_order(parked, view))

    assert sorted(ids) == sorted(job.id for job in in_order)
    assert ["c", "c", "b", "b", "a", "a"] == [job.spec.tenant for job in in_order]
