"""The auditor of simulated cells: silent in every architecture, loud where a fault is planted."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from omega.cell.commit_context import CommitContext
from omega.cell.judge import judge
from omega.cell.view import View
from omega.errors import InvariantBroken
from omega.framework.attempt import PlanningContext
from omega.framework.scheduler import DecisionTime
from omega.model.arrays import Amounts, Ids
from omega.model.claims import Claims, ConflictRule, Granularity, Transaction
from omega.model.jobs import LeasedJob
from omega.model.machines import MachineRows
from omega.model.outcomes import Outcome, Verdict
from omega.sim import cell as cells
from omega.sim.allocator import Allocator, Offer, OfferPolicy
from omega.sim.cell import SimulatedCell
from omega.sim.engine import Engine, Order
from omega.sim.experiment import Architecture, Experiment
from omega.sim.offers import Framework
from omega.testing.builders import a_group, a_spec
from omega.workload.arrivals import BATCH, SERVICE, Arrival
from omega.workload.synthetic import two_class_workload
from schedulers.batch import BatchScheduler
from tests.fixtures.job_lists import SMALL

CROWDED = replace(SMALL, prefill_tasks=45)
HORIZON_S = 60.0


class Whole(BatchScheduler):
    """A job at a time."""

    jobs_per_transaction = 1


class BySequence(Whole):
    """Any claim on a machine conflicts."""

    rule = ConflictRule.SEQUENCE


class WithAlternates(Whole):
    """Each claim may land on another machine as well."""

    def __init__(self) -> None:
        super().__init__(alternates=2)


class WithAlternatesBySequence(WithAlternates):
    """Any claim on a machine conflicts, on an alternate too."""

    rule = ConflictRule.SEQUENCE


def experiment(
    architecture: Architecture = Architecture.SHARED_STATE,
    seed: int = 0,
    scheduler: Callable[[], BatchScheduler] = Whole,
    *,
    gangs: bool = False,
) -> Experiment:
    return Experiment(
        workload=two_class_workload(CROWDED, np.random.default_rng(seed)),
        architecture=architecture,
        scheduler=lambda _: scheduler(),
        decision_times={BATCH: DecisionTime(job_s=0.5), SERVICE: DecisionTime(job_s=5.0)},
        schedulers={BATCH: 3},
        offering=OfferPolicy(least_cpu_milli=1_000),
        gangs=gangs,
        horizon_s=HORIZON_S,
        seed=seed,
        audited=True,
    )


@pytest.mark.parametrize("architecture", Architecture)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_architecture_is_clean_and_none_the_worse_for_it(
    architecture: Architecture, seed: int
) -> None:
    audited = experiment(architecture, seed)
    found, alone = audited.run(), replace(audited, audited=False).run()

    assert found.audited > 30
    assert 0 == alone.audited
    assert vars(alone) == {**vars(found), "audited": 0}


@pytest.mark.parametrize("rule", ConflictRule)
@pytest.mark.parametrize("granularity", Granularity)
@pytest.mark.parametrize("gangs", [False, True])
def test_every_way_to_commit_is_clean(
    rule: ConflictRule,
    granularity: Granularity,
    gangs: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    def scheduler() -> BatchScheduler:
        made = Whole()
        made.rule, made.granularity = rule, granularity
        return made

    found = replace(experiment(scheduler=scheduler, gangs=gangs), horizon_s=100.0).run()

    assert found.audited > 30
    assert found.workloads[BATCH]["transactions_conflicted"]


@pytest.mark.parametrize("architecture", Architecture)
def test_groups_that_run_equally_long_are_clean(architecture: Architecture) -> None:
    groups = [a_group(2, cpu_milli=1_000, duration_ms=10_000) for _ in range(2)]
    usual = experiment(architecture)
    job = Arrival(1.0, a_spec(groups=groups))
    found = replace(usual, workload=replace(usual.workload, arrivals=(job,))).run()

    assert 4 == found.tasks_placed


def test_within_an_offer_no_sequence_is_stale() -> None:
    found = experiment(Architecture.TWO_LEVEL, scheduler=BySequence).run()

    assert found.tasks_placed
    assert 0 == found.workloads[BATCH]["transactions_conflicted"]


@pytest.mark.parametrize("architecture", Architecture)
@pytest.mark.parametrize("scheduler", [WithAlternates, WithAlternatesBySequence])
def test_what_lands_on_alternates_is_held_there(
    architecture: Architecture, scheduler: type[BatchScheduler]
) -> None:
    assert experiment(architecture, scheduler=scheduler).run().audited > 30


@pytest.mark.parametrize(
    ("scheduler", "plain"), [(WithAlternates, Whole), (WithAlternatesBySequence, BySequence)]
)
def test_alternates_prevent_some_of_the_conflicts(
    scheduler: type[BatchScheduler], plain: type[BatchScheduler]
) -> None:
    def refused(make: type[BatchScheduler]) -> int:
        results = (experiment(seed=seed, scheduler=make).run() for seed in range(3))
        return sum(row["transactions_conflicted"] for one in results for row in one.schedulers)

    assert 0 < refused(scheduler) < refused(plain)


class PlacesTwice(Whole):
    """Believes that all tasks are the first of those that are left."""

    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        claims = super().place(view, job, rng)
        return replace(claims, task=np.full_like(claims.task, job.unplaced[0]))


def test_a_scheduler_that_places_a_task_twice_is_caught() -> None:
    with pytest.raises(InvariantBroken, match="already") as caught:
        experiment(scheduler=PlacesTwice).run()

    assert "granted to task" in caught.value.story[-1]
    assert "cpu_milli 1000, memory_mib 2048" in caught.value.story[-1]


Judge = Callable[[MachineRows, Transaction, CommitContext], Outcome]


def grants_all(rows: MachineRows, transaction: Transaction, context: CommitContext) -> Outcome:
    roomy = replace(rows, capacity=rows.capacity * 100)
    return judge(roomy, transaction, context)


def refuses_the_first(
    rows: MachineRows, transaction: Transaction, context: CommitContext
) -> Outcome:
    outcome = judge(rows, transaction, context)
    verdicts = outcome.verdicts.copy()
    verdicts[:1] = Verdict.OVERCOMMIT
    return replace(outcome, verdicts=verdicts)


def knows_no_gangs(rows: MachineRows, transaction: Transaction, context: CommitContext) -> Outcome:
    jobs = tuple(replace(part, grants_min=0) for part in transaction.jobs)
    lone = replace(context, minimum=np.zeros_like(context.minimum))
    return judge(rows, replace(transaction, jobs=jobs), lone)


def finds_all_stale(rows: MachineRows, transaction: Transaction, context: CommitContext) -> Outcome:
    nothing = judge(replace(rows, capacity=rows.used), transaction, context)
    return replace(nothing, verdicts=np.full_like(nothing.verdicts, Verdict.STALE))


def looks_at_no_sequence(
    rows: MachineRows, transaction: Transaction, context: CommitContext
) -> Outcome:
    return judge(rows, replace(transaction, rule=ConflictRule.FIT), context)


def counts_claims(rows: MachineRows, transaction: Transaction, context: CommitContext) -> Outcome:
    outcome = judge(rows, transaction, context)
    twice = replace(outcome.fresh, sequence=outcome.fresh.sequence + 1)
    return replace(outcome, fresh=twice)


@pytest.mark.parametrize(
    ("fault", "what"),
    [
        (grants_all, r"holds cpu_milli \d+.* of cpu_milli 4000"),
        (refuses_the_first, "refused for want of room, and there is room"),
        (knows_no_gangs, r"job \d+ got \d+ of \d+"),
        (finds_all_stale, "refused as stale, and its sequence is"),
        (looks_at_no_sequence, r"granted on sequence \d+; it was"),
        (counts_claims, r"sequence \d+; it rose to"),
    ],
)
def test_a_judge_at_fault_is_caught(
    monkeypatch: pytest.MonkeyPatch, fault: Judge, what: str
) -> None:
    monkeypatch.setattr(cells, "judge", fault)

    with pytest.raises(InvariantBroken, match=what) as caught:
        experiment(
            scheduler=Whole if fault is grants_all else BySequence, gangs=fault is knows_no_gangs
        ).run()

    assert caught.value.story


def test_a_gang_that_is_let_in_by_all_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "judge", knows_no_gangs)
    monkeypatch.setattr(PlanningContext, "grants_min", lambda *_: 0)

    with pytest.raises(InvariantBroken, match=r"a gang of \d+, has \d+ tasks"):
        replace(experiment(gangs=True), horizon_s=300.0).run()


def frees_twice(release: Callable[[SimulatedCell, Ids, Amounts], None]) -> Callable[..., None]:
    def faulty(cell: SimulatedCell, machine: Ids, amounts: Amounts) -> None:
        release(cell, machine, amounts)
        cell.view._free[machine[0] - 1] += amounts[0]  # noqa: SLF001 - the fault

    return faulty


def test_a_cell_that_frees_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedCell, "release", frees_twice(SimulatedCell.release))

    with pytest.raises(InvariantBroken, match=r"expected .* cell ") as caught:
        experiment().run()

    assert caught.value.story


TakeBack = Callable[[Allocator, Offer, int], None]


def keeps_an_offer(_: TakeBack) -> TakeBack:
    return lambda allocator, _left, _cpu_milli: allocator.arm()


def gives_back_too_much(take_back: TakeBack) -> TakeBack:
    def faulty(allocator: Allocator, left: Offer, cpu_milli: int) -> None:
        free = left.cell.view._free  # noqa: SLF001 - the fault
        free += free > 0
        take_back(allocator, left, cpu_milli)

    return faulty


@pytest.mark.parametrize("fault", [keeps_an_offer, gives_back_too_much])
def test_an_offer_that_is_not_given_back_as_it_was_is_caught(
    monkeypatch: pytest.MonkeyPatch, fault: Callable[[TakeBack], TakeBack]
) -> None:
    monkeypatch.setattr(Allocator, "take_back", fault(Allocator.take_back))

    with pytest.raises(InvariantBroken, match="to offer; told") as caught:
        experiment(Architecture.TWO_LEVEL).run()

    assert any("given back of an offer" in line for line in caught.value.story)


def test_an_offer_that_is_handed_out_twice_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    receive = Framework.receive

    def faulty(framework: Framework, offered: Offer) -> None:
        receive(framework, Offer(offered.cell.copy(), offered.cell.view.id))
        receive(framework, offered)

    monkeypatch.setattr(Framework, "receive", faulty)
    monkeypatch.setattr(Allocator, "withdraw", lambda *_: None)

    with pytest.raises(InvariantBroken, match="was granted what was not offered"):
        experiment(Architecture.TWO_LEVEL).run()


@pytest.mark.parametrize(
    ("late_s", "times", "what"),
    [(0.0, 2, "that were not to"), (0.7, 1, r"runs on|that were not to"), (9e9, 1, "runs on")],
)
def test_tasks_that_end_twice_late_or_never_are_caught(
    monkeypatch: pytest.MonkeyPatch, late_s: float, times: int, what: str
) -> None:
    at = Engine.at

    def faulty(engine: Engine, time_s: float, order: Order, action: Callable[[], None]) -> None:
        is_end = order is Order.END
        for _ in range(times if is_end else 1):
            at(engine, time_s + late_s * is_end, order, action)

    monkeypatch.setattr(Engine, "at", faulty)

    with pytest.raises(InvariantBroken, match=what) as caught:
        experiment().run()

    assert any("granted to task" in line for line in caught.value.story)
