"""Compiled simulations beside uncompiled ones: the same random numbers, the same results."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from omega.framework.rng import seed_of
from omega.framework.scheduler import DecisionTime, Scheduler
from omega.model.arrays import Ids
from omega.model.claims import ConflictRule, Granularity
from omega.model.jobs import Constraint, JobSpec, LeasedJob, Operator, TaskGroup
from omega.model.resources import KINDS
from omega.placement import first_fit
from omega.sim import kernels
from omega.sim.allocator import OfferPolicy
from omega.sim.cell import SimulatedCell
from omega.sim.experiment import ONE_TRY, Architecture, Assignment, Experiment
from omega.sim.queue import GiveUpPolicy
from omega.sim.rows import Look
from omega.testing.builders import a_cell, a_spec
from omega.workload.arrivals import BATCH, SERVICE, Arrival, Workload
from omega.workload.synthetic import JobClass, TwoClasses, two_class_workload
from schedulers.batch import BatchScheduler
from schedulers.service import ServiceScheduler
from tests.fixtures.doses import examples
from tests.fixtures.job_lists import SMALL

WORDS = st.lists(st.integers(0, 2**64 - 1), min_size=4, max_size=4)
LIMITS = st.one_of(
    st.integers(1, 20),
    st.integers(1, 2**32 - 1),
    st.sampled_from([2**31, 2**31 + 1, 3 * 2**30, 2**32 - 1]),  # where half the draws are refused
)


class Words(np.random.SeedSequence):
    """A seed sequence that is already drawn."""

    def __init__(self, words: list[int]) -> None:
        self._words = np.array(words, np.uint64)

    def generate_state(self, n_words: int, dtype: object = np.uint32) -> np.ndarray:
        assert (n_words, np.dtype(dtype)) == (4, np.uint64)  # type: ignore[call-overload]
        return self._words


@examples(600)
@given(words=WORDS, limits=st.lists(LIMITS, min_size=1, max_size=5), times=st.integers(1, 40))
def test_random_integers_are_those_of_numpy(
    words: list[int], limits: list[int], times: int
) -> None:
    rng = np.random.default_rng(Words(words))
    state = np.zeros(kernels.STATE_WORDS, np.uint64)
    kernels.seed(np.array(words, np.uint64), state)

    for limit in limits:
        drawn = [int(kernels.draw_below(state, np.uint64(limit))) for _ in range(times)]
        assert rng.integers(limit, size=times).tolist() == drawn


class Drawn(BatchScheduler):
    """A job at a time."""

    jobs_per_transaction = 1


class Reversed(Drawn):
    """Has a `place` of its own, which is not to be taken for drawing."""

    def place(self, view, job, rng):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201
        """Claim the same machines, for the tasks in the other order."""
        claims = super().place(view, job, rng)
        if len(job.spec.groups) > 1:
            return claims  # what fits on one machine need not fit on another
        return replace(claims, machine=claims.machine[::-1].copy(), seen=claims.seen[::-1].copy())


SCHEDULERS: Mapping[str, type[Scheduler]] = {
    "drawn": Drawn,
    "its own": Reversed,
    "service": ServiceScheduler,
}


class Case:
    """An experiment, which is too long to be printed."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment

    def __repr__(self) -> str:
        return f"{self.experiment.architecture}, seed {self.experiment.seed}"


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Small cells, idle and crowded, in every architecture."""
    machines = draw(st.integers(1, 60))
    laws = TwoClasses(
        machines=machines,
        cpus=draw(st.sampled_from([1, 4, 4.5])),
        memory_gib=draw(st.sampled_from([4, 16])),
        prefill_tasks=draw(st.integers(0, machines)),
        batch=JobClass(
            scheduler=BATCH,
            gap_mean_s=draw(st.sampled_from([0.3, 1.0, 5.0])),
            tasks_mean=draw(st.sampled_from([1.5, 5.0, 30.0])),
            duration_mean_s=draw(st.sampled_from([2.0, 30.0, 300.0])),
        ),
        service=JobClass(scheduler=SERVICE, gap_mean_s=6.0, tasks_mean=6.0, duration_mean_s=40.0),
        horizon_s=60.0,
    )
    workload = two_class_workload(laws, np.random.default_rng(draw(st.integers(0, 2**32))))
    workload = _with_odd_jobs(workload, draw(st.integers(0, 6)))
    rule, granularity = draw(st.sampled_from(ConflictRule)), draw(st.sampled_from(Granularity))
    names = st.sampled_from(["drawn", "drawn", "drawn", *SCHEDULERS])
    by_kind = {kind: SCHEDULERS[draw(names)] for kind in (BATCH, SERVICE)}

    def scheduler(kind: str) -> Scheduler:
        made = by_kind[kind]()
        made.rule, made.granularity = rule, granularity
        return made

    experiment = Experiment(
        workload=workload,
        architecture=draw(st.sampled_from(Architecture)),
        scheduler=scheduler,
        decision_times={
            BATCH: DecisionTime(job_s=draw(st.sampled_from([0.0, 0.1, 2.0])), task_s=0.005),
            SERVICE: DecisionTime(job_s=draw(st.sampled_from([0.1, 5.0])), task_s=0.0),
        },
        schedulers={BATCH: draw(st.integers(1, 4)), SERVICE: draw(st.integers(1, 2))},
        assignment=draw(st.sampled_from(Assignment)),
        offering=OfferPolicy(least_cpu_milli=draw(st.sampled_from([500, 10_000]))),
        gangs=draw(st.booleans()),
        give_up=GiveUpPolicy(fruitless_max=draw(st.sampled_from([1, 100]))),
        limits=replace(ONE_TRY, tries_max=draw(st.sampled_from([1, 3]))),
        horizon_s=60.0,
        seed=draw(st.integers(0, 99)),
    )
    return Case(experiment)


def _with_odd_jobs(workload: Workload, every: int) -> Workload:
    """Give every so manieth job two groups, or a wish that no machine or only some meet."""
    arrivals = list(workload.arrivals)
    for at in range(0, len(arrivals) if every else 0, every or 1):
        group = arrivals[at].spec.groups[0]
        odd = [
            (group, replace(group, cpu_milli=500, duration_ms=1_000)),
            (replace(group, different_machines=True),),
            (replace(group, constraints=(Constraint("zone", Operator.EXISTS),)),),
            (replace(group, disk_mib=1),),
            (replace(group, cpu_milli=0, memory_mib=0),),
        ][at % 5]
        spec = replace(arrivals[at].spec, groups=odd)
        durations = arrivals[at].durations_s
        if durations is not None:
            durations = durations * len(odd)
        arrivals[at] = Arrival(arrivals[at].submit_s, spec, durations)
    return replace(workload, arrivals=tuple(arrivals))


@examples(600, one_in=60)
@given(case=cases())
def test_a_compiled_run_has_the_results_of_an_uncompiled_one(case: Case) -> None:
    experiment = case.experiment
    drawn = Counter[bool]()
    draw_and_claim = SimulatedCell.draw_and_claim

    def counted(
        cell: SimulatedCell, job: LeasedJob, seed: bytes, look: Look | None, *, by_sequence: bool
    ) -> Ids | None:
        machine = draw_and_claim(cell, job, seed, look, by_sequence=by_sequence)
        drawn[machine is not None] += 1
        return machine

    expected = experiment.run()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SimulatedCell, "draw_and_claim", counted)
        found = replace(experiment, compiled=True).run()

    event(f"drawn whole: {drawn[True] > 0}, left to the ordinary path: {drawn[False] > 0}")
    assert vars(expected) == vars(found)


@pytest.mark.parametrize("architecture", Architecture)
def test_in_every_architecture_jobs_are_placed_by_compiled_loops(
    architecture: Architecture, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends: list[int] = []
    draw_and_claim = kernels.draw_and_claim

    def noted(*given: Any) -> int:  # noqa: ANN401 - whatever the kernel takes
        ends.append(draw_and_claim(*given))
        return ends[-1]

    monkeypatch.setattr(kernels, "draw_and_claim", noted)
    experiment = Experiment(
        workload=two_class_workload(replace(SMALL, machines=60), np.random.default_rng(0)),
        architecture=architecture,
        scheduler=lambda _: Drawn(),
        decision_times=dict.fromkeys((BATCH, SERVICE), DecisionTime(job_s=0.1)),
        offering=OfferPolicy(least_cpu_milli=1_000),
        horizon_s=60.0,
        compiled=True,
    )

    attempts = sum(row["attempts_started"] for row in experiment.run().schedulers)

    assert attempts > 20
    assert sum(end > kernels.NOT_CLAIMED for end in ends) > 0.8 * attempts


@pytest.mark.parametrize("rule", ConflictRule)
@pytest.mark.parametrize("looks", [False, True])
def test_a_job_that_fits_is_claimed(
    rule: ConflictRule,
    looks: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    nothing = np.zeros((50, KINDS), np.int64)
    cell = SimulatedCell(a_cell(50, cpu_milli=4_000, memory_mib=9_000), nothing, compiled=True)
    look = cell.view.look() if looks else None
    job = LeasedJob(1, UUID(int=0), a_spec(20, cpu_milli=1_000), np.arange(20))

    by_sequence = rule is ConflictRule.SEQUENCE
    machine = cell.draw_and_claim(job, seed_of(1), look, by_sequence=by_sequence)

    assert machine is not None
    assert 20_000 == cell.cpu_used


def test_drawing_is_tried_as_often_as_uncompiled() -> None:
    """Its constants are compiled in: kept machine code would not follow those of another file."""
    assert first_fit.DRAWS == (kernels.DRAWN_FIRST, kernels.DRAWN_AGAIN)
    assert first_fit.DRAWN_BESIDES == kernels.DRAWN_BESIDES


def test_only_plain_jobs_placed_at_random_may_be_compiled() -> None:
    plain = JobSpec(name="plain", scheduler=BATCH, groups=(TaskGroup(tasks=3, cpu_milli=1),))
    with_gpus = replace(plain, groups=(TaskGroup(tasks=3, gpus=1),))
    two_groups = replace(plain, groups=plain.groups * 2)
    job = LeasedJob(1, None, plain, np.arange(3))  # type: ignore[arg-type]

    assert [True, False, False] == [one.is_plain for one in (plain, with_gpus, two_groups)]
    assert [True, False, False] == [one().places_at_random(job) for one in SCHEDULERS.values()]
