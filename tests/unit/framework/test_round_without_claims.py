"""A round whose plan names a job without claims, as a scheduler of a user's may make it."""

from omega.cell.view import View
from omega.clock import ManualClock
from omega.framework.effects import drive
from omega.framework.round_commit import commit_round
from omega.framework.rounds import JobClaims, RoundPlan, RoundState
from omega.model.arrays import integers
from omega.model.claims import Claims
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_spec, some_claims
from omega.testing.steps import add_a_cell, submit_and_lease
from tests.unit.framework.loops import AnswersFrom, a_replica
from tests.unit.framework.test_round_commit import Scripted


def test_a_job_that_claims_nothing_is_in_no_transaction() -> None:
    """A transaction without a claiming job has no jobs among which to share its time."""
    store = MemoryStore(ManualClock())
    add_a_cell(store, 1)
    first, second = submit_and_lease(store, a_spec(minimum=1), a_spec(minimum=1))
    planned = (
        JobClaims(first, Claims.none(), 0),
        JobClaims(second, some_claims([0], [1]), 1),
    )
    state = RoundState(
        number=1,
        began_ms=0,
        memo={},
        waiting=[first, second],
        running=[],
        allocations=store.allocations_of([]),
        progress=store.progress(integers()),
    )
    answers = AnswersFrom(store)
    view, plan = View(store.snapshot()), RoundPlan(planned, {}, [])
    results = drive(commit_round(a_replica(), Scripted(*planned), state, view, plan), answers)

    assert [[second.id]] == [[part.job for part in one.jobs] for one in answers.transactions]
    assert [0, 1] == [result.placed for result in results]
