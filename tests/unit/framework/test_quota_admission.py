"""Whom quotas would let in, job by job; tests/unit/framework/test_waking.py has the whole."""

from collections.abc import Mapping

import numpy as np
import pytest

from omega.framework.quota_admission import QuotaAdmission
from omega.lifecycle.states import ParkReason
from omega.model.arrays import integers
from omega.model.claims import Granularity
from omega.model.jobs import JobSpec
from omega.model.quotas import UNLIMITED, Budget, QuotaScope
from omega.store.leases import ParkedJob
from omega.testing.builders import a_group, a_spec

ANN, BATCH = (QuotaScope.TENANT, "ann"), (QuotaScope.SCHEDULER, "batch")


def parked(
    spec: JobSpec,
    *,
    placed: int = 0,
    running: int = 0,
    reason: ParkReason = ParkReason.OVER_QUOTA,
) -> ParkedJob:
    """Return a job whose first tasks have places or are over."""
    return ParkedJob(
        id=1,
        spec=spec,
        reason=reason,
        unplaced=np.arange(placed, spec.tasks),
        placed_task=np.zeros(0, np.intp),
        placed_machine=integers(),
        placed=placed,
        running=running,
        generation=0,
    )


def admission(
    left: Mapping[Budget, int],
    *,
    batch: Mapping[Budget, int] | None = None,
    granularity: Granularity = Granularity.INCREMENTAL,
) -> QuotaAdmission:
    """Return what is left of ann's quota, and perhaps of that of batch jobs."""
    both = {ANN: left} | ({} if batch is None else {BATCH: batch})
    rows = {whose: [row.get(budget, UNLIMITED) for budget in Budget] for whose, row in both.items()}
    return QuotaAdmission(rows, granularity)


def inside(job: ParkedJob, at: QuotaAdmission) -> list[int]:
    """Return the tasks that would be let in."""
    allowed = at.within(job)
    return [] if allowed is None else allowed.unplaced.tolist()


def test_a_job_needs_enough_of_all_its_quotas_for_one_task() -> None:
    job = parked(a_spec(3, tenant="ann"))

    assert [0, 1, 2] == inside(job, admission({Budget.CPU_MILLI: 1_000}))
    assert [] == inside(job, admission({Budget.CPU_MILLI: 999}))
    assert [] == inside(job, admission({Budget.CPU_MILLI: 1_000}, batch={Budget.CPU_MILLI: 999}))


def test_what_is_overdrawn_lets_in_what_needs_none_of_it() -> None:
    left = {Budget.GPU_SLICES: -500, Budget.CPU_MILLI: 1_000}

    assert [0] == inside(parked(a_spec(tenant="ann")), admission(left))
    assert [] == inside(parked(a_spec(tenant="ann", gpus=1, gpu_slices=1)), admission(left))


def test_gpus_count_over_all_devices() -> None:
    job = parked(a_spec(tenant="ann", gpus=3))

    assert [0] == inside(job, admission({Budget.GPU_SLICES: 3_000}))
    assert [] == inside(job, admission({Budget.GPU_SLICES: 2_999}))


@pytest.mark.parametrize(("placed", "running", "tasks"), [(0, 0, []), (1, 1, [1]), (1, 0, [])])
def test_a_job_counts_unless_something_of_it_runs(
    placed: int, running: int, tasks: list[int]
) -> None:
    job = parked(a_spec(2, tenant="ann"), placed=placed, running=running)

    assert tasks == inside(job, admission({Budget.JOBS: 0}))


def test_only_those_groups_of_a_job_are_looked_at_that_would_be_let_in() -> None:
    groups = [a_group(2, gpus=1), a_group(2), a_group(1, cpu_milli=5_000)]
    job = parked(a_spec(groups=groups, tenant="ann"), placed=1, running=1)

    assert [2, 3] == inside(job, admission({Budget.GPU_SLICES: 0, Budget.CPU_MILLI: 4_000}))
    assert [1, 2, 3, 4] == inside(job, admission({Budget.GPU_SLICES: 1_000}))


def test_a_gang_needs_all_that_it_lacks() -> None:
    groups = [a_group(2), a_group(2, gpus=1)]
    gang = parked(a_spec(groups=groups, minimum=3, tenant="ann"))
    grown = parked(a_spec(groups=groups, minimum=2, tenant="ann"), placed=2, running=2)

    assert [] == inside(gang, admission({Budget.CPU_MILLI: 2_999}))
    assert [] == inside(gang, admission({Budget.GPU_SLICES: 999}))
    assert [0, 1, 2, 3] == inside(
        gang, admission({Budget.CPU_MILLI: 3_000, Budget.GPU_SLICES: 1_000})
    )
    assert [2, 3] == inside(grown, admission({Budget.CPU_MILLI: 1_000}))


def test_where_a_scheduler_commits_all_or_nothing_all_that_waits_counts() -> None:
    job = parked(a_spec(3, tenant="ann"))
    whole = Granularity.ALL_OR_NOTHING

    assert [] == inside(job, admission({Budget.CPU_MILLI: 2_999}, granularity=whole))
    assert [0, 1, 2] == inside(job, admission({Budget.CPU_MILLI: 3_000}, granularity=whole))


def test_who_is_let_in_leaves_less_to_those_behind() -> None:
    at = admission({Budget.CPU_MILLI: 2_500}, batch={Budget.JOBS: 9})
    job = parked(a_spec(8, tenant="ann"))
    admit = 0
    while at.within(job) is not None:
        at.admit(job)
        admit += 1

    assert 2 == admit


@pytest.mark.parametrize(
    "job",
    [
        parked(a_spec(tenant="bob", scheduler="service")),
        parked(a_spec(tenant="ann"), reason=ParkReason.NO_ROOM),
    ],
)
def test_whoever_did_not_meet_a_quota_is_let_in(job: ParkedJob) -> None:
    at = admission({Budget.CPU_MILLI: 0})
    at.admit(job)

    assert job is at.within(job)
