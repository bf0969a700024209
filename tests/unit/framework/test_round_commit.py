"""One round: what is committed together, who is tried again, and what becomes of each job."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from omega.cell.view import View
from omega.clock import ManualClock
from omega.framework.effects import Commit, Refresh, Think, drive
from omega.framework.job_attempt import AttemptEnd, JobResult
from omega.framework.round_commit import TRIES_MAX, commit_round, plan_round
from omega.framework.rounds import JobClaims, RoundPlan, Rounds, RoundState
from omega.framework.scheduler import DecisionTime
from omega.lifecycle.states import ParkReason
from omega.limits import LIMITS
from omega.model.arrays import integers
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.placement.groups import place_groups
from omega.store.leases import HandBack
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_spec, evicting, some_claims
from omega.testing.steps import (
    a_running_job,
    add_a_cell,
    grant,
    lease_all,
    places,
    recall,
    status_of,
    submit_and_lease,
)
from tests.unit.framework.loops import AnswersFrom, a_replica, in_order


class Scripted(Rounds):
    """Plans what it is told to, and places those that are refused in order."""

    length_ms = 1_000

    def __init__(self, *claims_by_job: JobClaims) -> None:
        self.claims = claims_by_job
        self.asked_again: list[list[int]] = []

    def plan(self, view: View, state: RoundState, rng: np.random.Generator) -> RoundPlan:
        return RoundPlan(self.claims, {}, [])

    def again(
        self, view: View, refused: Sequence[LeasedJob], rng: np.random.Generator
    ) -> Sequence[JobClaims]:
        self.asked_again.append([job.id for job in refused])
        claims_by_job = []
        with view.tentative():
            for job in refused:
                claims = place_groups(view, job, in_order, rng)
                view.assume_claims(claims)
                if len(claims):
                    claims_by_job.append(JobClaims(job, claims, len(claims)))
        return claims_by_job


class TestRound:
    """Rounds on three machines of four cores."""

    def setup_method(self) -> None:
        self.store = MemoryStore(ManualClock())
        add_a_cell(self.store, 3)
        self.rounds = Scripted()
        self.answers = AnswersFrom(self.store)

    def recalled(self, *machines: Sequence[int]) -> list[LeasedJob]:
        """Place gangs with a task on each of these machines, and recall them."""
        specs = [a_spec(len(on), minimum=len(on)) for on in machines]
        ids = [
            a_running_job(self.store, spec, on).id for spec, on in zip(specs, machines, strict=True)
        ]
        return recall(self.store, ids)

    def waiting(self, *tasks: int) -> list[LeasedJob]:
        return submit_and_lease(self.store, *(a_spec(number, minimum=number) for number in tasks))

    def rival(self, machine: int, tasks: int) -> Callable[[], object]:
        """Return a rival that takes so many cores of a machine when it is called."""
        (job,) = submit_and_lease(self.store, a_spec(tasks, name="rival"))
        return lambda: grant(self.store, job, range(tasks), [machine] * tasks)

    def played(
        self,
        *claims_by_job: JobClaims,
        waiting: Sequence[LeasedJob] = (),
        running: Sequence[LeasedJob] = (),
        rivals: Sequence[Callable[[], object]] = (),
        claims_max: int = LIMITS.claims_per_transaction_max,
    ) -> dict[int, JobResult]:
        """Play one round; return what became of each job."""
        self.rounds = Scripted(*claims_by_job)
        self.answers = AnswersFrom(self.store, rivals)
        view = View(self.store.snapshot())
        plan = RoundPlan(claims_by_job, {}, [])
        replica = a_replica(claims_max=claims_max)
        state = self.a_state(waiting, running)
        attempted = drive(commit_round(replica, self.rounds, state, view, plan), self.answers)

        assert [] == self.store.verify()
        assert [job.id for job in (*waiting, *running)] == [one.job.id for one in attempted]
        return {one.job.id: one for one in attempted}

    def a_state(
        self, waiting: Sequence[LeasedJob] = (), running: Sequence[LeasedJob] = ()
    ) -> RoundState:
        return RoundState(
            number=1,
            began_ms=0,
            memo={},
            waiting=waiting,
            running=running,
            allocations=self.store.allocations_of([job.id for job in running]),
            progress=self.store.progress(integers()),
        )

    def test_a_round_is_planned_on_a_fresh_view_and_takes_its_time(self) -> None:
        jobs = self.waiting(1, 2)
        (running,) = self.recalled([1])
        replica = a_replica(decision_time=DecisionTime(job_s=1.0, task_s=0.1))
        steps = plan_round(replica, self.rounds, self.a_state(jobs, [running]))

        view, plan = drive(steps, self.answers)

        assert [Refresh(), Think(1.0 + 3 * 0.1)] == self.answers.effects
        assert (3, ()) == (len(view), plan.claims)

    def test_all_of_a_round_is_one_commit(self) -> None:
        first, second = self.waiting(4, 2)
        claims_by_job = [whole(first, [1] * 4), whole(second, [2, 3])]

        became = self.played(*claims_by_job, waiting=[first, second])

        (transaction,) = self.answers.transactions
        assert [first.id, second.id] == [part.job for part in transaction.jobs]
        assert [4, 2] == [part.grants_min for part in transaction.jobs]
        assert [Commit] == [type(effect) for effect in self.answers.effects]
        for job in (first, second):
            one = became[job.id]
            assert (AttemptEnd.DONE, 1, job.spec.tasks) == (one.ending, one.tries, one.placed)

    def test_who_keeps_its_place_is_done_without_a_try(self) -> None:
        (stays,) = self.recalled([1, 2])

        became = self.played(running=[stays])

        assert [] == self.answers.transactions
        one = became[stays.id]
        assert (AttemptEnd.DONE, 0, 0, 0) == (one.ending, one.tries, one.placed, one.left)

    def test_who_falls_to_another_waits_for_room(self) -> None:
        (falls,), (comes,) = self.recalled([1, 1]), self.waiting(4)
        job_claims = whole(comes, [1] * 4, (0, falls.id, 0))

        became = self.played(job_claims, waiting=[comes], running=[falls])

        one = became[falls.id]
        assert (AttemptEnd.NO_ROOM, 0, 2, [0, 1]) == (
            one.ending,
            one.tries,
            one.left,
            one.job.unplaced.tolist(),
        )
        assert one.diagnosis is None
        assert {(comes.id, task): 1 for task in range(4)} == places(self.store)

    def test_who_met_a_rival_is_placed_again_and_evicts_nobody(self) -> None:
        (stays,), (comes,) = self.recalled([1, 1]), self.waiting(4)
        job_claims = whole(comes, [1] * 4, (0, stays.id, 0))

        became = self.played(
            job_claims, waiting=[comes], running=[stays], rivals=[self.rival(1, tasks=2)]
        )

        first, second = self.answers.transactions
        assert (1, 0) == (len(first.claims.evictions), len(second.claims.evictions))
        assert (AttemptEnd.DONE, 2) == (became[comes.id].ending, became[comes.id].tries)
        assert (AttemptEnd.DONE, 0) == (became[stays.id].ending, became[stays.id].tries)
        assert [[comes.id]] == self.rounds.asked_again
        assert [1, 1, 1, 1, 2, 2, 2, 2] == sorted(places(self.store).values())

    def test_who_was_to_move_stays_where_it_is_if_a_rival_was_faster(self) -> None:
        (moves,) = self.recalled([1, 1])
        job_claims = whole(moves, [2, 2], (0, moves.id, 0))

        became = self.played(job_claims, running=[moves], rivals=[self.rival(2, tasks=3)])

        one = became[moves.id]
        assert (AttemptEnd.DONE, 1, 0, 0) == (one.ending, one.tries, one.placed, one.left)
        assert [] == self.rounds.asked_again
        assert [1, 1] == [places(self.store)[moves.id, task] for task in (0, 1)]

    def test_who_meets_rivals_again_and_again_waits_for_the_next_round(self) -> None:
        (comes,) = self.waiting(3)
        rivals = [self.rival(machine, tasks=4) for machine in (1, 2, 3)]

        became = self.played(whole(comes, [1] * 3), waiting=[comes], rivals=rivals)

        one = became[comes.id]
        assert (AttemptEnd.CONFLICTS, TRIES_MAX, 3) == (one.ending, one.tries, one.left)
        assert TRIES_MAX == len(self.answers.transactions)
        # After the last try nobody looks for what nobody will commit.
        assert TRIES_MAX - 1 == len(self.rounds.asked_again)
        assert Commit is type(self.answers.effects[-1])

    def test_a_lease_that_was_lost_is_not_tried_again(self) -> None:
        first, second = self.waiting(1, 1)
        back = HandBack(first.id, first.token, 0, progressed=True)

        became = self.played(
            whole(first, [1]),
            whole(second, [1]),
            waiting=[first, second],
            rivals=[lambda: self.store.hand_back([back])],
        )

        assert AttemptEnd.LEASE_LOST is became[first.id].ending
        assert AttemptEnd.DONE is became[second.id].ending
        assert 1 == len(self.answers.transactions)

    def test_a_victim_whose_lease_was_lost_runs_on(self) -> None:
        (stays,), (comes,) = self.recalled([1, 1]), self.waiting(4)
        back = HandBack(stays.id, stays.token, 0, progressed=True)

        became = self.played(
            whole(comes, [1] * 4, (0, stays.id, 0)),
            waiting=[comes],
            running=[stays],
            rivals=[lambda: self.store.hand_back([back])],
        )

        assert [AttemptEnd.DONE] * 2 == [one.ending for one in became.values()]
        assert 6 == len(places(self.store))

    def test_who_has_no_quota_left_is_not_tried_again(self) -> None:
        (comes,) = self.waiting(2)
        self.store.set_quota(Quota(QuotaScope.TENANT, "default", {Budget.CPU_MILLI: 1_000}))

        became = self.played(whole(comes, [1, 1]), waiting=[comes])

        assert (AttemptEnd.OVER_QUOTA, 2) == (became[comes.id].ending, became[comes.id].left)
        assert 1 == len(self.answers.transactions)

    def test_a_job_that_can_never_fit_is_told_so_when_it_is_first_seen(self) -> None:
        (job,) = submit_and_lease(self.store, a_spec(cpu_milli=8_000))

        became = self.played(waiting=[job])

        assert (AttemptEnd.NO_ROOM, 0) == (became[job.id].ending, became[job.id].tries)
        diagnosis = became[job.id].diagnosis
        assert diagnosis is not None
        assert ParkReason.NEVER_FITS is diagnosis.reason

    def test_a_victim_of_one_transaction_is_placed_by_the_next(self) -> None:
        (moves,), (comes,) = self.recalled([1, 1]), self.waiting(1)
        claims_by_job = [whole(comes, [1], (0, moves.id, 0)), whole(moves, [2, 2])]

        became = self.played(*claims_by_job, waiting=[comes], running=[moves], claims_max=2)

        assert [[comes.id, moves.id], [moves.id]] == [
            [part.job for part in transaction.jobs] for transaction in self.answers.transactions
        ]
        assert [AttemptEnd.DONE] * 2 == [one.ending for one in became.values()]
        assert {(comes.id, 0): 1, (moves.id, 0): 2, (moves.id, 1): 2} == places(self.store)

    def test_what_no_transaction_holds_is_left_out(self) -> None:
        stay, (large, small) = self.recalled([1], [1], [1]), self.waiting(3, 1)
        victims = [(at, job.id, 0) for at, job in enumerate(stay)]

        became = self.played(
            whole(large, [1] * 3, *victims),
            whole(small, [2]),
            waiting=[large, small],
            running=stay,
            claims_max=3,
        )

        ((part,),) = [transaction.jobs for transaction in self.answers.transactions]
        assert small.id == part.job
        assert (AttemptEnd.NO_ROOM, 0) == (became[large.id].ending, became[large.id].tries)
        assert [AttemptEnd.DONE] * 3 == [became[job.id].ending for job in stay]

    def test_many_jobs_are_as_few_transactions_as_their_number_allows(self) -> None:
        store = self.store = MemoryStore(ManualClock())
        add_a_cell(store, 1, cpu_milli=300_000)
        jobs = self.waiting(*[1] * 300)

        became = self.played(*(whole(job, [1]) for job in jobs), waiting=jobs)

        sizes = [len(transaction.jobs) for transaction in self.answers.transactions]
        assert [LIMITS.jobs_per_transaction_max, 300 - LIMITS.jobs_per_transaction_max] == sizes
        assert {AttemptEnd.DONE} == {one.ending for one in became.values()}

    def batch_on(self, *machines: int) -> LeasedJob:
        """Fill these machines with tasks of another kind that yield."""
        tasks = [machine for machine in machines for _ in range(4)]
        self.store.submit([a_spec(len(tasks), scheduler="others")])
        (job,) = lease_all(self.store, scheduler="others")
        grant(self.store, job, range(len(tasks)), tasks)
        return job

    def wanted(
        self, plan: RoundPlan, *waiting: LeasedJob, preempts: bool = True
    ) -> dict[int, JobResult]:
        """Commit a plan by a scheduler that may preempt; return what became of each job."""
        view = View(self.store.snapshot())
        replica = replace(a_replica(), preempts=preempts)
        state = self.a_state(waiting)
        attempted = drive(commit_round(replica, self.rounds, state, view, plan), self.answers)
        assert [] == self.store.verify()
        return {one.job.id: one for one in attempted}

    def test_others_make_way_after_the_claims_for_what_is_still_wanting(self) -> None:
        batch = self.batch_on(1, 2)
        self.answers = AnswersFrom(self.store)
        first, second = submit_and_lease(
            self.store, a_spec(4, precedence=50), a_spec(3, precedence=50, minimum=3)
        )
        plan = RoundPlan([whole(first, [3] * 4)], {}, [], wanting=[first, second])

        became = self.wanted(plan, first, second)

        one, two = self.answers.transactions
        assert ([first.id], [second.id]) == (
            [part.job for part in one.jobs],
            [part.job for part in two.jobs],
        )
        assert (0, 3) == (len(one.claims.evictions), len(two.claims.evictions))
        assert [AttemptEnd.DONE] * 2 == [one.ending for one in became.values()]
        assert second.id == status_of(self.store, batch).evicted_by

    def test_who_does_not_preempt_makes_nobody_go(self) -> None:
        batch = self.batch_on(1, 2, 3)
        (job,) = submit_and_lease(self.store, a_spec(1, precedence=50))

        became = self.wanted(RoundPlan([], {}, [], wanting=[job]), job, preempts=False)

        assert (AttemptEnd.NO_ROOM, 0, False) == (
            became[job.id].ending,
            became[job.id].tries,
            became[job.id].looked_for_victims,
        )
        assert 12 == status_of(self.store, batch).placed

    def test_who_is_wanting_twice_is_placed_once_by_the_first_that_can_be(self) -> None:
        self.batch_on(1, 2, 3)
        (job,) = submit_and_lease(self.store, a_spec(2, precedence=50, minimum=2))
        never = replace(job, spec=a_spec(2, precedence=50, minimum=2, cpu_milli=9_000))

        became = self.wanted(RoundPlan([], {}, [], wanting=[never, job, job]), job)

        assert (AttemptEnd.DONE, 2, 1) == (
            became[job.id].ending,
            became[job.id].placed,
            became[job.id].tries,
        )

    def test_many_victims_jobs_count_as_none_of_the_transactions(self) -> None:
        """A gang may evict tasks of more jobs than one transaction has leases of."""
        store = self.store = MemoryStore(ManualClock())
        self.answers = AnswersFrom(store)
        most = LIMITS.jobs_per_transaction_max + 1
        add_a_cell(store, 1, cpu_milli=most * 1_000)
        store.submit([a_spec(scheduler="others")] * most)
        for victim in lease_all(store, scheduler="others"):
            grant(store, victim, [0], [1])
        (job,) = submit_and_lease(store, a_spec(cpu_milli=most * 1_000, precedence=50))

        became = self.wanted(RoundPlan([], {}, [], wanting=[job]), job)

        assert AttemptEnd.DONE is became[job.id].ending
        assert {(job.id, 0): 1} == places(store)

    @pytest.mark.parametrize("wins", [True, False])
    def test_the_view_knows_what_a_commit_left(self, *, wins: bool) -> None:
        (comes,) = self.waiting(2)
        view = View(self.store.snapshot())
        rivals = [] if wins else [self.rival(1, tasks=3)]
        plan = RoundPlan([whole(comes, [1, 1])], {}, [])
        steps = commit_round(a_replica(), self.rounds, self.a_state([comes]), view, plan)
        self.rounds.again = lambda *_: []  # type: ignore[method-assign]

        drive(steps, AnswersFrom(self.store, rivals))

        assert [2_000 if wins else 1_000, 4_000, 4_000] == view.free[:, 0].tolist()


def whole(job: LeasedJob, machines: Sequence[int], *victims: tuple[int, int, int]) -> JobClaims:
    """Return claims for a whole gang: task by task a machine, and what each claim evicts."""
    claims: Claims = some_claims(range(len(machines)), machines)
    return JobClaims(job, evicting(claims, *victims) if victims else claims, job.spec.tasks)
