"""Virtual nodes make steps of gangs while all tasks run, and end them with the last one."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from omega.clock import ManualClock
from omega.events import TasksEnded
from omega.framework.rates import Gang, GangMachine
from omega.lifecycle.states import State
from omega.limits import LIMITS
from omega.model.arrays import Ids, integers
from omega.model.jobs import StepWork
from omega.nodes.live import LiveNodes
from omega.nodes.stepper import READ_INTERVAL_MS, StepRates
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_spec
from omega.testing.pass_through import PassThrough
from omega.testing.steps import a_leased_job, a_running_job, status_of
from tests.fixtures.gangs import K80, OTHER, V100, V100_TOO, GangCell, a_gang, rates_of


class Counting(PassThrough):
    """Keeps how many jobs and tasks each call names."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.reported: list[int] = []

    def report_progress(self, job: Ids, steps: Ids, run_ms: Ids) -> None:
        self.reported.append(len(job))
        super().report_progress(job, steps, run_ms)


class SameRate:
    """A model by which all gangs are equally fast, and which keeps what it is asked."""

    def __init__(self, rate: float, *attributes: str) -> None:
        self.attributes = attributes
        self.asked: list[Gang] = []
        self._rate = rate

    def steps_per_s(self, gang: Gang) -> float:
        self.asked.append(gang)
        return self._rate


class TestStepper:
    """Nodes on a memory store; time is what a test says it is."""

    @pytest.fixture(autouse=True)
    def _cell(self, tmp_path: Path) -> None:
        self.clock = ManualClock()
        self.store = Counting(MemoryStore(self.clock))
        self.cell = GangCell(self.store)
        self.rates = rates_of(tmp_path)
        self.nodes = self.nodes_with(self.rates)

    def nodes_with(self, rates: StepRates, *, speedup: float = 1.0) -> LiveNodes:
        """Return nodes that watch from now on."""
        nodes = self.cell.nodes(rates, speedup=speedup)
        nodes.step(0)
        return nodes

    def steps(self, nodes: LiveNodes, *moments_s: float) -> list[int]:
        """Return how many tasks ended in a node step at each of these times."""
        return [nodes.step(int(moment_s * 1_000)) for moment_s in moments_s]

    def at(self, second: float) -> None:
        self.clock.advance(second - self.clock.now())

    def test_a_gang_makes_steps_at_the_rate_of_its_type(self) -> None:
        fast = self.cell.run(a_gang(), V100, V100)
        slow = self.cell.run(a_gang(), K80, K80)

        self.steps(self.nodes, 0, 10)

        assert (400, 10_000) == self.cell.made(fast)
        assert (100, 10_000) == self.cell.made(slow)
        assert [] == self.cell.warnings

    @pytest.mark.parametrize(("second", "steps"), [(V100_TOO, 200), (K80, 100)])
    def test_a_gang_that_is_spread_is_as_fast_as_its_slowest_type_allows(
        self, second: int, steps: int
    ) -> None:
        job = self.cell.run(a_gang(), V100, second)

        self.steps(self.nodes, 10)

        assert (steps, 10_000) == self.cell.made(job)

    def test_a_speedup_makes_the_same_steps_sooner(self) -> None:
        job = self.cell.run(a_gang(), V100, V100)

        self.steps(self.nodes_with(self.rates, speedup=60), 10)

        assert (24_000, 600_000) == self.cell.made(job)

    def test_with_the_last_step_the_job_is_over(self) -> None:
        job = self.cell.run(a_gang(steps=100), V100, V100)

        assert [0, 0, 0, 2, 0] == self.steps(self.nodes, 0, 1, 2.499, 2.5, 10)
        assert State.SUCCEEDED is status_of(self.store, job).state
        assert (100, 2_500) == self.cell.made(job)
        assert [TasksEnded(2)] == self.cell.events

    def test_nothing_is_made_while_a_task_has_no_place(self) -> None:
        spec = replace(a_gang(), minimum=0)
        half = a_leased_job(self.store, spec)
        self.cell.place(replace(half, unplaced=np.array([0])), V100)
        self.steps(self.nodes, 0, 10)
        assert (0, 0) == self.cell.made(half.id)

        self.at(20)
        self.cell.place(replace(half, unplaced=np.array([1])), V100_TOO)
        self.steps(self.nodes, 30)

        assert (200, 10_000) == self.cell.made(half.id)

    def test_an_interrupted_job_goes_on_from_its_last_step(self) -> None:
        job = self.cell.run(a_gang(steps=500), V100, V100)
        self.steps(self.nodes, 10)
        self.at(10)
        again = self.cell.interrupt(job, V100)
        self.steps(self.nodes, 20)
        assert (400, 10_000) == self.cell.made(job)
        self.at(30)
        self.cell.place(again, K80, K80)

        assert [0, 0, 2] == self.steps(self.nodes, 30, 39.999, 40)
        assert (500, 20_000) == self.cell.made(job)
        assert State.SUCCEEDED is status_of(self.store, job).state

    def test_an_interruption_between_two_looks_is_noticed(self) -> None:
        """What was made since the first look is lost, and nothing counts twice."""
        job = self.cell.run(a_gang(), V100, V100)
        self.steps(self.nodes, 10)
        self.at(12)
        self.cell.place(self.cell.interrupt(job, V100), K80, K80)

        self.steps(self.nodes, 22)

        assert (500, 20_000) == self.cell.made(job)

    def test_to_begin_again_costs_a_while_and_to_begin_does_not(self, tmp_path: Path) -> None:
        nodes = self.nodes_with(rates_of(tmp_path, restart_s=20), speedup=2)
        job = self.cell.run(a_gang(), V100, V100)
        self.steps(nodes, 0, 10)
        assert (800, 20_000) == self.cell.made(job)
        self.at(10)
        self.cell.place(self.cell.interrupt(job, V100), V100, V100)

        self.steps(nodes, 10, 20)
        assert (800, 40_000) == self.cell.made(job)
        self.steps(nodes, 25)
        assert (1_200, 50_000) == self.cell.made(job)

    def test_nodes_that_are_started_again_go_on_from_what_is_on_record(self) -> None:
        job = self.cell.run(a_gang(), V100, V100)
        self.steps(self.nodes, 10)

        later = self.cell.nodes(self.rates)
        self.steps(later, 60, 70)

        assert (800, 20_000) == self.cell.made(job)

    def test_nodes_that_died_before_they_ended_a_job_that_was_done_end_it_later(self) -> None:
        job = self.cell.run(a_gang(steps=100), V100, V100)
        self.store.report_progress(integers([job]), integers([100]), integers([2_500]))

        assert [2] == self.steps(self.cell.nodes(self.rates), 60)
        assert (100, 2_500) == self.cell.made(job)

    def test_a_second_set_of_nodes_makes_no_step_twice(self) -> None:
        job = self.cell.run(a_gang(steps=1_000), V100, V100)
        second = self.nodes_with(self.rates)
        for moment_s in (0, 7, 14, 21):
            self.steps(self.nodes, moment_s)
            self.steps(second, moment_s + 0.05)
        assert (842, 21_050) == self.cell.made(job)

        assert [2, 0] == [self.nodes.step(25_000), second.step(25_000)]
        assert (1_000, 25_000) == self.cell.made(job)

    def test_what_the_table_does_not_know_makes_no_steps_and_is_told_once(self) -> None:
        jobs = [
            self.cell.run(a_gang(kind="Z"), V100, V100),
            self.cell.run(a_gang(kind="Z"), V100_TOO, V100_TOO),
            self.cell.run(a_gang(), OTHER, OTHER),
        ]

        self.steps(self.nodes, 10, 20)

        assert [(0, 20_000)] * 3 == [self.cell.made(job) for job in jobs]
        assert [
            "no rate is known of Z on 2 GPUs of v100: it makes no steps",
            "no rate is known of A on 2 GPUs of h100: it makes no steps",
        ] == self.cell.warnings

    def test_a_machine_that_does_not_say_its_type_is_told(self, tmp_path: Path) -> None:
        job = self.cell.run(a_gang(), V100, V100)

        self.steps(self.nodes_with(rates_of(tmp_path, gpu_attribute="accelerator")), 10)

        assert 0 == self.cell.made(job)[0]
        (said,) = self.cell.warnings
        assert "machines without accelerator" in said

    @pytest.mark.parametrize("rate", [0.0, -1.0, np.inf, np.nan])
    def test_a_rate_that_is_none_makes_no_steps(self, rate: float) -> None:
        """Models are strangers': what they say may be no rate."""
        job = self.cell.run(a_gang(), V100, V100)

        self.steps(self.nodes_with(StepRates(model=SameRate(rate))), 10)

        assert (0, 10_000) == self.cell.made(job)
        assert ["no rate is known of A on 2 GPUs: it makes no steps"] == self.cell.warnings

    def test_a_model_is_told_of_the_gang_and_of_the_attributes_that_it_asks_for(self) -> None:
        model = SameRate(2.5, "gpu_model", "rack")
        job = self.cell.run(a_gang(), V100, K80)

        self.steps(self.nodes_with(StepRates(model=model)), 10)

        machines = [GangMachine(2, {"gpu_model": "v100"}), GangMachine(2, {"gpu_model": "k80"})]
        assert [Gang("A", 2, machines)] == model.asked
        assert (25, 10_000) == self.cell.made(job)

    def test_without_rates_nobody_makes_a_step_and_it_is_told_once(self) -> None:
        job = self.cell.run(a_gang(), V100, V100)
        other = self.cell.run(a_gang(), K80, K80)
        nodes = self.nodes_with(StepRates())

        self.steps(nodes, 10, 20)

        assert [(0, 0)] * 2 == [self.cell.made(each) for each in (job, other)]
        (said,) = self.cell.warnings
        assert "--rates" in said

    def test_other_jobs_without_an_end_are_left_alone(self) -> None:
        job = a_running_job(self.store, a_spec(2), [V100, V100])

        assert [0, 0] == self.steps(self.nodes, 10, 10**9)
        assert State.RUNNING is status_of(self.store, job).state
        assert [] == self.store.reported

    def test_a_job_that_was_cancelled_is_forgotten(self) -> None:
        job = self.cell.run(a_gang(steps=1_000), V100, V100)
        self.steps(self.nodes, 10)
        self.store.cancel(job)

        assert [0, 0] == self.steps(self.nodes, 20, 30)
        assert (400, 10_000) == self.cell.made(job)
        assert [1] == self.store.reported

    def test_gangs_are_looked_at_now_and_then_and_reported_together(self) -> None:
        self.cell.run(a_gang(), V100, V100)
        self.cell.run(a_gang(), K80, K80)
        every_s = READ_INTERVAL_MS / 1_000

        self.steps(self.nodes, 0, every_s / 2, every_s, every_s * 1.5, every_s * 2)

        assert [2, 2, 2] == self.store.reported

    def test_a_large_gang_is_ended_by_calls_that_stay_small(self) -> None:
        tasks = LIMITS.tasks_per_release_max + 5
        spec = a_spec(tasks, cpu_milli=1, work=StepWork("Z", 1))
        job = a_running_job(self.store, spec, [V100] * tasks, cpu_milli=1)
        self.store.report_progress(integers([job.id]), integers([1]), integers([1]))

        assert [tasks] == self.steps(self.nodes, 10)
        assert State.SUCCEEDED is status_of(self.store, job).state
