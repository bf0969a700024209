"""Random histories of several schedulers on one cell, against a model in plain words.

Goal     Find the sequence of calls that nobody thought of.
Promise  After every call, rows, jobs and verdicts are the model's, and the store's own verify finds
         nothing. Subclass and override `new_store`.
Source   Hypothesis's stateful testing; omega/testing/plain_cell.py.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from omega.cell.view import View
from omega.errors import BadInput
from omega.lifecycle.states import ParkReason, State, Trigger
from omega.model.arrays import Ids, Index, integers
from omega.model.claims import ConflictRule, Transaction
from omega.model.jobs import LeasedJob
from omega.model.machines import MachineState
from omega.model.outcomes import Outcome
from omega.model.quotas import Budget, Quota, QuotaScope, QuotaUse
from omega.model.resources import machine_capacity
from omega.store.leases import HandBack, Parking
from omega.store.protocols import Store
from omega.testing.builders import a_cell, a_spec, a_transaction
from omega.testing.drawn_claims import ANY_TASK, TASKS_MAX, some_job_claims
from omega.testing.plain_cell import PlainCell, PlainJob
from omega.testing.steps import LONG_MS, OVER_AT_ONCE_MS, recall
from omega.testing.strategies import TENANTS
from omega.testing.twin import TaskName, differences, plain_machines, row_differences

SUBJECTS = st.sampled_from(
    [(QuotaScope.TENANT, "ann"), (QuotaScope.TENANT, "bob"), (QuotaScope.SCHEDULER, "batch")]
)
"""Whose quotas there may be."""

SCHEDULERS = 2
"""How many hold a view of their own."""

MACHINES_MAX = 4


class SchedulersOnOneCell(RuleBasedStateMachine):
    """Two schedulers with views of their own, users, nodes and a rescuer, in any order."""

    def new_store(self) -> Store:
        """Return an empty store. The subclass provides it."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.store = self.new_store()
        self.model = PlainCell()
        self.views = [View(self.store.snapshot()) for _ in range(SCHEDULERS)]
        self.leases: list[LeasedJob] = []
        """Every lease there ever was, lost ones included."""
        self.judged: list[tuple[Transaction, Outcome]] = []
        self.round = 0
        """The number of the last round begun."""

    def teardown(self) -> None:
        """Let go of the store."""
        self.store.close()

    @initialize(
        machines=st.integers(1, MACHINES_MAX), gangs=st.lists(st.integers(0, 3), max_size=3)
    )
    def a_cell_to_begin_with(self, machines: int, gangs: list[int]) -> None:
        """Begin with a few machines, views that know them, and jobs that wait."""
        self.machines_join(machines)
        self.views = [View(self.store.snapshot()) for _ in range(SCHEDULERS)]
        for precedence, gang in enumerate(gangs):
            self.a_user_submits(tasks=3, gang=gang, precedence=precedence)

    @rule(machines=st.integers(1, 2))
    @precondition(lambda self: self._machines_here() < MACHINES_MAX)
    def machines_join(self, machines: int) -> None:
        """Machines of four cores and one GPU join."""
        cell = a_cell(machines, cpu_milli=4_000, gpus=1, first=len(self.model.machines) + 1)
        ids = self.store.add_machines(cell)
        rows = self.store.snapshot().rows
        self.model.machines.update(plain_machines(rows.take(rows.where(ids))))

    @rule(
        tasks=st.integers(1, TASKS_MAX),
        gang=st.integers(0, TASKS_MAX),
        precedence=st.integers(0, 2),
        tenant=TENANTS,
    )
    def a_user_submits(self, tasks: int, gang: int, precedence: int, tenant: str = "ann") -> None:
        """A job enters the queue."""
        spec = a_spec(tasks, minimum=min(gang, tasks), precedence=precedence, tenant=tenant)
        (job,) = self.store.submit([spec])
        assert job not in self.model.jobs
        self.model.jobs[job] = PlainJob(spec)

    @rule(jobs_max=st.integers(1, 3), lease_ms=st.sampled_from([LONG_MS, OVER_AT_ONCE_MS]))
    def a_scheduler_leases(self, jobs_max: int, lease_ms: int) -> None:
        """Whoever is next in the queue is leased, with what is left of it."""
        leased = self.store.lease("batch", holder="0", jobs_max=jobs_max, lease_ms=lease_ms)
        assert self.model.waiting()[:jobs_max] == [job.id for job in leased]
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
        """Running jobs are leased, and those of the round before; of others nothing is told."""
        named = data.draw(st.lists(st.sampled_from(sorted(self.model.jobs)), max_size=3))
        running = sorted({*named, *self.model.in_state(State.RUNNING)[:1]})
        expected = [
            job
            for job in running
            if self.model.jobs[job].state is State.RUNNING
            or (self.model.jobs[job].token is not None and self.model.jobs[job].round == self.round)
        ]
        self.round += 1
        recalled = recall(self.store, running, holder=f"round {self.round}", lease_ms=lease_ms)
        assert expected == [job.id for job in recalled]
        for job in recalled:
            about = self.model.jobs[job.id]
            told = zip(job.placed_task.tolist(), job.placed_machine.tolist(), strict=True)
            assert {task: machine for task, (machine, _) in about.runs.items()} == dict(told)
            about.move(Trigger.RECALL)
            about.token, about.lease_is_over = job.token, lease_ms == OVER_AT_ONCE_MS
            about.round = self.round
        self.leases += recalled

    @rule(scheduler=st.integers(0, SCHEDULERS - 1))
    def a_scheduler_refreshes(self, scheduler: int) -> None:
        """A view catches up by a delta, or is read anew when machines have joined."""
        view = self.views[scheduler]
        changes = self.store.changes_since(view.mark)
        if changes.generation == view.generation:
            view.catch_up(changes)
        else:
            view = self.views[scheduler] = View(self.store.snapshot())
        assert [] == row_differences(self.model.rows(), view.rows())

    @rule(scheduler=st.integers(0, SCHEDULERS - 1), data=st.data())
    @precondition(lambda self: self._held() or self.model.waiting())
    def a_scheduler_commits(self, scheduler: int, data: st.DataObject) -> None:
        """Claims are judged as the slow twin judges them, however stale the view."""
        self._commit(scheduler, ConflictRule.FIT, data)

    @rule(scheduler=st.integers(0, SCHEDULERS - 1), data=st.data())
    @precondition(lambda self: self._held() or self.model.waiting())
    def a_scheduler_commits_by_sequence(self, scheduler: int, data: st.DataObject) -> None:
        """So they are under the stricter rule."""
        self._commit(scheduler, ConflictRule.SEQUENCE, data)

    def _commit(self, scheduler: int, rule: ConflictRule, data: st.DataObject) -> None:
        view = self.views[scheduler]
        if not self._held():
            self.a_scheduler_leases(jobs_max=2, lease_ms=LONG_MS)
        jobs = data.draw(
            st.lists(
                st.sampled_from([*self._held() * 5, *self.leases[-2:]]), min_size=1, max_size=3
            )
        )
        claims_by_job = [
            some_job_claims(self.model, job, view, data) for job in {j.id: j for j in jobs}.values()
        ]
        transaction = a_transaction(*claims_by_job, rule=rule)
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
        """The outcome of then, with the rows of now."""
        transaction, before = data.draw(st.sampled_from(self.judged))
        again = self.store.commit(transaction)
        rows = self.model.rows()
        now = replace(before, fresh=rows.take(rows.where(before.fresh.id)))
        assert [] == differences(now, again)

    @rule(data=st.data())
    @precondition(lambda self: self.model.jobs)
    def tasks_end(self, data: st.DataObject) -> None:
        """Nodes report ends: of tasks that run, and of others."""
        runs = st.sampled_from([(job, task) for job, task, _ in self.model.places()] or [(0, 0)])
        others = st.tuples(st.sampled_from(sorted(self.model.jobs)), ANY_TASK)
        told = data.draw(st.lists(runs | others, max_size=5))
        places = self.model.places()
        ended = [self.model.end(job, task) for job, task in told]
        assert sum(ended) == self.store.end_tasks(*_jobs_and_tasks(told))
        self._adopt_revisions(places)

    @rule(data=st.data())
    @precondition(lambda self: self.model.places())
    def tasks_of_that_start_end(self, data: st.DataObject) -> None:
        """Nodes report ends of what they started: of another allocation they mean nothing."""
        runs = [(job, task) for job, task, _ in self.model.places()]
        told = data.draw(st.lists(st.sampled_from(runs), max_size=3, unique=True))
        late = data.draw(st.sampled_from([0, 0, 1]))
        started = [self.model.jobs[job].started_ms[task] - late for job, task in told]
        places = self.model.places()
        ended = [not late and self.model.end(job, task) for job, task in told]
        assert sum(ended) == self.store.end_tasks(*_jobs_and_tasks(told), integers(started))
        self._adopt_revisions(places)

    @rule(data=st.data(), state=st.sampled_from([*[MachineState.OPEN] * 3, *MachineState]))
    def a_machine_changes_its_state(self, data: st.DataObject, state: MachineState) -> None:
        """It opens, drains, goes down or leaves, which is for good."""
        machine = self._some_machine(data)
        assert self.model.set_state(machine, state) == self.store.set_state(
            integers([machine]), state
        )

    @rule(data=st.data())
    def tasks_are_lost(self, data: st.DataObject) -> None:
        """What runs on dead machines goes back to the queue; elsewhere nothing happens."""
        machines = [self._some_machine(data), self._some_machine(data)]
        if data.draw(st.booleans()):
            self.a_machine_changes_its_state(data, MachineState.DOWN)
            machines = sorted(self.model.machines)
        places = self.model.places()
        assert self.model.lose_tasks(machines) == self.store.lose_tasks(integers(machines))
        self._adopt_revisions(places)

    @rule(
        data=st.data(),
        cores=st.integers(0, 5),
        notice_ms=st.sampled_from([LONG_MS, OVER_AT_ONCE_MS]),
    )
    def a_machine_is_resized(self, data: st.DataObject, cores: int, notice_ms: int) -> None:
        """It has more or fewer cores and its GPU or none; one that is gone stays as it was."""
        machine = self._some_machine(data)
        capacity = machine_capacity(cores * 1_000, 16_384, 100_000, data.draw(st.integers(0, 1)))
        if self.model.machines[machine].state == MachineState.GONE:
            with pytest.raises(BadInput):
                self.store.resize(machine, capacity, notice_ms=notice_ms)
        else:
            self.store.resize(machine, capacity, notice_ms=notice_ms)
            is_over = notice_ms == OVER_AT_ONCE_MS
            self.model.resize(machine, capacity.tolist(), is_over=is_over)
        if data.draw(st.booleans()):
            self.notices_are_enforced()

    @rule()
    @precondition(lambda self: self.model.notices)
    def notices_are_enforced(self) -> None:
        """What no longer fits goes back to the queue, where a notice has run out."""
        places = self.model.places()
        assert self.model.enforce_notices() == self.store.enforce_notices()
        self._adopt_revisions(places)

    def _some_machine(self, data: st.DataObject) -> int:
        """Draw a machine, one with tasks rather than an idle one."""
        busy = [machine for _, _, machine in self.model.places()]
        return data.draw(st.sampled_from([*busy, *sorted(self.model.machines)]))

    @rule(data=st.data(), earnest=st.sampled_from([False, False, True]))
    @precondition(lambda self: self.model.jobs)
    def a_user_cancels(self, data: st.DataObject, *, earnest: bool) -> None:
        """A job ends, whatever it does; users change their minds more often than not."""
        if not earnest:
            return
        job = data.draw(st.sampled_from(sorted(self.model.jobs)))
        places = self.model.places()
        assert self.model.cancel(job) == self.store.cancel(job)
        self._adopt_revisions(places)

    @rule(subject=SUBJECTS, budget=st.sampled_from(Budget), more=st.integers(-2, 6))
    def an_operator_sets_a_quota(
        self, subject: tuple[QuotaScope, str], budget: Budget, more: int
    ) -> None:
        """A tenant or the scheduler may hold a little more than it does, or less."""
        scale = {Budget.CPU_MILLI: 1_000, Budget.GPU_SLICES: 500, Budget.JOBS: 1}.get(budget, 0)
        limit = self.model.used(Quota(*subject, {}))[budget] + more * scale
        quota = Quota(*subject, {budget: max(0, limit)})
        self.store.set_quota(quota)
        self.model.quotas[subject] = quota

    @rule(subject=SUBJECTS)
    @precondition(lambda self: self.model.quotas)
    def an_operator_lifts_a_quota(self, subject: tuple[QuotaScope, str]) -> None:
        """A quota that is there goes; of others the store says that there are none."""
        there = self.model.quotas.pop(subject, None) is not None
        assert there == self.store.remove_quota(*subject)

    @invariant()
    def quotas_are_the_models(self) -> None:
        """What is left is the limit less what runs."""
        told = {(use.quota.scope, use.quota.name): use for use in self.store.quotas()}
        assert told.keys() == self.model.quotas.keys()
        for subject, quota in self.model.quotas.items():
            used = self.model.used(quota)
            left = {budget: limit - used[budget] for budget, limit in quota.limits.items()}
            assert told[subject] == QuotaUse(quota, left)

    def _machines_here(self) -> int:
        machines = self.model.machines.values()
        return sum(machine.state != MachineState.GONE for machine in machines)

    def _held(self) -> list[LeasedJob]:
        return [job for job in self.leases if self._holds(job)]

    def _holds(self, job: LeasedJob) -> bool:
        return self.model.jobs[job.id].is_held_by(job.token)

    def _adopt_revisions(self, before: list[tuple[int, int, int]]) -> None:
        freed = {machine for _, _, machine in set(before) - set(self.model.places())}
        self.model.adopt_revisions(self.store.snapshot().rows, freed)

    @rule(data=st.data(), progressed=st.booleans())
    @precondition(lambda self: self.leases)
    def a_scheduler_hands_back(self, data: st.DataObject, *, progressed: bool) -> None:
        """Only who holds the lease can."""
        job = data.draw(st.sampled_from(self.leases))
        held = self._holds(job)
        assert held == self.store.hand_back([HandBack(job.id, job.token, 0, progressed)])
        if held:
            self.model.jobs[job.id].end_lease(Trigger.HAND_BACK)

    @rule(data=st.data())
    @precondition(lambda self: self.leases)
    def a_scheduler_parks(self, data: st.DataObject) -> None:
        """Only who holds the lease can."""
        job = data.draw(st.sampled_from(self.leases))
        held = self._holds(job)
        assert held == self.store.park([Parking(job.id, job.token, ParkReason.NO_ROOM, "full")])
        if held:
            self.model.jobs[job.id].end_lease(Trigger.PARK)

    @rule()
    def the_parked_are_woken(self) -> None:
        """Every parked job goes back to the queue."""
        parked = self.model.in_state(State.PARKED)
        assert sorted(parked) == sorted(job.id for job in self.store.parked("batch", jobs_max=99))
        assert len(parked) == self.store.wake(parked)
        for job in parked:
            self.model.jobs[job].move(Trigger.WAKE)

    @rule()
    def a_rescuer_comes_by(self) -> None:
        """Whose lease has run out goes back to the queue."""
        planning = self.model.in_state(State.PLANNING)
        lost = [job for job in planning if self.model.jobs[job].lease_is_over]
        assert lost == sorted(self.store.rescue())
        for job in lost:
            self.model.jobs[job].end_lease(Trigger.LEASE_EXPIRED)

    @invariant()
    def rows_are_the_models(self) -> None:
        """Nothing is lost, doubled or oversold."""
        assert [] == row_differences(self.model.rows(), self.store.snapshot().rows)

    @invariant()
    def allocations_are_the_models(self) -> None:
        """What runs is what was granted and has not ended."""
        live = self.store.allocations()
        told = zip(live.job.tolist(), live.task.tolist(), live.machine.tolist(), strict=True)
        assert self.model.places() == sorted(told)

    @invariant()
    def jobs_are_the_models(self) -> None:
        """Each job is where the table of moves has brought it."""
        expected = [
            (job, about.state, about.placed, len(about.over))
            for job, about in sorted(self.model.jobs.items(), reverse=True)
        ]
        told = self.store.jobs(jobs_max=1_000)
        assert expected == [(job.id, job.state, job.placed, job.ended) for job in told]

    @invariant()
    def the_invariants_hold(self) -> None:
        """The store's own check finds nothing."""
        assert [] == list(self.store.verify())


def _jobs_and_tasks(names: Sequence[TaskName]) -> tuple[Ids, Index]:
    """Return names of tasks as a store takes them."""
    jobs, tasks = [job for job, _ in names], [task for _, task in names]
    return integers(jobs), np.array(tasks, dtype=np.intp)
