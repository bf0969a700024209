"""What a scheduler may know besides rows, as its process senses it: the same live and simulated."""

import threading
from collections.abc import Sequence
from functools import partial
from math import exp

import numpy as np
import pytest

from omega.cell.signals import NO_SIGNALS, Signals
from omega.cell.view import View
from omega.clock import ManualClock
from omega.config import Settings
from omega.events import Event, JobsLeased, JobsRecalled, TransactionJudged, ignore
from omega.framework.job_attempt import with_grants
from omega.framework.rounds import JobClaims, RoundPlan, Rounds, RoundState
from omega.framework.runner import SchedulerProcess
from omega.framework.scheduler import DecisionTime, Scheduler
from omega.framework.signal_tracker import MEMORY_S, SignalTracker
from omega.model.arrays import integers
from omega.model.claims import Claims
from omega.model.jobs import Constraint, LeasedJob, Operator
from omega.placement.groups import draw_groups
from omega.sim.virtual_cell import VirtualCell
from omega.store.memory.store import MemoryStore
from omega.sync.choice import Sync
from omega.sync.turns import Turn
from omega.testing.builders import a_cell, a_claim, a_job, a_spec, a_view
from tests.unit.framework.loops import numbered_ids

MACHINES = 40
SSD = Constraint("disk", Operator.IN, ("ssd",))


def judged(accepted: int, refused: int) -> Event:
    return TransactionJudged("batch", 1, int(refused > 0), accepted, {"overcommit": refused}, 0, 0)


class Noting(Scheduler):
    """Notes the signals of each placement."""

    kind = "batch"

    def __init__(self) -> None:
        self.noted: list[Signals] = []

    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        self.noted.append(view.signals)
        return draw_groups(view, job, rng)


class NotingRounds(Rounds):
    """Plans nothing, and notes the signals of each round."""

    length_ms = 1_000

    def __init__(self) -> None:
        self.noted: list[Signals] = []

    def plan(self, view: View, state: RoundState, rng: np.random.Generator) -> RoundPlan:
        self.noted.append(view.signals)
        return RoundPlan((), {}, [])

    def again(
        self, view: View, refused: Sequence[LeasedJob], rng: np.random.Generator
    ) -> Sequence[JobClaims]:
        raise AssertionError("nothing is claimed, so nothing is refused")


class TestSignalTracker:
    """The senses of a process whose clock we move."""

    def setup_method(self) -> None:
        self.clock = ManualClock()
        self.signal_tracker = SignalTracker(self.clock)
        self.view = a_view()

    def told(self, *ages_ms: int) -> Signals:
        return self.signal_tracker.signals(self.view, [a_job(age_ms=age_ms) for age_ms in ages_ms])

    def test_the_head_ages_from_its_submission_until_now(self) -> None:
        self.clock.advance(7.0)
        self.signal_tracker(JobsLeased(2, ()))
        self.clock.advance(0.5)

        assert 1.7 == pytest.approx(self.told(400, 1_200, 30).head_age_s)

    def test_who_recalls_jobs_has_leased_them(self) -> None:
        self.clock.advance(7.0)
        self.signal_tracker(JobsRecalled(2))
        self.clock.advance(0.5)

        assert 1.7 == pytest.approx(self.told(400, 1_200).head_age_s)

    def test_where_nothing_waits_nothing_ages(self) -> None:
        self.clock.advance(7.0)

        assert 0.0 == self.told().head_age_s

    def test_each_part_ages_from_when_it_was_read(self) -> None:
        self.view.parts_read_s = np.array([1.0, 2.5])
        self.clock.advance(4.0)

        assert [3.0, 1.5] == self.told(0).part_age_s.tolist()

    def test_of_the_claims_that_were_refused_the_latest_weigh_most(self) -> None:
        assert 0.0 == self.told(0).claim_conflict_fraction

        self.signal_tracker(judged(3, 1))
        assert 0.25 == self.told(0).claim_conflict_fraction

        self.clock.advance(MEMORY_S)
        self.signal_tracker(judged(4, 0))
        assert exp(-1) / (4 + 4 * exp(-1)) == pytest.approx(self.told(0).claim_conflict_fraction)

    def told_of(self, *jobs: LeasedJob) -> dict[frozenset[Constraint], float]:
        """The CPU that is asked for, by constraints."""
        demand = self.signal_tracker.signals(self.view, jobs).demand
        return dict(zip(demand.constraints, demand.amounts[:, 0].tolist(), strict=True))

    def test_what_jobs_ask_for_is_told_by_their_constraints(self) -> None:
        free, bound = a_job(2, job=1, waited_ms=0), a_job(job=2, waited_ms=5, constraints=(SSD,))

        assert {} == self.told_of(free)
        assert {frozenset(): 2_000, frozenset({SSD}): 1_000} == pytest.approx(
            self.told_of(free, bound), rel=0.001
        )

    def test_a_job_is_counted_at_its_first_lease_however_often_it_is_tried(self) -> None:
        free, bound = a_job(job=1, waited_ms=0), a_job(job=2, waited_ms=0, constraints=(SSD,))
        again = a_job(9, job=3, constraints=(SSD,))
        self.told_of(free, bound)
        for _ in range(3):
            self.told_of(free, bound)
        told = self.told_of(again)

        assert told[frozenset()] == pytest.approx(told[frozenset({SSD})], rel=0.001)

    def test_signals_stay_as_they_were(self) -> None:
        before = self.told(0)
        self.clock.advance(1.0)
        self.view.parts_read_s = np.array([1.0])
        self.told(0)

        assert [0.0] == before.part_age_s.tolist()
        with pytest.raises(AttributeError):
            before.head_age_s = 1.0  # type: ignore[misc]


def test_a_job_keeps_its_age_when_some_of_its_tasks_are_placed() -> None:
    job = a_job(2, age_ms=70)
    granted = np.array([True])

    left = with_grants(job, a_claim(0), integers([1]), granted, np.zeros(0, np.intp))

    assert ([1], 70) == (left.unplaced.tolist(), left.age_ms)


def test_a_view_that_nobody_tells_anything_has_one_part_and_it_is_fresh() -> None:
    view = a_view(a_cell(5))

    assert NO_SIGNALS is view.signals
    assert [0.0] == view.signals.part_age_s.tolist()
    assert [0] * 5 == view.part.tolist()


def test_a_round_is_told_how_things_stand() -> None:
    cell = VirtualCell(a_cell(MACHINES), seed=3)
    scheduler = Noting()
    scheduler.rounds = rounds = NotingRounds()
    turn = Turn(1, 4, 2.0, parts=8)
    cell.schedule(scheduler, "a", sync=Sync.PARTITIONED, turn=turn)
    cell.submit(0.5, [a_spec(2)])
    cell.run(3.9)

    ages_s = [one.head_age_s for one in rounds.noted]
    assert [0.0, 0.5, 1.5, 2.5] == pytest.approx(ages_s[:4], abs=0.2)
    assert 8 == len(rounds.noted[-1].part_age_s)


def test_signals_are_the_same_live_and_in_virtual_time() -> None:
    specs = [a_spec(2) for _ in range(6)]
    turn = Turn(1, 4, 2.0, parts=8)
    takes = DecisionTime(job_s=0.3)

    cell = VirtualCell(a_cell(MACHINES), seed=3)
    simulated = Noting()
    cell.schedule(simulated, "a", sync=Sync.PARTITIONED, turn=turn, decision_time=takes)
    cell.submit(0.0, specs)
    cell.run(4.0)

    clock, stop, live = ManualClock(), threading.Event(), Noting()
    store = MemoryStore(clock)
    store.add_machines(a_cell(MACHINES))
    store.submit(specs)
    process = SchedulerProcess(
        scheduler=live,
        store=store,
        open_store=lambda: store,
        clock=clock,
        settings=Settings(),
        sink=ignore,
        replica="a",
        run_seed=3,
        stop=stop,
        decision_time=takes,
        refresher=partial(Sync.PARTITIONED.refresher, turn=turn),
        new_id=numbered_ids(),
    )
    while process.step():
        pass

    assert 6 == len(live.noted) == len(simulated.noted)
    for one, other in zip(live.noted, simulated.noted, strict=True):
        assert one.part_age_s.tolist() == pytest.approx(other.part_age_s.tolist())
        assert one.head_age_s == pytest.approx(other.head_age_s)
        assert one.claim_conflict_fraction == other.claim_conflict_fraction
    assert 1.8 == pytest.approx(live.noted[-1].head_age_s)
    assert len(set(live.noted[-1].part_age_s.round(6).tolist())) > 1
