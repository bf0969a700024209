"""A recording keeps no facts of a commit that was sent twice, whatever failed in between."""

from dataclasses import replace
from typing import cast

import pytest

from omega.clock import ManualClock
from omega.errors import StoreUnavailable
from omega.framework.recording import Recording
from omega.model.quotas import Budget, Quota, QuotaScope, QuotaUse
from omega.store.memory.store import MemoryStore
from omega.store.protocols import Store
from omega.store.saved.recorded import RecordedCommit
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job
from omega.testing.pass_through import PassThrough
from omega.testing.steps import add_a_cell, lease_all

ANN = Quota(QuotaScope.TENANT, "ann", {Budget.CPU_MILLI: 2_000})


class QuotasOutOfReach(PassThrough):
    """A store whose quotas are blurred before the first commit, and cannot be read just after."""

    asked = 0

    def quotas(self) -> list[QuotaUse]:
        self.asked += 1
        if self.asked == 2:
            raise StoreUnavailable("no answer")
        quotas = super().quotas()
        if self.asked == 1:
            return [replace(use, left=dict.fromkeys(use.left, 0)) for use in quotas]
        return quotas


def test_a_commit_is_answered_only_when_its_quotas_are_read_too() -> None:
    store = cast(Store, MemoryStore(ManualClock(now=1_000.0)))
    add_a_cell(store, 1)
    store.set_quota(ANN)
    store.submit([a_spec(1, tenant="ann")])
    kept: list[RecordedCommit] = []
    recording = Recording(cast(Store, QuotasOutOfReach(store)), lambda: 0, kept.append).store
    (job,) = lease_all(recording)
    transaction = a_transaction(claims_of_job(job, a_claim()))

    with pytest.raises(StoreUnavailable):
        recording.commit(transaction)
    outcome = recording.commit(transaction)

    assert outcome.accepted.all()
    assert [None] == [commit.against for commit in kept]


def test_only_quotas_on_which_somebody_draws_are_on_record() -> None:
    store = cast(Store, MemoryStore(ManualClock(now=1_000.0)))
    add_a_cell(store, 1)
    for number in range(20):
        store.set_quota(Quota(QuotaScope.TENANT, f"t{number}", {Budget.CPU_MILLI: 1}))
    store.set_quota(ANN)
    store.submit([a_spec(1, tenant="ann")])
    kept: list[RecordedCommit] = []
    recording = Recording(store, lambda: 0, kept.append).store
    (job,) = lease_all(recording)

    recording.commit(a_transaction(claims_of_job(job, a_claim())))

    (commit,) = kept
    assert commit.against is not None
    balances = commit.against.context.quota_balances
    assert 2_000 == balances.left[0, Budget.CPU_MILLI]
    assert (1, {job.id: (0,)}) == (len(balances.left), dict(balances.drawn_by))
