"""The contract that a scheduler with `rounds` keeps besides that of all schedulers.

Goal     Tell the author of `rounds`, in a sentence each, what a process relies on.
Promise  Rounds are played on a small cell in memory, by the code that plays them live. Nobody else
         commits, so that every claim of a correct plan is granted.
Source   omega.framework.rounds; docs/decisions/0028-rounds-on-the-shared-cell.md.
"""

import json
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
import pytest

from omega.cell.view import View
from omega.clock import ManualClock
from omega.config import Settings
from omega.events import Event, TransactionJudged
from omega.framework.rounds import JobClaims, RoundPlan, Rounds, RoundState
from omega.framework.runner import SchedulerProcess
from omega.framework.scheduler import Scheduler
from omega.model.arrays import integers
from omega.model.jobs import JobSpec, LeasedJob, StepWork
from omega.model.machines import MachineState, Snapshot
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_cell, a_spec, join_cells
from omega.testing.scheduler_contract import (
    NOT_A100,
    SchedulerContract,
    faults,
    faults_of_each,
)

LATER_ROUNDS: Final = 30
GROWTH_MAX: Final = 1.5
"""Of a memo in so many rounds in which as many jobs come as go."""


@dataclass(frozen=True, eq=False)
class PlannedRound:
    """What one call of `plan` was given and returned."""

    view: View
    """A copy from before the call."""
    state: RoundState
    rng: np.random.Generator
    """Likewise."""
    plan: RoundPlan
    left: View
    """The view after the call."""

    def repeated(self, rounds: Rounds) -> RoundPlan:
        """Plan the same round again."""
        return rounds.plan(copy_of(self.view), self.state, deepcopy(self.rng))


class RecordedRounds(Rounds):
    """Rounds that keep what they were given; a faulty plan is not handed on."""

    def __init__(self, rounds: Rounds) -> None:
        self.length_ms = rounds.length_ms
        self.planned: list[PlannedRound] = []
        self._rounds = rounds

    def plan(self, view: View, state: RoundState, rng: np.random.Generator) -> RoundPlan:
        before, kept = copy_of(view), deepcopy(rng)
        plan = self._rounds.plan(view, state, rng)
        self.planned.append(PlannedRound(before, state, kept, plan, copy_of(view)))
        if faults_of_plan(before, state, plan) or not is_plain_json(plan.memo):
            return RoundPlan([], {}, [])
        return plan

    def again(
        self, view: View, refused: Sequence[LeasedJob], rng: np.random.Generator
    ) -> Sequence[JobClaims]:
        return self._rounds.again(view, refused, rng)


def copy_of(view: View) -> View:
    """Return a view of its own with the same rows and signals."""
    names, catalogue = view.names, view.catalogue
    mark, generation = view.mark, view.generation
    made = View(Snapshot(view.rows(), names, catalogue, view.codes.copy(), mark, generation))
    made.signals = view.signals
    return made


def told_by(view: View) -> list[object]:
    """Return all that placement reads of a view, to be compared."""
    rows = (view.id, view.capacity, view.free, view.sequence, view.revision, view.state, view.open)
    return [view.mark, view.generation, *(row.tolist() for row in rows)]


def decided_by(plan: RoundPlan) -> list[object]:
    """Return all that a plan decides, to be compared."""
    claims_by_job = [
        (
            job_claims.job.id,
            job_claims.grants_min,
            job_claims.claims.task.tolist(),
            job_claims.claims.machine.tolist(),
            job_claims.claims.demand.tolist(),
            job_claims.claims.evictions.claim.tolist(),
            job_claims.claims.evictions.job.tolist(),
            job_claims.claims.evictions.task.tolist(),
        )
        for job_claims in plan.claims
    ]
    wanting = [(job.id, job.spec) for job in plan.wanting]
    return [claims_by_job, dict(plan.memo), list(plan.recall), wanting]


def is_plain_json(memo: Mapping[str, object]) -> bool:
    """Return whether JSON holds this memo and gives the same back."""
    try:
        return bool(json.loads(json.dumps(memo, allow_nan=False)) == memo)
    except (TypeError, ValueError):
        return False


def faults_of_plan(view: View, state: RoundState, plan: RoundPlan) -> list[str]:
    """Return what is wrong with a plan, whatever a store would say to it; nothing, if all is well.

    Whether the claims fit once their evictions are made, a store judges.
    """
    jobs = {job.id: job for job in (*state.waiting, *state.running)}
    live = state.allocations
    runs = set(zip(live.job.tolist(), live.task.tolist(), strict=True))
    named = Counter(job_claims.job.id for job_claims in plan.claims)
    found = [f"job {job} has {times} claims" for job, times in named.items() if times > 1]
    found += [f"recalls job {job} twice" for job, n in Counter(plan.recall).items() if n > 1]
    found += [f"recalls job {job}, not of this round" for job in plan.recall if job not in jobs]
    strange = {job.id for job in plan.wanting} - jobs.keys()
    found += [f"wants room for job {job}, not of this round" for job in strange]
    for job_claims in plan.claims:
        job, claims = job_claims.job, job_claims.claims
        if job.id not in jobs:
            found.append(f"claims for job {job.id}, not of this round")
            continue
        if job_claims.grants_min > len(claims):
            found.append(f"job {job.id}: fewer claims than their minimum")
        found += [f"job {job.id}: {what}" for what in faults_of_each(view, job, claims)]
        evicted = claims.evictions.job.tolist(), claims.evictions.task.tolist()
        for victim in zip(*evicted, strict=True):
            if victim[0] not in jobs:
                found.append(f"job {job.id} evicts job {victim[0]}, not of this round")
            elif victim not in runs:
                found.append(f"job {job.id} evicts task {victim[1]} of {victim[0]}, not running")
    return found


class RoundsCell:
    """A cell in memory on which a scheduler plays rounds, beside nobody.

    Machines 1 and 2 have four A100 each, 3 and 4 have four T4 each.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        assert scheduler.rounds is not None, "it has no rounds: SchedulerContract is enough"
        self.kind = scheduler.kind
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock)
        self.rounds = RecordedRounds(scheduler.rounds)
        self.events: list[Event] = []
        self.store.add_machines(
            join_cells(
                a_cell(2, cpu_milli=16_000, gpus=4, attributes={"gpu_model": ["A100"] * 2}),
                a_cell(2, cpu_milli=16_000, gpus=4, first=3, attributes={"gpu_model": ["T4"] * 2}),
            )
        )
        played = copy(scheduler)
        played.rounds = self.rounds
        self._process = SchedulerProcess(
            scheduler=played,
            store=self.store,
            open_store=lambda: self.store,
            clock=self.clock,
            settings=Settings(),
            sink=self.events.append,
            replica="0",
            run_seed=0,
            stop=threading.Event(),
        )

    def a_gang(self, tasks: int, *, only: bool = False) -> JobSpec:
        """Return a job that trains on so many GPUs; `only`: not on an A100."""
        return a_spec(
            tasks,
            scheduler=self.kind,
            minimum=tasks,
            gpus=1,
            constraints=(NOT_A100,) if only else (),
            work=StepWork("model", 10**9),
        )

    def play(self, rounds: int = 1) -> None:
        """Play so many rounds, each as soon as it is due."""
        for _ in range(rounds):
            self._process.step()
            self.clock.advance(self.rounds.length_ms / 1_000 + 0.001)

    @property
    def refused(self) -> list[Mapping[str, int]]:
        """Claims that were refused, a transaction an entry."""
        judged = [event for event in self.events if isinstance(event, TransactionJudged)]
        return [event.refused for event in judged if event.refused]


def played(scheduler: Scheduler) -> RoundsCell:
    """Play rounds through arrivals, more work than room, an end, a drain and a reopening."""
    cell = RoundsCell(scheduler)
    cell.play()
    first = cell.store.submit([*map(cell.a_gang, (4, 2, 1)), cell.a_gang(2, only=True)])
    cell.store.submit([a_spec(3, scheduler=cell.kind)])
    cell.play(2)
    cell.store.submit([*map(cell.a_gang, (4, 4, 2)), cell.a_gang(3, only=True)])
    cell.play(3)
    cell.store.cancel(first[0])
    cell.store.set_state(integers([2]), MachineState.DRAINING)
    cell.play(2)
    cell.store.set_state(integers([2]), MachineState.OPEN)
    cell.play(2)
    return cell


class RoundsContract(SchedulerContract):
    """What every scheduler with rounds must do. Subclass it and provide the fixture `scheduler`."""

    covers_rounds: ClassVar[bool] = True

    @pytest.fixture
    def cell(self, scheduler: Scheduler) -> RoundsCell:
        """Return a cell on which the rounds of `played` were played."""
        return played(scheduler)

    def test_a_plan_is_of_jobs_that_are_leased_or_recalled(self, cell: RoundsCell) -> None:
        for one in cell.rounds.planned:
            assert [] == faults_of_plan(one.view, one.state, one.plan)

    def test_claims_and_moves_fit_where_nobody_else_commits(self, cell: RoundsCell) -> None:
        assert any(one.plan.claims for one in cell.rounds.planned)
        assert [] == cell.refused
        assert [] == list(cell.store.verify())

    def test_an_idle_cell_takes_all_jobs_that_fit(self, scheduler: Scheduler) -> None:
        cell = RoundsCell(scheduler)
        specs = [cell.a_gang(4), cell.a_gang(2), cell.a_gang(1), a_spec(3, scheduler=cell.kind)]
        cell.store.submit(specs)
        cell.play()

        assert sum(spec.tasks for spec in specs) == len(cell.store.allocations())

    def test_planning_a_round_leaves_the_view_as_it_was(self, cell: RoundsCell) -> None:
        for one in cell.rounds.planned:
            assert told_by(one.view) == told_by(one.left)

    def test_the_same_seed_gives_the_same_plan(
        self, cell: RoundsCell, scheduler: Scheduler
    ) -> None:
        assert scheduler.rounds is not None
        for one in cell.rounds.planned:
            first, second = (one.repeated(scheduler.rounds) for _ in range(2))

            assert decided_by(first) == decided_by(second)

    def test_a_new_process_plans_from_the_memo_as_the_old_one_did(
        self, scheduler: Scheduler
    ) -> None:
        new = deepcopy(scheduler)
        assert new.rounds is not None
        for one in played(scheduler).rounds.planned:
            assert decided_by(one.plan) == decided_by(one.repeated(deepcopy(new.rounds)))

    def test_the_memo_is_plain_json(self, cell: RoundsCell) -> None:
        for one in cell.rounds.planned:
            assert is_plain_json(one.plan.memo)

    def test_the_memo_does_not_grow_with_jobs_that_are_over(self, scheduler: Scheduler) -> None:
        cell = RoundsCell(scheduler)
        jobs = cell.store.submit([cell.a_gang(2) for _ in range(4)])
        for _ in range(LATER_ROUNDS):
            cell.play()
            cell.store.cancel(jobs.pop(0))
            jobs += cell.store.submit([cell.a_gang(2)])
        sizes = [len(json.dumps(one.plan.memo)) for one in cell.rounds.planned]

        assert sizes[-1] <= GROWTH_MAX * max(sizes[2:5])

    def test_refused_jobs_are_placed_again_and_evict_nobody(
        self, cell: RoundsCell, scheduler: Scheduler
    ) -> None:
        assert scheduler.rounds is not None
        for one in cell.rounds.planned:
            one.repeated(scheduler.rounds)
            waiting = {job.id: job for job in one.state.waiting}
            view = copy_of(one.view)
            again = scheduler.rounds.again(view, list(waiting.values()), deepcopy(one.rng))

            assert told_by(one.view) == told_by(view)
            with view.tentative():
                for job_claims in again:
                    assert job_claims.job.id in waiting
                    assert 0 == len(job_claims.claims.evictions)
                    assert [] == faults(view, job_claims.job, job_claims.claims)
                    view.assume_claims(job_claims.claims)
