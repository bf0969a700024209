"""Claims and transactions: the form of what schedulers ask."""

from dataclasses import replace
from uuid import UUID

import numpy as np
import pytest

from omega.model.claims import Claims, JobSlice
from omega.model.resources import KINDS, Kind
from omega.testing.builders import a_claim, a_job, a_transaction, claims_of_job, some_claims


def test_the_demand_of_claims_follows_their_shape() -> None:
    claims = Claims.of([some_claims([0, 1], [1, 1]), a_claim(2, machine=1, memory_mib=64)])

    assert [1_000, 1_000, 0] == claims.demand[:, Kind.CPU_MILLI].tolist()
    assert [0, 0, 64] == claims.demand[:, Kind.MEMORY_MIB].tolist()
    assert 2 == len(claims.shapes)


def test_claims_are_joined_in_order() -> None:
    joined = Claims.of([some_claims([4, 3], [9, 8], seen=[1, 2]), a_claim(5, machine=7, seen=3)])

    assert ([4, 3, 5], [9, 8, 7], [1, 2, 3]) == (
        joined.task.tolist(),
        joined.machine.tolist(),
        joined.seen.tolist(),
    )


def test_no_claims_are_claims() -> None:
    none = Claims.none()

    assert 0 == len(none)
    assert (0, KINDS) == none.demand.shape
    assert 1 == len(Claims.of([none, a_claim(), none]))


def test_claims_are_read_only() -> None:
    claims = a_claim()

    assert not any(
        array.flags.writeable
        for array in (claims.task, claims.machine, claims.seen, claims.shape, claims.shapes)
    )


def test_a_claim_never_gives() -> None:
    with pytest.raises(AssertionError, match="never gives"):
        a_claim(cpu_milli=-1)


def test_columns_of_claims_are_equally_long() -> None:
    with pytest.raises(AssertionError):
        replace(a_claim(), seen=np.zeros(2, dtype=np.int64))


class TestTransaction:
    def test_stretches_adjoin_in_the_order_given(self) -> None:
        two, one = a_job(job=2), a_job(job=1)

        transaction = a_transaction(
            claims_of_job(two, some_claims([0, 1], [1, 1]), minimum=2),
            claims_of_job(one, Claims.none()),
        )

        assert (
            JobSlice(2, UUID(int=2), 2, slice(0, 2)),
            JobSlice(1, UUID(int=1), 0, slice(2, 2)),
        ) == transaction.jobs
        assert 2 == len(transaction.claims)

    def test_a_transaction_may_be_empty(self) -> None:
        assert 0 == len(a_transaction().claims)

    def test_a_job_has_one_stretch(self) -> None:
        job = a_job()

        with pytest.raises(AssertionError, match="one slice"):
            a_transaction(claims_of_job(job, a_claim(0)), claims_of_job(job, a_claim(1)))

    @pytest.mark.parametrize(
        "claims", [slice(1, 2), slice(0, 1)], ids=["begins late", "ends early"]
    )
    def test_every_claim_belongs_to_a_stretch(self, claims: slice) -> None:
        whole = a_transaction(claims_of_job(a_job(2), some_claims([0, 1], [1, 1])))

        with pytest.raises(AssertionError):
            replace(whole, jobs=(replace(whole.jobs[0], claims=claims),))

    def test_a_minimum_is_not_negative(self) -> None:
        with pytest.raises(AssertionError):
            a_transaction(claims_of_job(a_job(), a_claim(), minimum=-1))
