"""What every store must do for schedulers that plan all their jobs at once, round by round.

Goal     Rounds and recalled jobs as tests that read as stories.
Promise  A round has one holder. Only a commit takes tasks of a recalled job from their places.
Source   docs/decisions/0028-rounds-on-the-shared-cell.md.
"""

from collections.abc import Callable

import pytest

from omega.errors import BadInput
from omega.lifecycle.states import ParkReason, State
from omega.limits import LIMITS
from omega.model.jobs import LeasedJob
from omega.model.outcomes import Verdict
from omega.model.round_summary import RoundSummary, TypeUse
from omega.store.leases import HandBack, Parking
from omega.store.protocols import Store
from omega.store.rounds import NotYet, Round
from omega.testing.builders import a_spec, a_transaction, claims_of_job, evicting, some_claims
from omega.testing.contract import Contract
from omega.testing.steps import (
    LONG_MS,
    OVER_AT_ONCE_MS,
    a_running_job,
    add_a_cell,
    claim,
    end,
    lease_all,
    places,
    recall,
    status_of,
    verdicts_of,
)


def begun(store: Store, *, length_ms: int = OVER_AT_ONCE_MS, kind: str = "batch") -> Round:
    """Begin a round; fail unless it is due."""
    begins = store.begin_round(kind, holder=f"{kind}/0", length_ms=length_ms)

    assert isinstance(begins, Round)
    return begins


def recalled(store: Store, *jobs: LeasedJob, lease_ms: int = LONG_MS) -> list[LeasedJob]:
    """Recall batch jobs; fail unless all of them run."""
    again = recall(store, [j.id for j in jobs], lease_ms=lease_ms)

    assert sorted(job.id for job in jobs) == [job.id for job in again]
    return again


def a_gang_at_work(store: Store) -> tuple[LeasedJob, list[int]]:
    """Add three machines, and place a gang of two on the first two."""
    machines = add_a_cell(store, 3)
    return a_running_job(store, a_spec(2, minimum=2), machines[:2]), machines


GIVING_BACK: list[Callable[[Store, LeasedJob], object]] = [
    lambda store, job: store.hand_back([HandBack(job.id, job.token, 0, progressed=True)]),
    lambda store, job: store.park([Parking(job.id, job.token, ParkReason.NO_ROOM, "full")]),
]


class RoundContract(Contract):
    """Who plans the next round, and with which memo."""

    def test_rounds_are_counted_a_kind(self, store: Store) -> None:
        numbers = [begun(store, kind=kind).number for kind in ("a", "a", "b", "a")]

        assert [1, 2, 1, 3] == numbers

    def test_a_round_that_is_not_over_is_nobody_elses(self, store: Store) -> None:
        begun(store, length_ms=LONG_MS)

        refused = store.begin_round("batch", holder="batch/1", length_ms=LONG_MS)

        assert isinstance(refused, NotYet)
        assert 0 < refused.due_in_ms <= LONG_MS

    def test_whoever_plays_shorter_rounds_need_not_wait_for_a_long_one(self, store: Store) -> None:
        begun(store, length_ms=LONG_MS)

        assert 2 == begun(store, length_ms=OVER_AT_ONCE_MS).number

    def test_a_round_begins_by_the_stores_clock(self, store: Store) -> None:
        before, began, after = store.now_ms(), begun(store).began_ms, store.now_ms()

        assert before <= began <= after

    def test_what_a_round_notes_the_next_one_knows(self, store: Store) -> None:
        first = begun(store)
        memo = {"jobs": [3, 1], "share": [[0.25, 1e-9]], "types": ["k80", "a\u00b2"]}

        assert store.note_round("batch", first.number, memo)
        assert {} == first.memo
        assert memo == begun(store).memo == begun(store).memo
        assert {} == begun(store, kind="service").memo

    def test_anybody_may_read_which_round_it_is_and_what_is_told_of_it(self, store: Store) -> None:
        told = RoundSummary("fifo", [TypeUse("k80", 4, 2)], [])
        number = begun(store, length_ms=LONG_MS).number
        begun(store, kind="another")
        untold = store.last_rounds()
        store.note_round("batch", number, {"plan": {"secret": 1}, "told": told.row()})
        another, batch = store.last_rounds()

        assert [None, None] == [it.summary for it in untold]
        assert ("another", 1, None) == (another.scheduler, another.number, another.summary)
        assert (LONG_MS, told) == (batch.length_ms, batch.summary)
        assert batch.began_ms <= store.now_ms()

    def test_a_round_that_is_past_notes_nothing(self, store: Store) -> None:
        first, second = begun(store), begun(store)
        store.note_round("batch", second.number, {"by": "second"})

        assert not store.note_round("batch", first.number, {"by": "first"})
        assert not store.note_round("nobody", 1, {})
        assert {"by": "second"} == begun(store).memo

    def test_a_memo_that_not_everybody_could_read_is_refused(self, store: Store) -> None:
        number = begun(store).number
        deep: list[object] = []
        for _ in range(LIMITS.json_depth_max - 2):
            deep = [deep]
        for memo in ({"x": "x" * LIMITS.memo_bytes_max}, {"x": [deep]}, {"x": [10**309]}):
            with pytest.raises(BadInput):
                store.note_round("batch", number, memo)

        assert {} == begun(store).memo
        assert store.note_round("batch", number + 1, {"x": deep})


class RecallContract(Contract):
    """Leasing running jobs."""

    def test_a_recalled_job_tells_where_it_runs_and_runs_on(self, store: Store) -> None:
        job, machines = a_gang_at_work(store)
        (again,) = recalled(store, job)

        assert ([], [0, 1]) == (again.unplaced.tolist(), again.placed_task.tolist())
        assert machines[:2] == again.placed_machine.tolist()
        assert (2, job.spec) == (again.placed, again.spec)
        assert again.token != job.token
        status = status_of(store, job)
        assert (State.PLANNING, "batch/0", 1) == (
            status.state,
            status.lease_holder,
            status.attempts,
        )
        assert 2 == len(store.allocations())

    def test_only_running_jobs_of_the_kind_are_recalled(self, store: Store) -> None:
        job, _ = a_gang_at_work(store)
        (pending,) = store.submit([a_spec()])
        everything = [job.id, job.id, pending, 1_000_000]

        assert [] == recall(store, everything, scheduler="service", holder="s")
        (again,) = recall(store, everything, holder="b")
        assert job.id == again.id
        recall(store, [], holder="c")
        assert [] == recall(store, everything, holder="d")
        assert [] == recall(store, None, holder="e")
        assert State.PENDING is status_of(store, pending).state

    def test_all_that_run_are_recalled_at_once(self, store: Store) -> None:
        job, machines = a_gang_at_work(store)
        other = a_running_job(store, a_spec(), [machines[2]])
        store.submit([a_spec()])

        assert [] == recall(store, None, scheduler="service", holder="s")
        again = recall(store, None)
        assert sorted([job.id, other.id]) == [one.id for one in again]

    def test_who_begins_a_round_takes_over_from_the_one_before(self, store: Store) -> None:
        job, machines = a_gang_at_work(store)
        (dead,) = recalled(store, job)
        (waiting,) = store.submit([a_spec(3)])
        (late,) = store.lease("batch", holder="batch/0", jobs_max=1, lease_ms=LONG_MS)
        (other,) = store.submit([a_spec()])
        store.lease("batch", holder="another", jobs_max=1, lease_ms=LONG_MS)
        named = [job.id, waiting, other]

        taken = recall(store, named, holder="b")

        assert [job.id, late.id] == [one.id for one in taken]
        assert [0, 1, 2] == taken[1].unplaced.tolist()
        assert set() == store.renew({job.id: dead.token, late.id: late.token}, lease_ms=LONG_MS)
        assert [Verdict.LEASE_LOST] == verdicts_of(claim(store, late, [0], [machines[2]]))
        assert "b" == status_of(store, job).lease_holder
        assert "another" == status_of(store, other).lease_holder

    def test_a_round_that_is_past_or_never_was_recalls_nothing(self, store: Store) -> None:
        job, _ = a_gang_at_work(store)

        for _ in range(2):
            number = begun(store).number
            assert [] == store.recall("batch", number - 1, [job.id], lease_ms=LONG_MS)
            assert [] == store.recall("batch", number + 1, [job.id], lease_ms=LONG_MS)
        assert [] == store.recall("service", number, [job.id], lease_ms=LONG_MS)
        assert State.RUNNING is status_of(store, job).state
        (again,) = store.recall("batch", number, [job.id], lease_ms=LONG_MS)
        assert job.id == again.id

    @pytest.mark.parametrize("give_back", GIVING_BACK)
    def test_a_job_that_lost_nothing_goes_on(
        self, store: Store, give_back: Callable[[Store, LeasedJob], object]
    ) -> None:
        job, machines = a_gang_at_work(store)
        (again,) = recalled(store, job)

        assert 1 == give_back(store, again)
        assert State.RUNNING is status_of(store, job).state
        assert machines[:2] == sorted(places(store).values())
        assert [] == lease_all(store)
        late = claim(store, again, [0], [machines[2]])
        assert [Verdict.LEASE_LOST] == verdicts_of(late)

    def test_a_job_whose_recall_ran_out_goes_on(self, store: Store) -> None:
        job, _ = a_gang_at_work(store)
        recalled(store, job, lease_ms=OVER_AT_ONCE_MS)

        assert [job.id] == store.rescue()
        assert State.RUNNING is status_of(store, job).state
        assert [] == lease_all(store)

    def test_a_recalled_job_can_end(self, store: Store) -> None:
        job, _ = a_gang_at_work(store)
        (again,) = recalled(store, job)

        assert 1 == end(store, job, 0)
        assert State.PLANNING is status_of(store, job).state
        assert 1 == end(store, job, 1)
        status = status_of(store, job)
        assert (State.SUCCEEDED, None) == (status.state, status.lease_holder)
        assert status.finished_ms is not None
        assert set() == store.renew({again.id: again.token}, lease_ms=LONG_MS)
        assert 0 == store.hand_back([HandBack(again.id, again.token, 0, progressed=True)])

    def test_a_recalled_job_can_be_cancelled(self, store: Store) -> None:
        job, _ = a_gang_at_work(store)
        recalled(store, job)

        assert store.cancel(job.id)
        assert State.CANCELLED is status_of(store, job).state
        assert [] == store.rescue()

    def test_a_commit_moves_a_recalled_job_and_ends_its_lease(self, store: Store) -> None:
        job, machines = a_gang_at_work(store)
        (again,) = recalled(store, job)
        where = [machines[2], machines[2]]
        claims = evicting(some_claims([0, 1], where), (0, job.id, 0))

        outcome = store.commit(a_transaction(claims_of_job(again, claims, minimum=2)))

        assert outcome.accepted.all()
        assert where == list(places(store).values())
        assert State.RUNNING is status_of(store, job).state

    def test_a_commit_preempts_a_recalled_job_for_another(self, store: Store) -> None:
        job, machines = a_gang_at_work(store)
        (new,) = store.submit([a_spec(4)])
        (waiting,) = lease_all(store)
        (again,) = recalled(store, job)
        full = [machines[0]] * 4
        claims = evicting(some_claims(range(4), full), (0, job.id, 0))
        nothing = some_claims([], [])

        outcome = store.commit(
            a_transaction(claims_of_job(waiting, claims), claims_of_job(again, nothing))
        )

        assert outcome.accepted.all()
        assert {(new, task): machines[0] for task in range(4)} == places(store)
        assert State.PLANNING is status_of(store, job).state
        store.hand_back([HandBack(again.id, again.token, 0, progressed=True)])
        assert State.PENDING is status_of(store, job).state
        (third,) = lease_all(store)
        assert ([0, 1], 0) == (third.unplaced.tolist(), third.placed)

    def test_what_is_over_is_told(self, store: Store) -> None:
        job, _ = a_gang_at_work(store)
        (pending, cancelled) = store.submit([a_spec(), a_spec()])
        store.cancel(cancelled)
        asked = [job.id, pending, cancelled, 1_000_000]

        assert {job.id, pending} == store.unfinished(asked)
        recalled(store, job)
        assert {job.id, pending} == store.unfinished(asked)
        end(store, job, 0, 1)
        assert {pending} == store.unfinished(asked)
        assert set() == store.unfinished([])

    def test_allocations_are_told_by_job(self, store: Store) -> None:
        job, machines = a_gang_at_work(store)
        other = a_running_job(store, a_spec(), [machines[2]])
        both = store.allocations_of([other.id, job.id, job.id, 1_000_000])

        assert [] == store.allocations_of([]).job.tolist()
        assert [job.id] * 2 == store.allocations_of([job.id]).job.tolist()
        assert sorted([job.id, job.id, other.id]) == sorted(both.job.tolist())
        assert machines == sorted(both.machine.tolist())
        assert store.allocations().amounts.sum() == both.amounts.sum()
