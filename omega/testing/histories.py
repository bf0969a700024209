"""Random histories of several schedulers on one cell, against a model in plain words.

Goal     Find the sequence of calls that nobody thought of.
Promise  After every call, rows, jobs and verdicts are the model's, and the store's own verify finds
         nothing. Subclass and override `new_store`.
Source   Hypothesis's stateful testing; omega/testing/plain_cell.py.
"""

import numpy as np
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from omega.cell.view import View
from omega.lifecycle.states import ParkReason, State, Trigger
from omega.model.arrays import integers
from omega.model.claims import ConflictRule, Transaction
from omega.model.jobs import LeasedJob
from omega.model.outcomes import Outcome
from omega.store.base import HandBack, Parking, Store
from omega.testing.builders import Stretch, a_cell, a_spec, a_stretch, a_transaction, some_claims
from omega.testing.plain_cell import PlainCell, PlainJob
from omega.testing.steps import LONG_MS, OVER_AT_ONCE_MS
from omega.testing.twin import differences, plain_machines, row_differences

SCHEDULERS = 2
"""How many hold a view of their own."""

TASKS_MAX = 4
ANY_TASK = st.integers(0, TASKS_MAX)
"""One more than a job can have."""


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

    def teardown(self) -> None:
        """Let go of the store."""
        self.store.close()

    @initialize(machines=st.integers(1, 4))
    def a_cell_to_begin_with(self, machines: int) -> None:
        """Begin with a few machines, and views that know them."""
        self.machines_join(machines)
        self.views = [View(self.store.snapshot()) for _ in range(SCHEDULERS)]

    @rule(machines=st.integers(1, 2))
    @precondition(lambda self: len(self.model.machines) < TASKS_MAX)
    def machines_join(self, machines: int) -> None:
        """Machines of four cores and one GPU join."""
        cell = a_cell(machines, cpu_milli=4_000, gpus=1, first=len(self.model.machines) + 1)
        ids = self.store.add_machines(cell)
        rows = self.store.snapshot().rows
        self.model.machines.update(plain_machines(rows.take(rows.where(ids))))

    @rule(
        tasks=st.integers(1, TASKS_MAX),
        gang=st.integers(0, TASKS_MAX),
        precedence=st.integers(0, 1),
    )
    def a_user_submits(self, tasks: int, gang: int, precedence: int) -> None:
        """A job enters the queue."""
        spec = a_spec(tasks, minimum=min(gang, tasks), precedence=precedence)
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
        self.leases += leased

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

    @rule(
        scheduler=st.integers(0, SCHEDULERS - 1),
        rule=st.sampled_from(ConflictRule),
        data=st.data(),
    )
    @precondition(lambda self: self.leases)
    def a_scheduler_commits(self, scheduler: int, rule: ConflictRule, data: st.DataObject) -> None:
        """Claims are judged as the slow twin judges them, however stale the view."""
        view = self.views[scheduler]
        held = [job for job in self.leases if self._holds(job)]
        jobs = data.draw(
            st.lists(st.sampled_from([*held * 3, *self.leases[-3:]]), min_size=1, max_size=3)
        )
        stretches = [
            self._some_stretch(job, view, data) for job in {j.id: j for j in jobs}.values()
        ]
        transaction = a_transaction(*stretches, rule=rule)
        expected = self.model.judge(transaction)
        outcome = self.store.commit(transaction)
        assert [] == differences(expected, outcome)
        self.model.apply(transaction, expected)
        self.judged.append((transaction, expected))
        view.patch(outcome.fresh)

    def _some_stretch(self, job: LeasedJob, view: View, data: st.DataObject) -> Stretch:
        tasks = data.draw(st.lists(ANY_TASK, max_size=5))
        beyond = [int(view.id[-1]) + 1_000]
        machines = [data.draw(st.sampled_from([*view.id.tolist() * 3, *beyond])) for _ in tasks]
        at = view.where(integers(machines))
        seen = np.where(at < 0, 0, view.sequence[at])
        cores, slices = data.draw(st.sampled_from([(1, 0), (2, 0), (3, 0), (0, 500), (1, 1_000)]))
        claims = some_claims(
            tasks, machines, seen=seen.tolist(), cpu_milli=cores * 1_000, gpu_0=slices
        )
        return a_stretch(job, claims, minimum=data.draw(st.sampled_from([0, 0, len(tasks)])))

    @rule(data=st.data())
    @precondition(lambda self: self.judged)
    def a_scheduler_that_had_no_answer_commits_again(self, data: st.DataObject) -> None:
        """The verdicts of then, and the rows of now."""
        transaction, before = data.draw(st.sampled_from(self.judged))
        again = self.store.commit(transaction)
        assert before.verdicts.tolist() == again.verdicts.tolist()
        assert [] == row_differences(self.model.rows_named(transaction), again.fresh)

    @rule(data=st.data())
    @precondition(lambda self: self.model.jobs)
    def tasks_end(self, data: st.DataObject) -> None:
        """Nodes report ends: of tasks that run, and of others."""
        runs = st.sampled_from([(job, task) for job, task, _ in self._places()] or [(0, 0)])
        others = st.tuples(st.sampled_from(sorted(self.model.jobs)), ANY_TASK)
        told = data.draw(st.lists(runs | others, max_size=5))
        jobs, tasks = [job for job, _ in told], [task for _, task in told]
        places = self._places()
        ended = [self.model.end(job, task) for job, task in zip(jobs, tasks, strict=True)]
        assert sum(ended) == self.store.end_tasks(integers(jobs), np.array(tasks, dtype=np.intp))
        self._adopt_revisions(places)

    @rule(data=st.data())
    @precondition(lambda self: self.model.jobs)
    def a_user_cancels(self, data: st.DataObject) -> None:
        """A job ends, whatever it does."""
        job = data.draw(st.sampled_from(sorted(self.model.jobs)))
        places = self._places()
        assert self.model.cancel(job) == self.store.cancel(job)
        self._adopt_revisions(places)

    def _places(self) -> list[tuple[int, int, int]]:
        return sorted(
            (job, task, machine)
            for job, about in self.model.jobs.items()
            for task, (machine, _) in about.runs.items()
        )

    def _holds(self, job: LeasedJob) -> bool:
        return self.model.jobs[job.id].is_held_by(job.token)

    def _adopt_revisions(self, before: list[tuple[int, int, int]]) -> None:
        freed = {machine for _, _, machine in set(before) - set(self._places())}
        self.model.adopt_revisions(self.store.snapshot().rows, freed)

    @rule(data=st.data(), progressed=st.booleans())
    @precondition(lambda self: self.leases)
    def a_scheduler_hands_back(self, data: st.DataObject, *, progressed: bool) -> None:
        """Only who holds the lease can."""
        job = data.draw(st.sampled_from(self.leases))
        held = self._holds(job)
        assert held == self.store.hand_back([HandBack(job.id, job.token, 0, progressed)])
        if held:
            self.model.jobs[job.id].move(Trigger.HAND_BACK)

    @rule(data=st.data())
    @precondition(lambda self: self.leases)
    def a_scheduler_parks(self, data: st.DataObject) -> None:
        """Only who holds the lease can."""
        job = data.draw(st.sampled_from(self.leases))
        held = self._holds(job)
        assert held == self.store.park([Parking(job.id, job.token, ParkReason.NO_ROOM, "full")])
        if held:
            self.model.jobs[job.id].move(Trigger.PARK)

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
            self.model.jobs[job].move(Trigger.LEASE_EXPIRED)

    @invariant()
    def rows_are_the_models(self) -> None:
        """Nothing is lost, doubled or oversold."""
        assert [] == row_differences(self.model.rows(), self.store.snapshot().rows)

    @invariant()
    def allocations_are_the_models(self) -> None:
        """What runs is what was granted and has not ended."""
        live = self.store.allocations()
        told = zip(live.job.tolist(), live.task.tolist(), live.machine.tolist(), strict=True)
        assert self._places() == sorted(told)

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
    def the_books_are_clean(self) -> None:
        """The store's own check finds nothing."""
        assert [] == list(self.store.verify())
