"""Quotas in the middle of a commit; tests/property/test_judge.py compares with the slow twin."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
import pytest

from omega.cell.quota_balances import NO_QUOTA_BALANCES, QuotaBalances
from omega.model.arrays import integers
from omega.model.claims import Transaction
from omega.model.quotas import UNLIMITED, Budget
from omega.model.resources import KINDS, amounts
from omega.testing.builders import (
    a_claim,
    a_job,
    a_transaction,
    claims_of_job,
    or_on,
    some_claims,
)

CORE = amounts(cpu_milli=1_000)
Left = Mapping[Budget, int]


def balances(
    *left: Left,
    drawn_by: Mapping[int, Sequence[int]],
    running: Mapping[int, int] | None = None,
) -> QuotaBalances:
    """Return quotas with so much left, who draws on which, and how many tasks they run, or one."""
    return QuotaBalances(
        integers([[row.get(budget, UNLIMITED) for budget in Budget] for row in left]),
        {job: tuple(rows) for job, rows in drawn_by.items()},
        dict.fromkeys(drawn_by, 1) | dict(running or {}),
    )


def cores(*jobs: tuple[int, int]) -> Transaction:
    """Return a transaction in which these jobs ask for so many tasks of one core."""
    return a_transaction(
        *(claims_of_job(a_job(n, job=job), some_claims(range(n), [1] * n)) for job, n in jobs)
    )


def after(
    before: QuotaBalances, job: int, *, evicted: Collection[int] = (), cpu_milli: int = 1_000
) -> QuotaBalances | None:
    """Return the accounts once a job took so much and tasks of one core of other jobs fell."""
    given_back = np.tile(CORE, (len(evicted), 1)).reshape(-1, KINDS)
    return before.after(job, amounts(cpu_milli=cpu_milli), integers(list(evicted)), given_back)


def left_in(there: QuotaBalances | None, budget: Budget) -> list[int]:
    assert there is not None
    left: list[int] = there.left[:, budget].tolist()
    return left


class TestCover:
    """Whether a quota may refuse any claim at all."""

    def test_without_quotas_there_is_nothing_to_refuse(self) -> None:
        assert NO_QUOTA_BALANCES.cover(cores((1, 5)))

    @pytest.mark.parametrize(("left", "covered"), [(3_000, True), (2_999, False)])
    def test_all_claims_of_all_jobs_count_together(self, left: int, *, covered: bool) -> None:
        there = balances({Budget.CPU_MILLI: left}, drawn_by={1: [0], 2: [0]})

        assert covered == there.cover(cores((1, 2), (2, 1), (3, 9)))

    def test_every_quota_of_a_job_must_cover_it(self) -> None:
        tenant, kind = {Budget.CPU_MILLI: 5_000}, {Budget.CPU_MILLI: 1_000}

        assert balances(tenant, kind, drawn_by={1: [0, 1]}).cover(cores((1, 1)))
        assert not balances(tenant, kind, drawn_by={1: [0, 1]}).cover(cores((1, 2)))

    @pytest.mark.parametrize(("left", "covered"), [(3_000, True), (2_999, False)])
    def test_alternates_count_as_if_asked_for_as_well(self, left: int, *, covered: bool) -> None:
        claims = or_on(some_claims([0, 1], [1, 1]), (0, 2))
        there = balances({Budget.CPU_MILLI: left}, drawn_by={1: [0]})

        assert covered == there.cover(a_transaction(claims_of_job(a_job(2), claims)))

    @pytest.mark.parametrize(("running", "covered"), [(0, False), (1, True)])
    def test_a_job_counts_if_nothing_of_it_runs(self, running: int, *, covered: bool) -> None:
        there = balances({Budget.JOBS: 1}, drawn_by={1: [0], 2: [0]}, running={1: 0, 2: running})

        assert covered == there.cover(cores((1, 3), (2, 3)))

    def test_what_is_overdrawn_covers_what_needs_none_of_it(self) -> None:
        there = balances({Budget.GPU_SLICES: -500}, drawn_by={1: [0]})

        assert there.cover(cores((1, 3)))
        assert not there.cover(a_transaction(claims_of_job(a_job(), a_claim(gpu_3=1))))


class TestAfter:
    """What one exchange leaves."""

    def test_without_quotas_nothing_changes(self) -> None:
        assert NO_QUOTA_BALANCES is after(NO_QUOTA_BALANCES, 1, evicted=[2])

    def test_a_claim_is_charged_to_all_quotas_of_its_job_and_to_no_other(self) -> None:
        before = balances(*[{Budget.CPU_MILLI: 1_000}] * 3, drawn_by={1: [0, 2], 2: [1]})

        assert [0, 1_000, 0] == left_in(after(before, 1), Budget.CPU_MILLI)
        assert [1_000] * 3 == left_in(before, Budget.CPU_MILLI), "accounts are never changed"
        assert after(before, 1, cpu_milli=1_001) is None

    def test_a_job_is_charged_for_its_first_task_alone(self) -> None:
        before = balances({Budget.JOBS: 1}, drawn_by={1: [0], 2: [0]}, running={1: 0, 2: 0})
        first = after(before, 1)
        assert first is not None

        assert [0] == left_in(after(first, 1), Budget.JOBS)
        assert after(first, 2) is None

    def test_what_falls_gives_back_to_its_own_quotas(self) -> None:
        before = balances(
            {Budget.CPU_MILLI: 0}, {Budget.CPU_MILLI: 0}, drawn_by={1: [0], 2: [0], 3: [1]}
        )

        assert [1_000, 0] == left_in(after(before, 1, evicted=[2, 2]), Budget.CPU_MILLI)
        assert after(before, 1, evicted=[3, 3]) is None, "ann gains nothing from what bob loses"

    @pytest.mark.parametrize(("running", "left"), [(2, 1), (3, 0)])
    def test_a_job_that_loses_its_last_task_gives_its_place_back(
        self, running: int, left: int
    ) -> None:
        before = balances({Budget.JOBS: 0}, drawn_by={1: [0], 2: [0]}, running={2: running})

        assert [left] == left_in(after(before, 1, evicted=[2, 2]), Budget.JOBS)

    def test_a_job_that_moves_its_only_task_keeps_its_place(self) -> None:
        before = balances({Budget.JOBS: 0, Budget.CPU_MILLI: 0}, drawn_by={1: [0]})

        moved = after(before, 1, evicted=[1])

        assert [0] == left_in(moved, Budget.JOBS) == left_in(moved, Budget.CPU_MILLI)
        assert moved is not None
        assert 1 == moved.running[1]

    def test_what_is_overdrawn_may_be_drawn_on_for_no_more_than_falls(self) -> None:
        before = balances({Budget.CPU_MILLI: -5_000}, drawn_by={1: [0], 2: [0]})

        assert [-5_000] == left_in(after(before, 1, evicted=[2]), Budget.CPU_MILLI)
        assert after(before, 1, evicted=[2], cpu_milli=1_001) is None
        assert after(before, 1, cpu_milli=1) is None
        assert [-5_000] == left_in(after(before, 1, cpu_milli=0), Budget.CPU_MILLI)

    def test_who_has_no_quota_gives_room_to_those_that_have(self) -> None:
        before = balances({Budget.CPU_MILLI: 0}, drawn_by={2: [0]})

        assert [1_000] == left_in(after(before, 7, evicted=[2]), Budget.CPU_MILLI)
        assert [0] == left_in(after(before, 7, evicted=[8]), Budget.CPU_MILLI)
