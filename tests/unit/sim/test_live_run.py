"""What a run with live queues says: on a cell small enough to reckon it by hand."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from omega.framework.scheduler import DecisionTime, Scheduler
from omega.model.resources import machine_capacity
from omega.sim.experiment import Architecture, Experiment
from omega.sim.live_run import LiveRun, SyncConfig
from omega.sim.results import Result
from omega.sim.runs import Queueing, begin
from omega.sync.choice import Sync
from omega.testing.builders import a_cell, a_spec
from omega.workload.arrivals import Arrival, Prefill, Workload
from omega.workload.machine_events import MachineEvent
from tests.unit.framework.loops import InOrder

HORIZON_S = 100.0
THINKS_S = 2.0


def job(submit_s: float, tasks: int = 1, *, cores: int = 4, lasts_s: float = 20.0) -> Arrival:
    spec = a_spec(tasks, cpu_milli=1_000 * cores, duration_ms=round(lasts_s * 1_000))
    return Arrival(submit_s, spec)


def a_prefill(cores: int) -> Prefill:
    """Return a task that runs on machine 1 for ever."""
    zero = np.zeros(1, np.intp)
    shapes = machine_capacity(1_000 * cores, 1_024)[np.newaxis]
    spec = a_spec(1, cpu_milli=1_000 * cores, memory_mib=1_024, duration_ms=None)
    return Prefill((spec,), zero, zero, zero, zero, shapes)


def an_experiment(
    *arrivals: Arrival,
    machines: int = 1,
    prefill: Prefill | None = None,
    events: tuple[MachineEvent, ...] = (),
    schedulers: int = 1,
    scheduler: Callable[[], Scheduler] = InOrder,
) -> Experiment:
    return Experiment(
        workload=Workload(
            name="by hand",
            machines=a_cell(machines),
            prefill=prefill or Prefill.none(),
            arrivals=arrivals,
            machine_events=events,
        ),
        architecture=Architecture.SHARED_STATE,
        scheduler=lambda _: scheduler(),
        decision_times={"batch": DecisionTime(job_s=THINKS_S)},
        schedulers={"batch": schedulers},
        horizon_s=HORIZON_S,
        seed=1,
    )


def ran(experiment: Experiment, sync: Sync = Sync.DELTA) -> Result:
    return LiveRun(experiment, SyncConfig(by=sync, gap_s=30.0), lambda _: None).finish()


def batch(result: Result) -> dict[str, Any]:
    return result.workloads["batch"]


def test_two_jobs_one_after_the_other() -> None:
    told = ran(an_experiment(job(10.0), job(50.0)))

    mine = batch(told)
    assert (2, 2, 2, 0, 0) == tuple(
        mine[name]
        for name in ("jobs", "jobs_attempted", "jobs_scheduled", "jobs_unfinished", "jobs_waiting")
    )
    assert (2, 2, 1.0, 1) == tuple(
        mine[name] for name in ("tasks", "tasks_placed", "attempts_mean", "attempts_max")
    )
    assert 0 <= mine["wait_mean_s"] <= 0.3, "as long as it takes to poll"
    assert 2 * THINKS_S / HORIZON_S == mine["think_started"]
    assert mine["busy"] == pytest.approx(2 * THINKS_S / HORIZON_S)
    assert (2, 0, 0) == (
        mine["transactions_ok"],
        mine["transactions_conflicted"],
        mine["attempts_without_room"],
    )
    # Each runs for 20 s on the only machine.
    assert told.utilisation == pytest.approx(0.4, abs=0.02)


def test_a_job_without_room_is_tried_parked_and_given_up() -> None:
    told = ran(an_experiment(job(0.0, cores=4, lasts_s=1_000.0), job(5.0)))

    mine = batch(told)
    assert (2, 1, 1, 0, 1) == tuple(
        mine[name]
        for name in ("jobs", "jobs_scheduled", "jobs_unfinished", "jobs_waiting", "jobs_abandoned")
    )
    assert mine["attempts_without_room"] == mine["attempts_started"] - 1 > 0
    assert [1] == [row["jobs_abandoned"] for row in told.schedulers]


def test_decision_time_beyond_the_horizon_does_not_count() -> None:
    late = ran(an_experiment(job(HORIZON_S - 1.0)))

    (row,) = late.schedulers
    assert 1 == row["attempts_started"]
    assert 0 < row["think_started"] <= 1.0 / HORIZON_S


def test_who_loses_to_another_has_found_room() -> None:
    two = [job(10.0, lasts_s=1_000.0), job(10.0, lasts_s=1_000.0)]
    told = ran(an_experiment(*two, schedulers=2))

    mine = batch(told)
    assert 1 == mine["transactions_conflicted"]
    assert mine["attempts_started"] > mine["attempts_without_room"] + 1


def test_a_machine_that_is_down_runs_nothing_and_is_not_there() -> None:
    events = (
        MachineEvent(30.0, 0, up=False),
        MachineEvent(80.0, 0, up=True),
    )
    told = ran(an_experiment(job(10.0, lasts_s=1_000.0), events=events))

    assert (1, 0) == (told.tasks_lost, told.start_tasks_lost)
    # Half of the time there is a machine: from 12 to 30 s and again from 82 s on it is full.
    assert told.utilisation == pytest.approx((18 + 18) / 50, abs=0.06)
    assert batch(told)["attempts_max"] > 1


def test_a_machine_that_is_back_at_once_has_lost_what_it_ran() -> None:
    events = (MachineEvent(30.0, 0, up=False), MachineEvent(30.001, 0, up=True))

    assert 1 == ran(an_experiment(job(10.0, lasts_s=1_000.0), events=events)).tasks_lost


def test_a_machine_that_shrinks_keeps_what_it_runs() -> None:
    small = machine_capacity(1_000, 1_024)
    events = (MachineEvent(30.0, 0, up=True, capacity=small),)

    assert 0 == ran(an_experiment(job(10.0, lasts_s=1_000.0), events=events)).tasks_lost


def test_what_is_lost_of_the_start_state_nobody_places_again() -> None:
    events = (MachineEvent(30.0, 0, up=False), MachineEvent(40.0, 0, up=True))
    told = ran(an_experiment(job(10.0, cores=1, lasts_s=1.0), prefill=a_prefill(2), events=events))

    assert (0, 1) == (told.tasks_lost, told.start_tasks_lost)
    assert 1 == batch(told)["attempts_max"]
    assert 0 == batch(told)["jobs_waiting"]


def test_workloads_are_told_of_before_their_first_job() -> None:
    told = ran(an_experiment(job(HORIZON_S + 1)))

    assert 0 == batch(told)["jobs"]
    assert batch(told)["wait_mean_s"] is None


def test_both_kinds_of_runs_tell_by_the_same_names() -> None:
    experiment = an_experiment(job(10.0))
    open_, live = experiment.run(), ran(experiment)

    assert batch(open_).keys() == batch(live).keys()
    assert [row.keys() for row in open_.schedulers] == [row.keys() for row in live.schedulers]


@pytest.mark.parametrize("queueing", Queueing)
def test_every_second_is_told_of_though_nothing_happens_in_it(queueing: Queueing) -> None:
    seconds: list[float] = []
    begin(an_experiment(job(10.5)), queueing, SyncConfig(), seconds.append).finish()

    in_time = [second for second in seconds if second <= HORIZON_S]  # one event comes after it
    assert list(range(round(HORIZON_S) + 1)) == in_time


def test_views_are_kept_fresh_as_asked() -> None:
    """Two that think at once: by parts, the second sees what the first took only a gap later."""
    many = [job(1.0 * n, lasts_s=30.0, cores=2) for n in range(40)]
    experiment = an_experiment(*many, machines=12, schedulers=4)
    by_kind = {sync: vars(ran(experiment, sync)) for sync in Sync}

    assert by_kind[Sync.DELTA]["tasks_placed"] == by_kind[Sync.FULL]["tasks_placed"]
    assert by_kind[Sync.DELTA] != by_kind[Sync.PARTITIONED]


def preempting(
    *arrivals: Arrival, prefill: Prefill | None = None, events: tuple[MachineEvent, ...] = ()
) -> Experiment:
    """Return an experiment on one machine with batch and service, which preempts at once."""
    experiment = an_experiment(*arrivals, prefill=prefill, events=events)
    made = {"batch": InOrder, "service": Preempts}
    return replace(
        experiment,
        scheduler=lambda kind: made[kind](),
        decision_times={"batch": DecisionTime(), "service": DecisionTime(job_s=THINKS_S)},
    )


class Preempts(InOrder):
    kind = "service"
    preempts = True


def urgent(submit_s: float, *, cores: int = 1, precedence: int = 100) -> Arrival:
    arrival = job(submit_s, cores=cores, lasts_s=20.0)
    return replace(arrival, spec=replace(arrival.spec, scheduler="service", precedence=precedence))


def test_who_is_evicted_queues_again_and_it_is_told_how_long_until_the_job_is_whole() -> None:
    told = ran(preempting(job(0.0, tasks=4, cores=1, lasts_s=1_000.0), urgent(10.0)))

    mine, service = batch(told), told.workloads["service"]
    assert (1, 1, 0) == (mine["tasks_evicted"], mine["jobs_evicted"], mine["tasks_lost"])
    assert {"batch": 0, "service": 1, "start": 0} == mine["tasks_evicted_by"]
    assert mine["evictions_per_hour"] == told.evictions_per_hour == 3_600 / HORIZON_S
    # Evicted when the service job is placed, whole again when that has ended, 20 s later.
    assert 20 <= mine["whole_again_mean_s"] == mine["whole_again_p90_s"] <= 25
    assert 0 == mine["jobs_not_whole_again"] == mine["jobs_unfinished"]
    assert (0, None) == (service["tasks_evicted"], service["whole_again_mean_s"])
    assert (1, 0) == (told.tasks_evicted, told.start_tasks_evicted)


def test_who_is_not_whole_again_at_the_end_is_counted() -> None:
    mine = batch(ran(preempting(job(0.0, lasts_s=1_000.0), urgent(90.0))))

    assert (1, 1) == (mine["tasks_evicted"], mine["jobs_not_whole_again"])
    assert mine["whole_again_mean_s"] is None


def test_the_gap_is_the_experiments() -> None:
    def evicted(gap: int) -> int:
        jobs = job(0.0, lasts_s=1_000.0), urgent(10.0, precedence=30)
        return ran(replace(preempting(*jobs), precedence_gap=gap)).tasks_evicted

    assert (1, 0) == (evicted(30), evicted(31))


@pytest.mark.parametrize("again", [False, True])
def test_evicted_tasks_of_the_start_state_are_gone_or_queue_again(*, again: bool) -> None:
    experiment = preempting(urgent(10.0, cores=3), job(90.0, cores=1), prefill=a_prefill(2))
    told = ran(replace(experiment, start_queues_again=again))

    assert (0, 1, 0) == (told.tasks_evicted, told.start_tasks_evicted, told.start_tasks_lost)
    assert {"batch": 0, "service": 1, "start": 0} == told.start["tasks_evicted_by"]
    assert (1, 1) == (told.start["jobs_evicted"], batch(told)["jobs"])
    assert (0 if again else 1) == told.start["jobs_not_whole_again"]
    assert (told.start["whole_again_mean_s"] is not None) == again


def test_what_machines_lose_is_told_by_workload() -> None:
    down = MachineEvent(30.0, 0, up=False)
    many = [job(1.0, tasks=2, cores=1, lasts_s=1_000.0), urgent(10.0)]
    told = ran(preempting(*many, events=(down,)))

    lost = {name: one["tasks_lost"] for name, one in told.workloads.items()}
    assert {"batch": 2, "service": 1} == lost
    assert (3, 0) == (told.tasks_lost, told.tasks_evicted)


def test_a_gang_is_submitted_as_one() -> None:
    experiment = replace(an_experiment(job(10.0, tasks=2)), gangs=True)

    assert (0, 1) == (batch(ran(experiment))["tasks_placed"], batch(ran(experiment))["jobs"])
