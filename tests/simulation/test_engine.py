"""Virtual time, and what simulated schedulers do with it."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from omega.framework.scheduler import DecisionTime
from omega.model.claims import ConflictRule, Granularity
from omega.model.resources import Kind
from omega.sim.allocator import OfferPolicy
from omega.sim.engine import Engine, Order
from omega.sim.experiment import Architecture, Assignment, Experiment
from omega.sim.ledger import mean, p90, ratio
from omega.sim.queue import GiveUpPolicy
from omega.sim.results import Result
from omega.testing.builders import a_spec
from omega.workload.arrivals import BATCH, SERVICE, Arrival, Prefill, Workload
from omega.workload.synthetic import JobClass, TwoClasses, two_class_workload, uniform_machines
from schedulers.batch import BatchScheduler

CONTENDED = TwoClasses(
    machines=20,
    cpus=4,
    memory_gib=16,
    prefill_tasks=30,
    batch=JobClass(scheduler=BATCH, gap_mean_s=2, tasks_mean=5, duration_mean_s=10),
    service=JobClass(scheduler=SERVICE, gap_mean_s=10, tasks_mean=5, duration_mean_s=30),
    horizon_s=300.0,
)
TIMES = {BATCH: DecisionTime(job_s=0.5, task_s=0.01), SERVICE: DecisionTime(job_s=5.0)}


class Whole(BatchScheduler):
    """A job at a time."""

    jobs_per_transaction = 1


class WholeOrNothing(Whole):
    """All of a job's claims, or none."""

    granularity = Granularity.ALL_OR_NOTHING


class BySequence(Whole):
    """Any claim on a machine conflicts."""

    rule = ConflictRule.SEQUENCE


def always(made: type[Whole]) -> Callable[[str], Whole]:
    """The same for every workload."""
    return lambda _: made()


def contended(seed: int = 0) -> Experiment:
    return Experiment(
        workload=two_class_workload(CONTENDED, np.random.default_rng(seed)),
        architecture=Architecture.SHARED_STATE,
        scheduler=always(Whole),
        decision_times=TIMES,
        schedulers={BATCH: 3},
        horizon_s=CONTENDED.horizon_s,
        seed=seed,
    )


@cache
def shared() -> Result:
    """What the contended cell comes to with shared state: a second of work, for several tests."""
    return contended().run()


def only(workload: Workload, name: str) -> Workload:
    """The arrivals of one workload, and of the other one job that nothing can hold."""
    arrivals = [one for one in workload.arrivals if one.spec.scheduler == name]
    other = next(one.spec for one in workload.arrivals if one.spec.scheduler != name)
    huge = replace(other, groups=(replace(other.groups[0], cpu_milli=10**6),))
    return replace(workload, arrivals=(Arrival(0.0, huge), *arrivals))


def one_job(tasks: int, *, machines: int = 1, duration_ms: int = 1_000) -> Workload:
    """A job for one machine with four cores, of tasks that take one each."""
    spec = a_spec(tasks, cpu_milli=1_000, duration_ms=duration_ms)
    cell = uniform_machines(machines, cpus=4, memory_gib=64)
    return Workload("one job", cell, Prefill.none(), (Arrival(1.0, spec),))


def test_events_come_in_order_of_time_then_of_what_they_are_then_of_asking() -> None:
    engine, told = Engine(), list[str]()
    for name, time_s, order in (
        ("late", 2.0, Order.END),
        ("decided", 1.0, Order.DECISION),
        ("ended", 1.0, Order.END),
        ("decided later", 1.0, Order.DECISION),
        ("beyond", 3.5, Order.END),
        ("never", 4.0, Order.END),
    ):
        engine.at(time_s, order, lambda name=name: told.append(name))  # type: ignore[misc]
    engine.run(3.0)

    assert ["ended", "decided", "decided later", "late", "beyond"] == told
    assert (3.5, 5) == (engine.now_s, engine.executed)


def test_one_seed_gives_one_result() -> None:
    first, again, other = contended(1).run(), contended(1).run(), contended(2).run()

    assert vars(first) == vars(again)
    assert first.workloads != other.workloads


@pytest.mark.parametrize("architecture", sorted(set(Architecture) - {Architecture.TWO_LEVEL}))
def test_all_that_is_placed_is_counted_once(architecture: Architecture) -> None:
    shares = architecture is Architecture.SHARED_STATE
    result = shared() if shares else replace(contended(), architecture=architecture).run()

    for told in result.workloads.values():
        assert told["jobs"] == told["jobs_scheduled"] + told["jobs_unfinished"]
        assert 0 < told["tasks_placed"] <= told["tasks"]
        assert 0 < told["busy"] <= told["think_started"] + 0.02
        assert told["busy"] == pytest.approx(told["busy_useful"] + told["busy_wasted"])
    assert result.utilisation is not None
    assert 0.375 < result.utilisation <= 1, "what was there at the start, and more"


def test_one_scheduler_alone_never_conflicts_and_several_do() -> None:
    together = shared().workloads
    alone = replace(contended(), architecture=Architecture.MULTI_PATH).run().workloads

    assert together[SERVICE]["conflict_fraction"] > 0
    assert {0} == {told["transactions_conflicted"] for told in alone.values()}


def test_the_coarser_the_rule_the_more_conflicts() -> None:
    by_fit = shared().workloads[SERVICE]["conflict_fraction"]
    by_sequence = replace(contended(), scheduler=always(BySequence)).run().workloads

    assert by_fit < by_sequence[SERVICE]["conflict_fraction"]


def test_workloads_with_machines_of_their_own_never_meet() -> None:
    """What one workload asks for does not show in what the other comes to."""
    apart = replace(contended(), architecture=Architecture.STATIC_PARTITION, schedulers={})
    alone = replace(apart, workload=only(apart.workload, SERVICE)).run().workloads[SERVICE]
    both = apart.run().workloads

    assert {0} == {told["transactions_conflicted"] for told in both.values()}
    assert alone["busy"] == pytest.approx(both[SERVICE]["busy"])
    most = replace(apart, parts={BATCH: 9.0, SERVICE: 1.0}).run().workloads
    assert most[SERVICE]["tasks_placed"] < both[SERVICE]["tasks_placed"]


def test_nothing_stays_locked_and_nothing_that_is_offered_is_taken_twice() -> None:
    experiment = replace(
        contended(),
        architecture=Architecture.TWO_LEVEL,
        schedulers={BATCH: 2},
        offering=OfferPolicy(least_cpu_milli=1_000),
        horizon_s=5 * CONTENDED.horizon_s,  # the last jobs have come long before
    )
    run = experiment.begin()
    run.engine.run(experiment.horizon_s)
    result = run.result()

    assert result.locked is not None
    assert 0 < result.locked < 1
    for told in result.workloads.values():
        assert (0, 0) == (told["transactions_conflicted"], told["jobs_unfinished"])
    (cell,) = run.cells
    assert 0 == cell.cpu_locked
    assert CONTENDED.prefill_tasks * 1_000 == cell.cpu_used
    assert cell.total[Kind.CPU_MILLI] == cell.cpu_used + cell.free[:, Kind.CPU_MILLI].sum()


def test_less_than_the_least_offer_is_offered_to_nobody() -> None:
    told = replace(
        contended(),
        architecture=Architecture.TWO_LEVEL,
        offering=OfferPolicy(least_cpu_milli=10**6),
    ).run()

    assert {0} == {one["tasks_placed"] for one in told.workloads.values()}


def test_what_does_not_fit_waits_for_room_and_is_tried_again_a_second_later() -> None:
    """Four of six tasks at 2 s; the other two at 4 s, for those four have ended by then."""
    result = Experiment(
        workload=one_job(6),
        architecture=Architecture.MONOLITHIC,
        scheduler=always(Whole),
        decision_times={BATCH: DecisionTime(job_s=1.0)},
        horizon_s=60.0,
    ).run()
    told = result.workloads[BATCH]

    assert (1, 6, 2) == (told["jobs_scheduled"], told["tasks_placed"], told["attempts_max"])
    assert (2 / 60, 0.0) == (told["busy"], told["wait_mean_s"])
    assert (4 * 1 + 2 * 1) / (60 * 4) == pytest.approx(result.utilisation, rel=0.05)


def test_a_gang_that_does_not_fit_takes_nothing() -> None:
    experiment = Experiment(
        workload=one_job(6),
        architecture=Architecture.SHARED_STATE,
        scheduler=always(Whole),
        decision_times={BATCH: DecisionTime(job_s=1.0)},
        gangs=True,
        horizon_s=30.0,
    )
    whole = experiment.run().workloads[BATCH]
    by_halves = (
        replace(experiment, gangs=False, scheduler=always(WholeOrNothing)).run().workloads[BATCH]
    )

    assert (0, 1) == (whole["tasks_placed"], whole["jobs_unfinished"])
    assert whole["attempts_without_room"] == whole["attempts_max"] > 10
    assert 6 == by_halves["tasks_placed"], "as in the reference, where this is called a gang"


@pytest.mark.parametrize(
    ("tasks", "give_up", "attempts", "placed"),
    [
        (6, GiveUpPolicy(fruitless_max=3), 4, 0),
        (6, GiveUpPolicy(attempts_max=5), 6, 0),
    ],
)
def test_a_job_is_given_up_after_too_many_attempts(
    tasks: int, give_up: GiveUpPolicy, attempts: int, placed: int
) -> None:
    told = (
        Experiment(
            workload=one_job(tasks),
            architecture=Architecture.SHARED_STATE,
            scheduler=always(Whole),
            decision_times={BATCH: DecisionTime(job_s=0.1)},
            gangs=True,
            give_up=give_up,
            horizon_s=100.0,
        )
        .run()
        .workloads[BATCH]
    )

    assert (1, attempts, placed) == (
        told["jobs_abandoned"],
        told["attempts_max"],
        told["tasks_placed"],
    )


def test_a_job_goes_to_whoever_has_least_to_do() -> None:
    """Of two schedulers, the first thinks for ten seconds about the first job."""
    tasks = {1.0: 10, 2.0: 1, 3.5: 1, 8.0: 1}
    workload = replace(
        one_job(1, machines=20),
        arrivals=tuple(Arrival(at, a_spec(count, cpu_milli=1)) for at, count in tasks.items()),
    )
    experiment = Experiment(
        workload=workload,
        architecture=Architecture.SHARED_STATE,
        scheduler=always(Whole),
        decision_times={BATCH: DecisionTime(task_s=1.0)},
        schedulers={BATCH: 2},
        horizon_s=40.0,
    )
    dealt = experiment.run()
    least = replace(experiment, assignment=Assignment.LEAST_LOADED).run()

    for result, begun, wait_s in ((dealt, [2, 2], 7.5 / 4), (least, [1, 3], 0.0)):
        assert begun == [row["attempts_started"] for row in result.schedulers]
        assert wait_s == result.workloads[BATCH]["wait_mean_s"]


def test_measures_of_nothing_are_nothing() -> None:
    assert ratio(1, 0) is None
    assert mean([]) is None
    assert p90([]) is None
    assert (2.0, 9.0) == (mean([1.0, 3.0]), p90([float(n) for n in range(11)]))
