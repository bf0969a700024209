"""What every store must do for helpers of elastic jobs: they never wait, and end with their parent.

Goal     Each way in which helpers lose their places, and each way in which they end.
Promise  A helper is over as soon as it has no place. Room is free in the call that ends a parent.
Source   docs/decisions/0043-elastic-jobs.md.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from omega.lifecycle.states import ParkReason, State
from omega.model.arrays import integers
from omega.model.jobs import Constraint, LeasedJob, Operator, Preference
from omega.model.machines import MachineState
from omega.model.outcomes import Verdict
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.model.resources import machine_capacity
from omega.store.leases import HandBack, Parking
from omega.store.protocols import Store
from omega.testing.builders import (
    a_cell,
    a_claim,
    a_spec,
    a_transaction,
    claims_of_job,
    evicting,
)
from omega.testing.contract import Contract
from omega.testing.elastic_contract import (
    add_helpers,
    all_helping,
    an_elastic_job,
    an_elastic_spec,
    counts,
    some_helpers,
    tasks,
)
from omega.testing.steps import (
    OVER_AT_ONCE_MS,
    a_leased_job,
    claim,
    end,
    evicted_tasks,
    grant,
    lease_all,
    places,
    status_of,
    verdicts_of,
)

ENDS_OF_LEASES: list[Callable[[Store, LeasedJob], object]] = [
    lambda store, job: store.hand_back([HandBack(job.id, job.token, 0, progressed=True)]),
    lambda store, job: store.park([Parking(job.id, job.token, ParkReason.NO_ROOM, "full")]),
]


class LostHelperContract(Contract):
    """Helpers that lose their places, or get none, are over."""

    def test_a_helper_that_is_evicted_is_over(self, store: Store) -> None:
        parent, helpers, machine = all_helping(store)
        other = a_leased_job(store)
        claims = evicting(a_claim(0, machine=machine), (0, helpers.id, 1))

        outcome = store.commit(a_transaction(claims_of_job(other, claims)))

        assert [(helpers.id, 1)] == evicted_tasks(outcome)
        assert (State.RUNNING, 2, 1) == counts(store, helpers)
        assert other.id == status_of(store, helpers).evicted_by
        assert (State.RUNNING, 2, 0) == counts(store, parent)
        assert [] == lease_all(store)

    def test_helpers_wait_for_nothing_that_their_parent_prefers(self, store: Store) -> None:
        preferred = Preference(Constraint("zone", Operator.EXISTS))
        spec = an_elastic_spec()
        group = replace(spec.groups[0], preferences=(preferred,), patience_ms=60_000)
        parent, _ = an_elastic_job(store, replace(spec, groups=(group,)))

        (of_helpers,) = some_helpers(store, parent, 2).spec.groups

        assert ((preferred,), 0) == (of_helpers.preferences, of_helpers.patience_ms)

    def test_with_the_last_one_the_job_of_helpers_is_over(self, store: Store) -> None:
        parent, helpers, machine = all_helping(store)
        other = a_leased_job(store)
        claims = evicting(a_claim(0, machine=machine), (0, helpers.id, 0), (0, helpers.id, 1))

        store.commit(a_transaction(claims_of_job(other, claims)))

        assert (State.SUCCEEDED, 2, 2) == counts(store, helpers)
        assert (State.RUNNING, 2, 0) == counts(store, parent)

    def test_a_helper_that_was_evicted_cannot_be_claimed_again(self, store: Store) -> None:
        parent, machine = an_elastic_job(store)
        helpers = some_helpers(store, parent, 2)
        grant(store, helpers, [0], [machine])
        other = a_leased_job(store)
        claims = evicting(a_claim(0, machine=machine), (0, helpers.id, 0))
        store.commit(a_transaction(claims_of_job(other, claims)))
        assert (State.PLANNING, 1, 1) == counts(store, helpers)

        outcome = claim(store, helpers, [0, 1], [machine, machine])

        assert [Verdict.ALREADY_PLACED, Verdict.ACCEPTED] == verdicts_of(outcome)
        assert (State.RUNNING, 2, 1) == counts(store, helpers)

    def test_a_helper_may_move_in_one_commit(self, store: Store) -> None:
        parent, machine = an_elastic_job(store)
        (there,) = map(int, store.add_machines(a_cell(1, first=2)))
        helpers = some_helpers(store, parent, 2)
        grant(store, helpers, [0], [machine])
        claims = evicting(a_claim(0, machine=there), (0, helpers.id, 0))

        outcome = store.commit(a_transaction(claims_of_job(helpers, claims)))

        assert [Verdict.ACCEPTED] == verdicts_of(outcome)
        assert there == places(store)[helpers.id, 0]
        assert (State.PLANNING, 1, 0) == counts(store, helpers)

    def test_helpers_whose_machine_fails_are_over(self, store: Store) -> None:
        parent, helpers, machine = all_helping(store)
        store.set_state(integers([machine]), MachineState.DOWN)

        assert 4 == store.lose_tasks(integers([machine]))
        assert (State.SUCCEEDED, 2, 2) == counts(store, helpers)
        assert (State.PENDING, 0, 0) == counts(store, parent)
        assert [parent.id] == [job.id for job in lease_all(store)]

    def test_helpers_go_first_from_a_machine_that_shrank(self, store: Store) -> None:
        parent, helpers, machine = all_helping(store)
        store.resize(machine, machine_capacity(3_000, 100_000), notice_ms=OVER_AT_ONCE_MS)

        assert 1 == store.enforce_notices()
        assert (State.RUNNING, 2, 1) == counts(store, helpers)
        assert (State.RUNNING, 2, 0) == counts(store, parent)

    @pytest.mark.parametrize("give_back", ENDS_OF_LEASES, ids=["handed back", "parked"])
    def test_what_found_no_room_is_over(
        self, store: Store, give_back: Callable[[Store, LeasedJob], object]
    ) -> None:
        parent, machine = an_elastic_job(store)
        helpers = some_helpers(store, parent, 3)
        grant(store, helpers, [1], [machine])

        give_back(store, helpers)

        assert (State.RUNNING, 3, 2) == counts(store, helpers)
        assert [] == lease_all(store) + store.parked("batch", jobs_max=9)
        assert status_of(store, helpers).park_reason is None

    @pytest.mark.parametrize("give_back", ENDS_OF_LEASES, ids=["handed back", "parked"])
    def test_if_none_found_room_all_are_over(
        self, store: Store, give_back: Callable[[Store, LeasedJob], object]
    ) -> None:
        parent, _ = an_elastic_job(store)
        helpers = some_helpers(store, parent, 3)

        give_back(store, helpers)

        assert (State.SUCCEEDED, 3, 3) == counts(store, helpers)
        assert status_of(store, helpers).finished_ms is not None
        assert add_helpers(store, parent.id, 4) is not None

    def test_helpers_whose_scheduler_died_are_over_or_run(self, store: Store) -> None:
        parent, machine = an_elastic_job(store)
        some = some_helpers(store, parent, 2, lease_ms=OVER_AT_ONCE_MS)
        none = some_helpers(store, parent, 2, lease_ms=OVER_AT_ONCE_MS)
        grant(store, some, [0], [machine])

        assert [some.id, none.id] == store.rescue()
        assert (State.RUNNING, 2, 1) == counts(store, some)
        assert (State.SUCCEEDED, 2, 2) == counts(store, none)

    def test_a_scheduler_ends_helpers_and_no_other_tasks(self, store: Store) -> None:
        parent, helpers, _ = all_helping(store, 3)
        named = integers([helpers.id, helpers.id, parent.id, 10**9])

        assert 0 == store.end_helpers("service", named, tasks(0, 2, 0, 0))
        assert 2 == store.end_helpers("batch", named, tasks(0, 2, 0, 0))
        assert (State.RUNNING, 3, 2) == counts(store, helpers)
        assert (State.RUNNING, 2, 0) == counts(store, parent)
        assert 1 == store.end_helpers("batch", integers([helpers.id] * 2), tasks(0, 1))
        assert State.SUCCEEDED is status_of(store, helpers).state


class HelpersEndContract(Contract):
    """Helpers end with their parent, and their room is free at once."""

    def test_helpers_end_with_the_last_task_of_their_parent(self, store: Store) -> None:
        parent, helpers, machine = all_helping(store)
        planned = some_helpers(store, parent, 2)
        grant(store, planned, [1], [machine])
        before = store.snapshot().rows

        assert 1 == end(store, parent, 0)
        assert (State.RUNNING, 2, 0) == counts(store, helpers)
        assert 1 == end(store, parent, 1)

        assert (State.SUCCEEDED, 2, 2) == counts(store, parent) == counts(store, helpers)
        assert (State.SUCCEEDED, 2, 2) == counts(store, planned)
        assert {} == places(store)
        rows = store.snapshot().rows
        assert not rows.used.any()
        assert before.sequence.tolist() == rows.sequence.tolist()
        outcome = claim(store, planned, [0], [machine])
        assert [Verdict.LEASE_LOST] == verdicts_of(outcome)

    def test_only_named_tasks_are_counted(self, store: Store) -> None:
        parent, helpers, _ = all_helping(store)
        jobs = integers([parent.id, helpers.id, parent.id, parent.id])

        assert 3 == store.end_tasks(jobs, tasks(0, 1, 1, 1))
        assert (State.SUCCEEDED, 2, 2) == counts(store, helpers)

    def test_a_start_that_is_not_theirs_ends_nobody(self, store: Store) -> None:
        parent, helpers, _ = all_helping(store)
        live = store.allocations_of([parent.id])

        assert 0 == store.end_tasks(live.job, live.task, live.started_ms - 1)
        assert (State.RUNNING, 2, 0) == counts(store, helpers)
        assert 2 == store.end_tasks(live.job, live.task, live.started_ms)
        assert (State.SUCCEEDED, 2, 2) == counts(store, helpers)

    @pytest.mark.parametrize("placed", [1, 2])
    def test_helpers_are_cancelled_with_their_parent(self, store: Store, placed: int) -> None:
        parent, machine = an_elastic_job(store, an_elastic_spec(2, at_most=9))
        helpers, planned = some_helpers(store, parent, 2), some_helpers(store, parent, 3)
        grant(store, helpers, [0, 1], [machine] * 2)
        grant(store, planned, range(placed), [machine] * placed)

        assert store.cancel(parent.id)

        assert State.CANCELLED is status_of(store, parent).state
        assert (State.CANCELLED, 2, 2) == counts(store, helpers)
        assert (State.CANCELLED, 3, 3) == counts(store, planned)
        assert not store.snapshot().rows.used.any()
        assert not store.cancel(helpers.id)

    def test_a_pending_parent_is_cancelled_with_its_helpers(self, store: Store) -> None:
        parent, helpers, machine = all_helping(store)
        other = a_leased_job(store, a_spec(1, precedence=20))
        claims = evicting(a_claim(0, machine=machine), (0, parent.id, 0))
        store.commit(a_transaction(claims_of_job(other, claims)))
        assert (State.PENDING, 1, 0) == counts(store, parent)

        assert store.cancel(parent.id)

        assert (State.CANCELLED, 2, 2) == counts(store, helpers)
        assert [(other.id, 0)] == list(places(store))

    def test_helpers_may_be_cancelled_alone(self, store: Store) -> None:
        parent, helpers, _ = all_helping(store)

        assert store.cancel(helpers.id)
        assert (State.CANCELLED, 2, 2) == counts(store, helpers)
        assert (State.RUNNING, 2, 0) == counts(store, parent)

    def test_quotas_count_helpers(self, store: Store) -> None:
        parent, helpers, machine = all_helping(store)
        quota = Quota(
            QuotaScope.TENANT, parent.spec.tenant, {Budget.CPU_MILLI: 5_000, Budget.JOBS: 3}
        )
        store.set_quota(quota)
        more = some_helpers(store, parent, 2)

        outcome = claim(store, more, [0, 1], [machine] * 2)

        assert [Verdict.ACCEPTED, Verdict.QUOTA] == verdicts_of(outcome)
        assert {Budget.CPU_MILLI: 0, Budget.JOBS: 0} == dict(store.quotas()[0].left)
        end(store, parent, 0, 1)
        assert {Budget.CPU_MILLI: 5_000, Budget.JOBS: 3} == dict(store.quotas()[0].left)
        assert State.SUCCEEDED is status_of(store, helpers).state
