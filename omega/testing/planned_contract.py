"""What every store must do with a plan: commit exactly that, or change nothing.

Goal     The commit of plans as tests that read as stories.
Promise  A plan that is refused leaves no job, no lease and no record.
Source   docs/decisions/0053-plans-before-submission.md.
"""

from collections.abc import Sequence
from uuid import uuid4

from omega.lifecycle.states import State
from omega.model.claims import Claims
from omega.model.jobs import JobSpec
from omega.model.outcomes import Verdict
from omega.store.planned import PlannedJob
from omega.store.protocols import Store
from omega.testing.builders import a_spec, evicting, some_claims
from omega.testing.contract import Contract
from omega.testing.steps import a_leased_job, a_running_job, add_a_cell, end, grant, places


def planned(spec: JobSpec, claims: Claims, evicted: Sequence[tuple[int, int]] = ()) -> PlannedJob:
    """Return a plan with a new id."""
    return PlannedJob(uuid4(), spec, claims, tuple(evicted))


class PlannedContract(Contract):
    """Plans."""

    def test_a_plan_is_committed_as_it_is(self, store: Store) -> None:
        one, two = add_a_cell(store, 2)

        outcome = store.submit_planned(planned(a_spec(2), some_claims([0, 1], [two, one])))

        job = outcome.job
        assert job is not None
        assert {(job, 0): two, (job, 1): one} == places(store)
        status = store.job(job)
        assert status is not None
        assert (State.RUNNING, 1) == (status.state, status.attempts)
        assert [1, 1] == outcome.fresh.sequence.tolist()

    def test_what_is_left_over_is_queued(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)

        outcome = store.submit_planned(planned(a_spec(2), some_claims([1], [machine])))

        assert outcome.job is not None
        status = store.job(outcome.job)
        assert status is not None
        assert (State.PENDING, 1) == (status.state, status.placed)
        assert [outcome.job] == [
            it.id for it in store.line_before("batch", -9, 99, jobs_max=9).first
        ]

    def test_a_machine_that_has_changed_refuses_all_of_it(self, store: Store) -> None:
        one, two = add_a_cell(store, 2)
        a_running_job(store, a_spec(), [two])

        outcome = store.submit_planned(planned(a_spec(2), some_claims([0, 1], [one, two])))

        assert outcome.job is None
        assert [Verdict.GANG_BROKEN, Verdict.STALE] == outcome.verdicts.tolist()
        assert [0, 1] == outcome.fresh.sequence.tolist()
        assert 1 == len(store.jobs()) == len(store.allocations())
        assert 1 == len(store.transactions_of(store.jobs()[0].id, transactions_max=9))

    def test_a_task_that_ends_does_not_change_a_plan(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(), [machine])
        plan = planned(a_spec(), some_claims([0], [machine], seen=1))
        end(store, job, 0)

        assert store.submit_planned(plan).job is not None

    def test_a_plan_that_is_repeated_is_committed_once(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        plan = planned(a_spec(), some_claims([0], [machine]))

        first, second = store.submit_planned(plan), store.submit_planned(plan)

        assert first.job == second.job
        assert 1 == len(store.allocations())

    def test_only_what_is_planned_is_evicted(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=2_000)
        gang = a_leased_job(store, a_spec(2, minimum=2))
        grant(store, gang, [0, 1], [one, two], cpu_milli=2_000)
        spec, claims = a_spec(precedence=50), some_claims([0], [one], seen=1)
        claims = evicting(claims, (0, gang.id, 0))

        too_much = store.submit_planned(planned(spec, claims, [(gang.id, 0)]))
        as_planned = store.submit_planned(planned(spec, claims, [(gang.id, 1), (gang.id, 0)]))

        assert too_much.job is None
        assert ((gang.id, 0), (gang.id, 1)) == too_much.evicted
        assert as_planned.job is not None
        assert {(as_planned.job, 0): one} == places(store)
