"""What a process knows of shares while its attempts evict for a tenant."""

from collections.abc import Generator
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from omega.framework.reclaiming import LEASE_MS, Reclaiming
from omega.model.arrays import integers
from omega.model.claims import Evictions
from omega.model.jobs import LeasedJob
from omega.testing.builders import a_claim, a_spec
from omega.testing.steps import a_running_job
from tests.unit.framework.test_fair_queue import CORES, Bed, some

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
    assert {"a": CORES} == cores(bed)

    reclaiming.charge(jobs[0], 1)
    assert {"a": CORES, "b": 1} == cores(bed)
    reclaiming.charge(jobs[1], 1)
    reclaiming.charge(jobs[0], 0)
    assert {"a": CORES, "b": 1} == cores(bed)

    bed.find_no_room(jobs)
    assert {"a": CORES} == cores(bed)


def test_what_was_evicted_is_used_no_more(bed: Bed, reclaiming: Reclaiming) -> None:
    leased(bed)
    bed.wait(*some("b", 1))
    occupants = bed.store.occupants(integers([1]))
    three = Evictions(integers([0] * 3), occupants.job[:3], occupants.task[:3])
    reclaiming.note(occupants, a_claim())
    assert {"a": CORES} == cores(bed)

    reclaiming.note(occupants, replace(a_claim(), evictions=three))
    assert {"a": CORES - 3} == cores(bed)

    bed.wait_for_a_gap()
    bed.lanes()
    assert {"a": CORES} == cores(bed)
