"""Random histories of several schedulers on one cell, compared with a plain model.

Goal     Find sequences of calls that no author of tests has thought of.
Promise  After every call rows, jobs and verdicts equal the model's, and the store's own `verify`
         finds nothing. Subclass it and override `new_store`.
Source   Hypothesis's stateful testing; omega/testing/plain_cell.py.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from omega.cell.view import View
from omega.lifecycle.states import ParkReason, State, Trigger
from omega.model.arrays import integers
from omega.model.claims import ConflictRule, Transaction
from omega.model.elastic import Workers
from omega.model.exits import TaskExit
from omega.model.jobs import LeasedJob
from omega.model.outcomes import Outcome
from omega.store.leases import HandBack, Parking
from omega.testing.builders import a_spec, a_transaction, claims_of_job, some_claims
from omega.testing.drawn_claims import ANY_TASK, TASKS_MAX, some_job_claims
from omega.testing.exit_contract import some_exit
from omega.testing.owner_histories import MACHINES_MAX, ChangingCell
from omega.testing.plain_cell import PlainJob
from omega.testing.steps import LONG_MS, OVER_AT_ONCE_MS, recall
from omega.testing.strategies import PRECEDENCES, TENANTS
from omega.testing.twin import differences, jobs_and_tasks, row_differences

SCHEDULERS = 2
"""How many schedulers have a view each."""
KINDS = ("batch", "service")
"""The kinds of scheduler that jobs are for; leases of both may be in one transaction."""


class SchedulersOnOneCell(ChangingCell):
    """Two schedulers with a view each, users, nodes, a rescuer and the owner, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.views = [View(self.store.snapshot()) for _ in range(SCHEDULERS)]
        self.leases: list[LeasedJob] = []
        """Every lease that was ever taken, lost ones included."""
        self.judged: list[tuple[Transaction, Outcome]] = []
        self.rounds = dict.fromkeys(KINDS, 0)
        """By kind, the number of the last round begun."""

    @initialize(
        machines=st.integers(1, MACHINES_MAX), gangs=st.lists(st.integers(0, 3), max_size=3)
    )
    def a_cell_to_begin_with(self, machines: int, gangs: list[int]) -> None:
        """Start with a few machines, views of them, and pending jobs."""
        self.machines_join(machines)
        self.views = [View(self.store.snapshot()) for _ in range(SCHEDULERS)]
        for number, gang in enumerate(gangs):
            self.a_user_submits(tasks=3, gang=gang, precedence=10 * number)

    @rule(
        tasks=st.integers(1, TASKS_MAX),
        gang=st.integers(0, TASKS_MAX),
        precedence=PRECEDENCES,
        tenant=TENANTS,
        preemptible=st.sampled_from([True, True, True, False]),
        more=st.sampled_from([None, None, 0, 3]),
        kind=st.sampled_from([KINDS[0], *KINDS]),
    )
    def a_user_submits(
        self,
        tasks: int,
        gang: int,
        precedence: int,
        tenant: str = "ann",
        *,
        preemptible: bool = True,
        more: int | None = None,
        kind: str = KINDS[0],
    ) -> None:
        """A job enters the queue; an elastic one may have so many more workers."""
        spec = a_spec(tasks, minimum=min(gang, tasks), precedence=precedence, tenant=tenant)
        workers = None if more is None else Workers(tasks + more)
        spec = replace(spec, preemptible=preemptible, scheduler=kind, workers=workers)
        (job,) = self.store.submit([spec])
        assert job not in self.model.jobs
        self.model.jobs[job] = PlainJob(spec)

    @rule(
        jobs_max=st.integers(1, 3),
        lease_ms=st.sampled_from([LONG_MS, OVER_AT_ONCE_MS]),
        kind=st.sampled_from(KINDS),
    )
    def a_scheduler_leases(self, jobs_max: int, lease_ms: int, kind: str) -> None:
        """A scheduler leases the first jobs of its queue, with their unplaced tasks."""
        leased = self.store.lease(kind, holder="0", jobs_max=jobs_max, lease_ms=lease_ms)
        assert self.model.waiting(kind)[:jobs_max] == [job.id for job in leased]
        self.they_are_leased(leased, lease_ms)

    def they_are_leased(self, leased: Sequence[LeasedJob], lease_ms: int) -> None:
        """The model leases what the store has leased, with its unplaced tasks."""
        for job in leased:
            about = self.model.jobs[job.id]
            assert sorted(about.unplaced) == job.unplaced.tolist()
            assert (about.spec, about.placed) == (job.spec, job.placed)
            about.move(Trigger.TAKE)
            about.token, about.lease_is_over = job.token, lease_ms == OVER_AT_ONCE_MS
            about.round = None
        self.leases += leased

    @rule(data=st.data(), lease_ms=st.sampled_from([LONG_MS, OVER_AT_ONCE_MS]))
    @precondition(lambda self: self.model.in_state(State.RUNNING))
    def a_scheduler_recalls(self, data: st.DataObject, lease_ms: int) -> None:
        """A kind's jobs that run, or were recalled by its round before, are leased; no others."""
        first = self.model.in_state(State.RUNNING)[0]
        kind = self.model.kind(first)
        named = data.draw(st.lists(st.sampled_from(sorted(self.model.jobs)), max_size=3))
        running = sorted({*named, first})
        number = self.rounds[kind]
        expected = [
            job
            for job in running
            if self.model.kind(job) == kind
            and self.model.jobs[job].parent is None
            and (
                self.model.jobs[job].state is State.RUNNING
                or (self.model.jobs[job].token is not None and self.model.jobs[job].round == number)
            )
        ]
        self.rounds[kind] = number = number + 1
        recalled = recall(
            self.store, running, scheduler=kind, holder=f"round {number}", lease_ms=lease_ms
        )
        assert expected == [job.id for job in recalled]
        for job in recalled:
            about = self.model.jobs[job.id]
            told = zip(job.placed_task.tolist(), job.placed_machine.tolist(), strict=True)
            assert {task: machine for task, (machine, _) in about.runs.items()} == dict(told)
            about.move(Trigger.RECALL)
            about.token, about.lease_is_over = job.token, lease_ms == OVER_AT_ONCE_MS
            about.round = number
        self.leases += recalled

    @rule(scheduler=st.integers(0, SCHEDULERS - 1))
    def a_scheduler_refreshes(self, scheduler: int) -> None:
        """A view catches up by a delta, or is replaced by a snapshot if machines have joined."""
        view = self.views[scheduler]
        changes = self.store.changes_since(view.mark)
        if changes.generation == view.generation:
            view.catch_up(changes)
        else:
            view = self.views[scheduler] = View(self.store.snapshot())
        assert [] == row_differences(self.model.rows(), view.rows())

    @rule(scheduler=st.integers(0, SCHEDULERS - 1), data=st.data())
    @precondition(lambda self: self._held() or self.model.in_state(State.PENDING))
    def a_scheduler_commits(self, scheduler: int, data: st.DataObject) -> None:
        """Claims are judged as the slow twin judges them, however stale the view."""
        self._commit(scheduler, ConflictRule.FIT, data)

    @rule(scheduler=st.integers(0, SCHEDULERS - 1), data=st.data())
    @precondition(lambda self: self._held() or self.model.in_state(State.PENDING))
    def a_scheduler_commits_by_sequence(self, scheduler: int, data: st.DataObject) -> None:
        """Under the sequence rule, too, claims are judged as the slow twin judges them."""
        self._commit(scheduler, ConflictRule.SEQUENCE, data)

    def _commit(self, scheduler: int, rule: ConflictRule, data: st.DataObject) -> None:
        view = self.views[scheduler]
        if not self._held():
            kind = self.model.kind(self.model.in_state(State.PENDING)[0])
            self.a_scheduler_leases(jobs_max=2, lease_ms=LONG_MS, kind=kind)
        jobs = data.draw(
            st.lists(
                st.sampled_from([*self._held() * 5, *self.leases[-2:]]), min_size=1, max_size=3
            )
        )
        claims_by_job = [
            some_job_claims(self.model, job, view, data) for job in {j.id: j for j in jobs}.values()
        ]
        self._judge(a_transaction(*claims_by_job, rule=rule), view)

    def _judge(self, transaction: Transaction, view: View) -> None:
        """Have a transaction judged by the store and by the model."""
        expected = self.model.judge(transaction)
        outcome = self.store.commit(transaction)
        assert [] == differences(expected, outcome)
        self.model.apply(transaction, expected)
        self.model.adopt_starts(self.store.allocations())
        self.judged.append((transaction, expected))
        view.patch(outcome.fresh)

    @rule(data=st.data())
    @precondition(lambda self: self.judged)
    def a_scheduler_that_had_no_answer_commits_again(self, data: st.DataObject) -> None:
        """A repeated commit returns the recorded outcome with the rows as they are now."""
        transaction, before = data.draw(st.sampled_from(self.judged))
        again = self.store.commit(transaction)
        rows = self.model.rows()
        now = replace(before, fresh=rows.take(rows.where(before.fresh.id)))
        assert [] == differences(now, again)

    @rule(data=st.data())
    @precondition(lambda self: self.model.jobs)
    def tasks_end(self, data: st.DataObject) -> None:
        """Nodes report ends of tasks, some of which do not run."""
        runs = st.sampled_from([(job, task) for job, task, _ in self.model.places()] or [(0, 0)])
        others = st.tuples(st.sampled_from(sorted(self.model.jobs)), ANY_TASK)
        told = data.draw(st.lists(runs | others, max_size=5))
        places = self.model.places()
        assert self.model.end_all(told) == self.store.end_tasks(*jobs_and_tasks(told))
        self._adopt_revisions(places)

    @rule(data=st.data())
    @precondition(lambda self: self.model.places())
    def tasks_of_that_start_end(self, data: st.DataObject) -> None:
        """Nodes report ends with starts: those of other allocations have no effect."""
        runs = [(job, task) for job, task, _ in self.model.places()]
        told = data.draw(st.lists(st.sampled_from(runs), max_size=3, unique=True))
        late = data.draw(st.sampled_from([0, 0, 1]))
        started = [self.model.jobs[job].started_ms[task] - late for job, task in told]
        places = self.model.places()
        ended = 0 if late else self.model.end_all(told)
        assert ended == self.store.end_tasks(*jobs_and_tasks(told), integers(started))
        self._adopt_revisions(places)

    @rule(data=st.data(), late=st.sampled_from([0, 0, 0, 1]))
    @precondition(lambda self: self.model.places())
    def programs_exit(self, data: st.DataObject, late: int) -> None:
        """Agents report exits: a gang fails with its first bad one, another job with its last."""
        names = st.sampled_from([(job, task) for job, task, _ in self.model.places()])
        told = data.draw(st.lists(st.tuples(names, st.sampled_from([False, True])), max_size=4))
        exits = [
            TaskExit(job, task, self.model.jobs[job].started_ms[task] - late, some_exit(bad=bad))
            for (job, task), bad in told
        ]
        places = self.model.places()
        assert self.model.exit_all([] if late else told) == self.store.report_exits(exits)
        self._adopt_revisions(places)

    @rule(
        data=st.data(),
        tasks=st.integers(1, 3),
        below=st.sampled_from([1, 10, 1_000]),
        lease_ms=st.sampled_from([LONG_MS, LONG_MS, OVER_AT_ONCE_MS]),
    )
    @precondition(lambda self: self._may_have_helpers())
    def a_scheduler_adds_helpers(
        self, data: st.DataObject, tasks: int, below: int, lease_ms: int
    ) -> None:
        """An elastic job gets as many helpers as it may have, of lower precedence."""
        parent = data.draw(st.sampled_from(self._may_have_helpers()))
        granted = self.model.helpers_granted(parent, tasks)
        precedence = self.model.jobs[parent].spec.precedence - below
        kind = self.model.kind(parent)
        leased = self.store.add_helpers(
            kind, parent, tasks, precedence=precedence, holder="0", lease_ms=lease_ms
        )
        if leased is None:
            assert not granted
            return
        assert list(range(granted)) == leased.unplaced.tolist()
        assert leased.id not in self.model.jobs
        self.model.jobs[leased.id] = helpers = PlainJob(leased.spec, parent=parent)
        helpers.move(Trigger.TAKE)
        helpers.token, helpers.lease_is_over = leased.token, lease_ms == OVER_AT_ONCE_MS
        self.leases.append(leased)

    @rule(data=st.data(), scheduler=st.integers(0, SCHEDULERS - 1))
    def an_elastic_job_grows(self, data: st.DataObject, scheduler: int) -> None:
        """An elastic job is submitted and placed if there is room; helpers of it are placed."""
        self.a_user_submits(tasks=1, gang=0, precedence=20, more=3)
        self.a_scheduler_leases(jobs_max=3, lease_ms=LONG_MS, kind=KINDS[0])
        self._place_last_leased(scheduler)
        if self._may_have_helpers():
            self.a_scheduler_adds_helpers(data, tasks=3, below=20, lease_ms=LONG_MS)
            self._place_last_leased(scheduler)

    def _place_last_leased(self, scheduler: int) -> None:
        """Commit claims for the unplaced tasks of the last lease, on the machines in turn."""
        view = self.views[scheduler]
        if not self._held():
            return
        job = self._held()[-1]
        tasks = sorted(self.model.jobs[job.id].unplaced)
        at = np.arange(len(tasks)) % len(view)
        seen = view.sequence[at].tolist()
        claims = some_claims(tasks, view.id[at].tolist(), seen=seen, cpu_milli=1_000)
        self._judge(a_transaction(claims_of_job(job, claims)), view)

    @rule(data=st.data(), kind=st.sampled_from(KINDS))
    @precondition(lambda self: any(it.parent is not None for it in self.model.jobs.values()))
    def a_scheduler_ends_helpers(self, data: st.DataObject, kind: str) -> None:
        """Helpers end before their parent; other tasks that are named do not."""
        runs = [(job, task) for job, task, _ in self.model.places()] or [(0, 0)]
        likely = st.sampled_from(self.model.helpers() or runs)
        told = data.draw(st.lists(likely | st.sampled_from(runs), max_size=4))
        places = self.model.places()
        helpers = [
            name
            for name in told
            if name in self.model.helpers() and self.model.kind(name[0]) == kind
        ]
        assert self.model.end_all(helpers) == self.store.end_helpers(kind, *jobs_and_tasks(told))
        self._adopt_revisions(places)

    def _may_have_helpers(self) -> list[int]:
        return [job for job in self.model.jobs if self.model.helpers_granted(job, 1)]

    @rule(data=st.data(), earnest=st.sampled_from([False, False, True]))
    @precondition(lambda self: self.model.jobs)
    def a_user_cancels(self, data: st.DataObject, *, earnest: bool) -> None:
        """A job is cancelled in any state; most draws do nothing, so that enough jobs go on."""
        if not earnest:
            return
        job = data.draw(st.sampled_from(sorted(self.model.jobs)))
        places = self.model.places()
        assert self.model.cancel(job) == self.store.cancel(job)
        self._adopt_revisions(places)

    def _held(self) -> list[LeasedJob]:
        return [job for job in self.leases if self._holds(job)]

    def _holds(self, job: LeasedJob) -> bool:
        return self.model.jobs[job.id].is_held_by(job.token)

    @rule(data=st.data(), progressed=st.booleans())
    @precondition(lambda self: self.leases)
    def a_scheduler_hands_back(self, data: st.DataObject, *, progressed: bool) -> None:
        """A job is handed back only by the holder of its lease."""
        job = data.draw(st.sampled_from(self.leases))
        held = self._holds(job)
        assert held == self.store.hand_back([HandBack(job.id, job.token, 0, progressed)])
        if held:
            self.model.jobs[job.id].end_lease(Trigger.HAND_BACK)

    @rule(data=st.data())
    @precondition(lambda self: self.leases)
    def a_scheduler_parks(self, data: st.DataObject) -> None:
        """A job is parked only by the holder of its lease."""
        job = data.draw(st.sampled_from(self.leases))
        held = self._holds(job)
        assert held == self.store.park([Parking(job.id, job.token, ParkReason.NO_ROOM, "full")])
        if held:
            self.model.jobs[job.id].end_lease(Trigger.PARK)

    @rule()
    def the_parked_are_woken(self) -> None:
        """Every parked job goes back to the queue."""
        parked = self.model.in_state(State.PARKED)
        told = [job.id for kind in KINDS for job in self.store.parked(kind, jobs_max=99)]
        assert sorted(parked) == sorted(told)
        assert sorted(parked) == self.store.wake(parked)
        for job in parked:
            self.model.jobs[job].move(Trigger.WAKE)

    @rule()
    def a_rescuer_comes_by(self) -> None:
        """Jobs whose leases have expired go back to the queue."""
        planning = self.model.in_state(State.PLANNING)
        lost = [job for job in planning if self.model.jobs[job].lease_is_over]
        assert lost == sorted(self.store.rescue())
        for job in lost:
            self.model.jobs[job].end_lease(Trigger.LEASE_EXPIRED)

    @invariant()
    def rows_are_the_models(self) -> None:
        """Rows equal the model's: no claim is lost, doubled or oversold."""
        assert [] == row_differences(self.model.rows(), self.store.snapshot().rows)

    @invariant()
    def allocations_are_the_models(self) -> None:
        """The running tasks are those that were granted and have not ended."""
        live = self.store.allocations()
        told = zip(live.job.tolist(), live.task.tolist(), live.machine.tolist(), strict=True)
        assert self.model.places() == sorted(told)

    @invariant()
    def jobs_are_the_models(self) -> None:
        """The state of each job follows from the table of moves."""
        for parent in {None, *(about.parent for about in self.model.jobs.values())}:
            expected = [
                (job, about.state, about.placed, len(about.over), about.failed)
                for job, about in sorted(self.model.jobs.items(), reverse=True)
                if about.parent == parent
            ]
            told = self.store.jobs(jobs_max=1_000)
            if parent is not None:
                told = self.store.helpers(parent, jobs_max=1_000)
            assert expected == [(it.id, it.state, it.placed, it.ended, it.failed) for it in told]

    @invariant()
    def the_invariants_hold(self) -> None:
        """The store's own check finds nothing."""
        assert [] == list(self.store.verify())
