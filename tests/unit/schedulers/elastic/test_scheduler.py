"""What the elastic scheduler learns, whom it gives helpers, and what operators may set."""

import json
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from omega.cell.view import View
from omega.errors import BadInput
from omega.framework.elastic import ElasticState
from omega.model.elastic import Phase, PhaseProgress, Workers
from omega.model.elastic_jobs import ElasticJob
from omega.model.machines import MachineState
from omega.testing.builders import a_cell, a_spec, a_view
from schedulers.elastic.policies import Policy, PolicyName
from schedulers.elastic.scheduler import PRECEDENCE, ElasticScheduler, Helpers

PHASES = (Phase("map", 100, 60_000), Phase("reduce", 10, 60_000, after="map"))
NOTHING: Mapping[str, object] = {}


def a_job(
    job: int = 1,
    *,
    done: tuple[int, int] = (0, 0),
    busy_ms: tuple[int, int] = (0, 0),
    helpers: int = 0,
    runs: bool = True,
    name: str = "index",
    wanted: int = 5,
    at_most: int = 1_000,
) -> ElasticJob:
    spec = a_spec(wanted, name=name, scheduler="elastic", cpu_milli=1_000)
    spec = replace(spec, workers=Workers(at_most, PHASES))
    return ElasticJob(job, spec, runs, (), helpers, done, busy_ms)


def planned(
    *jobs: ElasticJob,
    memo: Mapping[str, object] = NOTHING,
    ended: tuple[PhaseProgress, ...] = (),
    view: View | None = None,
) -> tuple[dict[int, int], Mapping[str, object]]:
    view = view or a_view(a_cell(10, cpu_milli=4_000))
    plan = Helpers(Policy()).plan(view, ElasticState(memo=memo, jobs=jobs, ended=ended))
    return dict(plan.helpers), json.loads(json.dumps(plan.memo))


def test_nothing_is_given_before_an_activity_was_done() -> None:
    assert {} == planned(a_job())[0]


def test_durations_in_specs_are_not_read() -> None:
    quick = a_job(1, done=(10, 0), busy_ms=(10, 0), name="quick")
    long = a_job(2, done=(10, 0), busy_ms=(10_000_000, 0), name="long")
    view = a_view(a_cell(1, cpu_milli=4_000))

    assert {2: 4} == planned(quick, long, view=view)[0], "both say a minute; history says who"


def test_a_job_learns_from_its_own_activities_and_the_memo_keeps_it() -> None:
    _, memo = planned(a_job(1, done=(10, 0), busy_ms=(100_000, 0)))
    helpers, again = planned(a_job(2), memo=memo)

    assert {2: 29} == helpers, "three waves of 34; for two, 50 cores are wanted"
    assert [["index", {"map": [10, 100_000]}]] == again["history"]


def test_what_was_done_counts_once() -> None:
    first = a_job(1, done=(10, 0), busy_ms=(100_000, 0))
    _, memo = planned(first)
    _, memo = planned(first, memo=memo)
    _, memo = planned(a_job(1, done=(30, 0), busy_ms=(160_000, 0)), memo=memo)

    assert [["index", {"map": [30, 160_000]}]] == memo["history"]


def test_the_last_activities_of_a_job_that_has_ended_count() -> None:
    _, memo = planned(a_job(1, done=(90, 0), busy_ms=(90_000, 0)))
    ended = PhaseProgress(1, 1, PHASES, (100, 10), (100_000, 50_000))
    _, memo = planned(memo=memo, ended=(ended,))

    assert [["index", {"map": [100, 100_000], "reduce": [10, 50_000]}]] == memo["history"]
    assert [] == memo["seen"]


@pytest.mark.parametrize(
    "memo",
    [
        {"history": 7, "seen": 7},
        {"history": [["index", {"map": [1]}]], "seen": [[1, "index", ["map"], [1, 2], [1]]]},
        {"seen": [["x", "index", [], [], []], [1, "index", ["map"], ["a"], [1]]]},
    ],
)
def test_a_memo_that_nobody_wrote_is_left_out(memo: Mapping[str, object]) -> None:
    assert {} == planned(a_job(), memo=memo)[0]


def test_only_jobs_that_run_whole_get_helpers() -> None:
    job = a_job(1, done=(10, 0), busy_ms=(100_000, 0), runs=False)

    assert {} == planned(job)[0]


def test_helpers_are_as_many_as_the_machines_take() -> None:
    job = a_job(1, done=(10, 0), busy_ms=(100_000, 0))
    cell = a_cell(10, cpu_milli=1_999)  # ten cores in all; twice as many by the sum
    closed = a_view(a_cell(3, cpu_milli=4_000), state={2: MachineState.DRAINING})

    assert {1: 10} == planned(job, view=a_view(cell))[0]
    assert {1: 8} == planned(job, view=closed)[0]


def test_helpers_that_there_are_count() -> None:
    job = a_job(1, done=(10, 0), busy_ms=(100_000, 0), helpers=15, at_most=23)

    assert {1: 3} == planned(job)[0], "four waves of the 90 that are left"
    assert {} == planned(replace(job, helpers=18))[0]


def test_cap_gives_back_what_is_above_the_target() -> None:
    policy = ElasticScheduler.configured({"policy": "cap", "target": "0.5"}).elastic.policy
    view = a_view(
        a_cell(2, cpu_milli=4_000), used={1: {"cpu_milli": 4_000}, 2: {"cpu_milli": 1_000}}
    )
    plan = Helpers(policy).plan(view, ElasticState(memo={}, jobs=[], ended=[]))

    assert 1_000 == plan.give_back[0]
    assert not plan.give_back[1:].any()


def test_what_operators_may_set() -> None:
    usual = ElasticScheduler.configured({})
    low = ElasticScheduler.configured({"policy": "relative", "helper_precedence": "-5"})

    assert (Policy(), PRECEDENCE) == (usual.elastic.policy, usual.elastic.precedence)
    assert (PolicyName.RELATIVE, -5) == (low.elastic.policy.name, low.elastic.precedence)
    assert usual.preempts


@pytest.mark.parametrize(
    "settings",
    [
        {"helper_precedence": "low"},
        {"helper_precedence": "--5"},
        {"helper_precedence": "1.5"},
        {"helper_precedence": "2147483648"},
        {"helper_precedence": "9" * 5_000},
        {"policy": "all"},
        {"tick": "1"},
    ],
)
def test_what_cannot_be_set_is_refused(settings: dict[str, str]) -> None:
    with pytest.raises(BadInput):
        ElasticScheduler.configured(settings)


def test_the_same_state_gives_the_same_plan() -> None:
    jobs = [a_job(number, done=(10, 0), busy_ms=(100_000, 0)) for number in (1, 2, 3)]

    assert planned(*jobs) == planned(*jobs)
    assert np.sum(list(planned(*jobs)[0].values())) <= 40
