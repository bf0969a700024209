"""Machines that fail, come back and change in size: what is lost is lost once, and placed again."""

from dataclasses import replace

import numpy as np
import pytest

from omega.errors import InvariantBroken
from omega.framework.scheduler import DecisionTime
from omega.limits import LIMITS
from omega.model.arrays import Amounts
from omega.model.claims import ConflictRule, Granularity
from omega.model.machines import MachineState
from omega.model.resources import Kind, machine_capacity
from omega.sim.audit import AuditedCell
from omega.sim.experiment import Architecture, Experiment, Run
from omega.sim.ledger import SimulatedJob
from omega.sim.queue import GiveUpPolicy
from omega.sim.running import Running
from omega.testing.builders import a_spec
from omega.workload.arrivals import BATCH, SERVICE, Arrival, Prefill, Workload
from omega.workload.machine_events import Failures, MachineEvent
from omega.workload.synthetic import two_class_workload, uniform_machines
from tests.fixtures.job_lists import SMALL
from tests.simulation.test_engine import Whole, always
from tests.simulation.test_start import started

SHARED = sorted(set(Architecture) - {Architecture.TWO_LEVEL})
"""Architectures in which machines may fail."""


def down(time_s: float, machine: int) -> MachineEvent:
    return MachineEvent(time_s, machine, up=False)


def up(time_s: float, machine: int) -> MachineEvent:
    return MachineEvent(time_s, machine, up=True)


def sized(time_s: float, capacity: Amounts) -> MachineEvent:
    return MachineEvent(time_s, 0, up=True, capacity=capacity)


def cell_of(machines: int, *arrivals: Arrival, events: tuple[MachineEvent, ...]) -> Workload:
    """Machines with four cores each, on which nothing runs at the start."""
    cell = uniform_machines(machines, cpus=4, memory_gib=64)
    return Workload("failing", cell, Prefill.none(), arrivals, machine_events=events)


def run_of(workload: Workload, **how: object) -> Run:
    experiment = Experiment(
        workload=workload,
        architecture=Architecture.SHARED_STATE,
        scheduler=always(Whole),
        decision_times={BATCH: DecisionTime(job_s=1.0), SERVICE: DecisionTime(job_s=1.0)},
        horizon_s=30.0,
        audited=True,
    )
    return replace(experiment, **how).begin()  # type: ignore[arg-type]


def test_what_a_machine_ran_is_placed_again_elsewhere() -> None:
    """Six tasks on two machines from 2 s on; one goes at 5 s, and nothing else has room."""
    job = Arrival(1.0, a_spec(6, cpu_milli=1_000, duration_ms=100_000))
    run = run_of(cell_of(2, job, events=(down(5.0, 0), up(9.5, 0))))
    run.engine.run(7.0)
    meanwhile = run.result()
    (cell,) = run.cells
    state = cell.rows(np.array([1, 2])).state.tolist()
    told = run.finish()

    assert [MachineState.DOWN, MachineState.OPEN] == state
    assert 4 >= meanwhile.tasks_placed >= 2
    assert told.tasks_lost == told.workloads[BATCH]["tasks_lost"] >= 2
    assert (6, 0) == (told.tasks_placed, told.workloads[BATCH]["jobs_unfinished"])
    assert 6_000 == cell.cpu_used


def test_a_scheduler_that_sees_the_present_claims_nothing_that_is_down() -> None:
    job = Arrival(1.0, a_spec(8, cpu_milli=1_000, duration_ms=None))
    run = run_of(cell_of(3, job, events=(down(0.0, 1),)), architecture=Architecture.MONOLITHIC)
    told = run.finish().workloads[BATCH]

    assert (8, 0, 0) == (told["tasks_placed"], told["tasks_lost"], told["transactions_conflicted"])
    assert 0 == run.cells[0].rows(np.array([2])).used.sum()


def test_a_claim_on_a_machine_that_went_down_meanwhile_is_refused() -> None:
    """It was up when the attempt began at 1 s, and is down when it ends at 2 s."""
    job = Arrival(1.0, a_spec(4, cpu_milli=1_000, duration_ms=1_000))
    run = run_of(cell_of(1, job, events=(down(1.5, 0), up(6.5, 0))))
    told = run.finish().workloads[BATCH]

    assert (1, 4, 0) == (told["transactions_conflicted"], told["tasks_placed"], told["tasks_lost"])


def test_a_gang_that_falls_below_its_minimum_falls_everywhere() -> None:
    """Six of eight tasks are needed; four run on each machine."""
    gang = Arrival(1.0, a_spec(8, cpu_milli=1_000, duration_ms=None, minimum=6))
    loose = Arrival(1.0, a_spec(8, cpu_milli=1_000, duration_ms=None))
    lost = {one: run_of(cell_of(2, one, events=(down(5.0, 0),))).finish() for one in (gang, loose)}

    assert (8, 0) == (lost[gang].tasks_lost, lost[gang].tasks_placed)
    assert (4, 4) == (lost[loose].tasks_lost, lost[loose].tasks_placed)


def test_a_job_that_is_decided_on_keeps_its_attempt_and_gets_back_what_it_lost() -> None:
    """Four of six tasks run at 2 s; from 3 to 4 s the rest is decided on, and a machine goes."""
    job = Arrival(1.0, a_spec(6, cpu_milli=1_000, duration_ms=None))
    run = run_of(cell_of(2, job, events=(down(0.0, 1), up(2.5, 1), down(3.5, 0), up(4.2, 0))))
    run.engine.run(2.9)
    before = run.result()
    run.engine.run(4.05)
    decided = run.result()
    told = run.finish()

    assert 4 == before.tasks_placed
    assert 2 == decided.tasks_placed, "the attempt stands: it was for the other machine"
    assert (6, 4, 3) == (
        told.tasks_placed,
        told.tasks_lost,
        told.workloads[BATCH]["attempts_max"],
    )


def test_a_gang_that_stands_grows_within_an_attempt_of_several_tries() -> None:
    """Four of six are granted at 4 s, for others took room at 2 s; the rest goes where one came."""
    gang = a_spec(6, cpu_milli=1_000, duration_ms=None, minimum=4)
    others = a_spec(4, cpu_milli=1_000, duration_ms=None, scheduler=SERVICE)
    workload = cell_of(
        2,
        Arrival(1.0, gang),
        Arrival(1.0, others),
        events=(down(0.0, 1), up(3.0, 1), down(20.0, 1)),
    )
    run = run_of(
        replace(workload, machines=uniform_machines(2, cpus=8, memory_gib=64)),
        decision_times={BATCH: DecisionTime(job_s=3.0), SERVICE: DecisionTime(job_s=1.0)},
        limits=LIMITS,
        horizon_s=22.0,
    )
    run.engine.run(5.0)
    first = run.result()
    run.engine.run(10.0)
    whole = run.result()
    told = run.finish()

    assert [4, 6, 4] == [one.workloads[BATCH]["tasks_placed"] for one in (first, whole, told)]
    assert 2 == told.tasks_lost


def test_a_gang_that_breaks_while_it_is_decided_on_is_refused_as_one() -> None:
    """At 8 s it claims two cores for the rest; one is taken, and at 7.5 s the gang has broken."""
    gang = a_spec(8, cpu_milli=1_000, duration_ms=None, minimum=6)
    other = a_spec(1, cpu_milli=1_000, duration_ms=None, scheduler=SERVICE)
    first, second = (machine_capacity(cores * 1_000, 64 * 1_024) for cores in (6, 2))
    events = (
        MachineEvent(0.0, 0, up=True, capacity=first),
        down(0.0, 1),
        MachineEvent(4.5, 1, up=True, capacity=second),
        down(7.5, 0),
    )
    run = run_of(
        cell_of(2, Arrival(1.0, gang), Arrival(6.0, other), events=events),
        decision_times={BATCH: DecisionTime(job_s=3.0), SERVICE: DecisionTime(job_s=1.0)},
    )
    told = run.finish()

    assert (6, 1) == (told.tasks_lost, told.tasks_placed)
    assert 1 == told.workloads[BATCH]["transactions_conflicted"]


def test_what_the_start_state_loses_is_counted_and_placed_by_nobody() -> None:
    """Of three tasks, two that end at 10 s: one is lost at 4 s, the other has ended at 12 s."""
    run = run_of(replace(started(), machine_events=(down(4.0, 0), down(10.0, 1))))
    told = run.finish()

    assert (2, 0) == (told.start_tasks_lost, told.tasks_lost)
    assert 0 == run.cells[0].cpu_used


def test_a_machine_that_shrinks_takes_by_its_new_size_and_ends_what_it_runs() -> None:
    small = machine_capacity(2_000, 64 * 1_024)
    events = (sized(2.5, small), sized(15.0, 4 * small))
    jobs = (
        Arrival(1.0, a_spec(4, cpu_milli=1_000, duration_ms=5_000)),
        Arrival(3.0, a_spec(5, cpu_milli=1_000, duration_ms=None)),
    )
    run = run_of(cell_of(1, *jobs, events=events))
    used = []
    for time_s in (5.0, 10.0):
        run.engine.run(time_s)
        used.append(run.cells[0].cpu_used)
    told = run.finish()

    assert [4_000, 2_000] == used, "four go on; then two of the five fit"
    assert (9, 0) == (told.tasks_placed, told.tasks_lost)
    assert 8_000 == run.cells[0].total[Kind.CPU_MILLI]


def test_each_part_of_a_partition_has_the_events_of_its_machines() -> None:
    jobs = [
        Arrival(1.0, a_spec(4, cpu_milli=1_000, duration_ms=None, scheduler=kind))
        for kind in (BATCH, SERVICE)
    ]
    run = run_of(
        cell_of(2, *jobs, events=(down(5.0, 1),)), architecture=Architecture.STATIC_PARTITION
    )
    told = run.finish().workloads

    assert (0, 4) == (told[BATCH]["tasks_lost"], told[SERVICE]["tasks_lost"])


def test_attempts_made_before_a_loss_do_not_count_against_a_job() -> None:
    """It waits four attempts for room, and has four again once that is gone."""
    job = Arrival(0.0, a_spec(4, cpu_milli=1_000, duration_ms=None))
    events = (down(0.0, 0), up(6.5, 0), down(10.0, 0), up(16.0, 0))
    run = run_of(cell_of(1, job, events=events), give_up=GiveUpPolicy(fruitless_max=4))
    told = run.finish().workloads[BATCH]

    assert (0, 4, 4) == (told["jobs_abandoned"], told["tasks_placed"], told["tasks_lost"])
    assert told["attempts_max"] > 5


def test_a_job_that_was_given_up_stays_so() -> None:
    job = Arrival(0.0, a_spec(8, cpu_milli=1_000, duration_ms=None))
    run = run_of(cell_of(1, job, events=(down(20.0, 0),)), give_up=GiveUpPolicy(attempts_max=3))
    told = run.finish().workloads[BATCH]

    assert (1, 4, 0) == (told["jobs_abandoned"], told["tasks_lost"], told["tasks_placed"])


def failing(
    architecture: Architecture,
    seed: int,
    *,
    gangs: bool = False,
    rule: ConflictRule = ConflictRule.FIT,
) -> Run:
    """Twenty machines, each down about every half minute."""

    class Made(Whole):
        granularity = Granularity.ALL_OR_NOTHING if seed % 2 else Granularity.INCREMENTAL

    Made.rule = rule
    rng = np.random.default_rng(seed)
    workload = two_class_workload(replace(SMALL, horizon_s=25.0), rng)
    events = Failures(every_s=30.0, repair_s=5.0).draw(20, 25.0, rng)
    return run_of(
        replace(workload, machine_events=events),
        architecture=architecture,
        scheduler=always(Made),
        schedulers={BATCH: 3},
        decision_times={BATCH: DecisionTime(job_s=0.5), SERVICE: DecisionTime(job_s=3.0)},
        gangs=gangs,
        horizon_s=25.0,
        seed=seed,
    )


@pytest.mark.parametrize("architecture", SHARED)
@pytest.mark.parametrize("gangs", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_lost_twice_or_forgotten(
    architecture: Architecture,
    seed: int,
    gangs: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """By the auditor's books, which are kept task by task."""
    rule = ConflictRule.SEQUENCE if seed > 1 else ConflictRule.FIT
    run = failing(architecture, seed, gangs=gangs, rule=rule)
    told = run.finish()
    shadow = [cell.shadow for cell in run.cells if isinstance(cell, AuditedCell)]

    assert told.tasks_lost
    assert told.start_tasks_lost
    there = {
        task for job_state in shadow for task in (*job_state.live, *job_state.over) if task[0] > 0
    }
    assert len(there) == told.tasks_placed


def test_one_seed_gives_one_run_whatever_fails() -> None:
    first, again = (failing(Architecture.SHARED_STATE, 0).finish() for _ in range(2))

    assert vars(first) == vars(again)


@pytest.mark.parametrize(
    ("fault", "what"),
    [("forgets", r"is down and holds"), ("spares", r"runs on, and its gang has fallen")],
)
def test_a_world_that_forgets_what_ran_is_caught(
    monkeypatch: pytest.MonkeyPatch, fault: str, what: str
) -> None:
    if fault == "forgets":
        monkeypatch.setattr(Running, "take_off", lambda *_: [])
    else:
        monkeypatch.setattr(SimulatedJob, "breaks_without", lambda *_: False)
    with pytest.raises(InvariantBroken, match=what) as caught:
        failing(Architecture.SHARED_STATE, 0, gangs=True).finish()

    assert caught.value.story
