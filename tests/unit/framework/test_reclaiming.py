"""What a process knows of shares while its attempts evict for a tenant."""

from collections.abc import Generator
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from omega.cell.view import View
from omega.framework.job_attempt import AttemptEnd
from omega.framework.reclaiming import LEASE_MS, Reclaiming
from omega.model.arrays import integers
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob, TaskGroup
from omega.model.lanes import Lane
from omega.testing.builders import a_spec
from omega.testing.steps import a_running_job
from tests.unit.framework.test_fair_queue import CORES, Bed, attempted, some

ANOTHER = UUID(int=77)


@pytest.fixture
def bed() -> Bed:
    """Return a full cell of one tenant."""
    bed = Bed()
    bed.use(a=CORES)
    return bed


@pytest.fixture
def reclaiming(bed: Bed) -> Reclaiming:
    return Reclaiming(bed.queue, bed.clock, "batch", "0", UUID(int=1), after_ms=5_000)


def cores(bed: Bed) -> dict[str, int]:
    """Return how many cores each tenant is taken to use."""
    shares = bed.queue.shares()
    assert shares is not None
    used = (shares.use[:, 0] // 1_000).tolist()
    return {name: number for name, number in zip(shares.nodes.names, used, strict=True) if number}


def may(bed: Bed, reclaiming: Reclaiming, job: LeasedJob) -> bool:
    effects: Generator[Any, Any, bool] = reclaiming.may(job)
    return bool(bed.answer(effects))


def leased(bed: Bed, *, after_s: float = 5.0, jobs: int = 1) -> list[LeasedJob]:
    """Return jobs of another tenant, leased so long after they were submitted."""
    bed.wait(*some("b", jobs, precedence=10))
    bed.clock.advance(after_s)
    return bed.lease()


def test_a_job_may_evict_after_the_time_that_was_set(bed: Bed, reclaiming: Reclaiming) -> None:
    (early,) = leased(bed, after_s=4.9)
    (late,) = leased(bed)

    assert not may(bed, reclaiming, early)
    assert may(bed, reclaiming, late)


def test_a_job_whose_tenant_has_as_much_asks_for_no_lease(bed: Bed, reclaiming: Reclaiming) -> None:
    bed.wait(*some("a", 1, precedence=10))
    bed.clock.advance(5)
    (job,) = bed.lease()

    assert not may(bed, reclaiming, job)
    assert bed.store.lease_reclaim("batch", "1", holder=ANOTHER, lease_ms=1)


def test_nobody_evicts_while_another_process_has_the_lease(
    bed: Bed, reclaiming: Reclaiming
) -> None:
    (job,) = leased(bed)
    assert bed.store.lease_reclaim("batch", "1", holder=ANOTHER, lease_ms=1_000)
    assert not may(bed, reclaiming, job)

    bed.clock.advance(1)
    assert may(bed, reclaiming, job)
    assert not bed.store.lease_reclaim("batch", "1", holder=ANOTHER, lease_ms=1_000)


def test_use_is_summed_up_anew_once_the_lease_is_held(bed: Bed, reclaiming: Reclaiming) -> None:
    (job,) = leased(bed)
    assert bed.store.lease_reclaim("batch", "1", holder=ANOTHER, lease_ms=1)
    bed.clock.advance(0.01)
    # What the other has done meanwhile gave the job's tenant all that there is.
    (of_a,) = set(bed.store.allocations().job.tolist())
    bed.store.cancel(of_a)
    a_running_job(bed.store, a_spec(CORES, tenant="b"), [1] * CORES)

    assert not may(bed, reclaiming, job)
    assert {"b": CORES} == cores(bed)


def test_one_that_has_lost_the_lease_has_to_get_it_again_and_reads_use_anew(
    bed: Bed, reclaiming: Reclaiming
) -> None:
    (job,) = leased(bed)
    assert may(bed, reclaiming, job)
    bed.clock.advance(LEASE_MS / 1_000)
    assert bed.store.lease_reclaim("batch", "1", holder=ANOTHER, lease_ms=1_000)
    assert not may(bed, reclaiming, job)

    bed.clock.advance(1)
    (of_a,) = set(bed.store.allocations().job.tolist())
    assert 5 == bed.store.end_tasks(integers([of_a] * 5), np.arange(5))
    assert may(bed, reclaiming, job)
    assert {"a": CORES - 5} == cores(bed)


def test_the_lease_is_renewed_while_jobs_evict(bed: Bed, reclaiming: Reclaiming) -> None:
    (job,) = leased(bed)
    for _ in range(5):
        assert may(bed, reclaiming, job)
        bed.clock.advance(0.35 * LEASE_MS / 1_000)
        assert not bed.store.lease_reclaim("batch", "1", holder=ANOTHER, lease_ms=1_000)


def test_leased_jobs_count_by_what_their_attempts_have_claimed(
    bed: Bed, reclaiming: Reclaiming
) -> None:
    jobs = leased(bed, jobs=3)
    all_of_it, nothing = jobs[0].unplaced, jobs[0].unplaced[:0]
    assert {"a": CORES} == cores(bed)

    reclaiming.charge(jobs[0], nothing)
    assert {"a": CORES, "b": 1} == cores(bed)
    reclaiming.charge(jobs[1], nothing)
    reclaiming.charge(jobs[0], all_of_it)
    assert {"a": CORES, "b": 1} == cores(bed)

    bed.find_no_room(jobs)
    assert {"a": CORES} == cores(bed)


def test_tasks_of_unequal_groups_count_by_what_each_needs(bed: Bed, reclaiming: Reclaiming) -> None:
    groups = (TaskGroup(tasks=1, cpu_milli=6_000), TaskGroup(tasks=3, cpu_milli=1_000))
    bed.wait(replace(a_spec(tenant="b", precedence=10), groups=groups))
    bed.clock.advance(5)
    (job,) = bed.lease()

    reclaiming.charge(job, np.array([3, 2, 1]))
    assert {"a": CORES, "b": 6} == cores(bed)
    reclaiming.charge(job, np.array([0, 1]))
    assert {"a": CORES, "b": 2} == cores(bed)


def evict(bed: Bed, reclaiming: Reclaiming, job: LeasedJob) -> Claims:
    """Return the claims of a job on the machine of the cell, with evictions."""
    view = View(bed.store.snapshot())
    occupants = bed.store.occupants(integers([1]))
    return reclaiming.place(view, job, integers([1]), occupants, np.random.default_rng(1))


def test_what_was_evicted_is_used_no_more(bed: Bed, reclaiming: Reclaiming) -> None:
    bed.wait(a_spec(3, tenant="b", precedence=10))
    bed.clock.advance(5)
    (job,) = bed.lease()

    assert 3 == len(evict(bed, reclaiming, job).evictions)
    assert {"a": CORES - 3} == cores(bed)


def test_what_an_attempt_did_counts_until_use_was_summed_up_after_it(
    bed: Bed, reclaiming: Reclaiming
) -> None:
    """Another replica may have summed it up between the lease and the commit."""
    jobs = leased(bed, jobs=2)
    bed.wait(*some("b", 1))
    reclaiming.charge(jobs[0], jobs[0].unplaced[:0])
    assert 1 == len(evict(bed, reclaiming, jobs[0]).evictions)
    bed.clock.advance(0.1)
    bed.store.tenant_use(age_ms_max=0)
    bed.clock.advance(0.01)
    done = replace(
        attempted(replace(jobs[0], unplaced=jobs[0].unplaced[:0]), AttemptEnd.DONE), placed=1
    )
    bed.queue.note([done, attempted(jobs[1])])
    assert {"a": CORES - 1, "b": 1} == cores(bed)

    bed.clock.advance(0.03)
    bed.queue.took({Lane("b", 0): 1}, [])
    bed.lanes()
    assert {"a": CORES - 1, "b": 1} == cores(bed)

    bed.wait_for_a_gap()
    bed.lanes()
    assert {"a": CORES} == cores(bed)
