"""The parsync scheduler: which part comes first, and which machines inside it."""

import numpy as np
import pytest

from omega.cell.partition import part_of
from omega.cell.signals import Signals
from omega.cell.view import View
from omega.errors import BadInput
from omega.model.jobs import Constraint, Operator
from omega.testing.builders import a_cell, a_group, a_job, a_view
from schedulers.parsync import (
    ParSyncScheduler,
    ScoredBy,
    Settings,
    Strategy,
    draw_weighted,
    key_of,
    scores,
)

MACHINES = 120
PARTS = 4
FRESHEST = 2
AGES_S = np.array([0.75, 0.5, 0.0, 0.25])


def a_parted_view(
    *, head_age_s: float = 0.0, ages_s: np.ndarray = AGES_S, full: tuple[int, ...] = ()
) -> View:
    """Return a view of machines for one task each, in parts of these ages, some parts full."""
    part = part_of(np.arange(1, MACHINES + 1), PARTS)
    used = {int(one) + 1: {"cpu_milli": 1_000} for one in np.isin(part, full).nonzero()[0]}
    view = a_view(a_cell(MACHINES, cpu_milli=1_000), used=used)
    view.signals = Signals(parts_read_s=-ages_s, head_age_s=head_age_s)
    return view


def parts_chosen(
    view: View, scheduler: ParSyncScheduler, tasks: int = 5, seed: int = 1
) -> list[int]:
    """Return the part of each claim's machine."""
    claims = scheduler.place(view, a_job(tasks), np.random.default_rng(seed))
    assert tasks == len(claims) == len(set(claims.machine.tolist()))
    return [int(view.part[at]) for at in view.where(claims.machine)]


def of(strategy: Strategy, **more: object) -> ParSyncScheduler:
    return ParSyncScheduler(Settings(strategy=strategy, **more))


def by_quality(view: View) -> list[int]:
    """Return the parts by the mean score of their machines, the best first."""
    means = [scores(view.id[view.part == part], 0).mean() for part in range(PARTS)]
    return [int(part) for part in np.argsort(means)[::-1]]


def test_quality_first_takes_the_part_that_scores_best_whatever_its_age() -> None:
    view = a_parted_view()

    assert by_quality(view)[0] != FRESHEST, "or the two strategies are not told apart"
    assert {by_quality(view)[0]} == set(parts_chosen(view, of(Strategy.QUALITY)))


def test_latency_first_takes_the_freshest_part() -> None:
    assert {FRESHEST} == set(parts_chosen(a_parted_view(), of(Strategy.LATENCY)))


def test_of_parts_that_are_equally_fresh_the_better_comes_first() -> None:
    best, *_, worse, worst = by_quality(a_parted_view())
    for better, other in ((best, worse), (worse, worst)):
        ages_s = np.ones(PARTS)
        ages_s[[better, other]] = 0.0
        view = a_parted_view(ages_s=ages_s)

        assert {better} == set(parts_chosen(view, of(Strategy.LATENCY)))


@pytest.mark.parametrize("strategy", [Strategy.QUALITY, Strategy.LATENCY])
def test_the_next_part_comes_when_one_is_exhausted(strategy: Strategy) -> None:
    view = a_parted_view()
    freshest_first = np.argsort(AGES_S).tolist()
    order = by_quality(view) if strategy is Strategy.QUALITY else freshest_first
    first = int((view.part == order[0]).sum())
    chosen = parts_chosen(view, of(strategy), tasks=first + 3)

    assert {order[0]: first, order[1]: 3} == {part: chosen.count(part) for part in set(chosen)}


@pytest.mark.parametrize("strategy", list(Strategy))
def test_full_parts_are_passed_over(strategy: Strategy) -> None:
    view = a_parted_view(full=(0, 1, FRESHEST), head_age_s=9.0)

    assert {3} == set(parts_chosen(view, of(strategy)))


def test_adaptive_switches_at_the_edges_of_its_threshold_and_not_between() -> None:
    scheduler = of(Strategy.ADAPTIVE, threshold=1.5, hysteresis=0.2)
    ages = (0.0, 1.4, 1.51, 1.4, 1.21, 1.19, 1.4, 2.0)
    best = by_quality(a_parted_view())[0]

    firsts = [parts_chosen(a_parted_view(head_age_s=age), scheduler)[0] for age in ages]

    quality, latency = best, FRESHEST
    assert [quality] * 2 + [latency] * 3 + [quality] * 2 + [latency] == firsts


def test_adaptive_asked_twice_with_the_same_signals_answers_the_same() -> None:
    scheduler = of(Strategy.ADAPTIVE)
    for age in (0.0, 1.6, 1.4, 1.0):
        view = a_parted_view(head_age_s=age)

        assert parts_chosen(view, scheduler) == parts_chosen(view, scheduler)


def test_inside_a_part_better_machines_are_drawn_more_often() -> None:
    score = np.array([0.8, 0.2])
    rng = np.random.default_rng(3)
    drawn = [draw_weighted(np.array([1, 1]), score, 1, rng)[0] for _ in range(2_000)]

    assert np.mean(drawn) == pytest.approx(0.8, abs=0.03)


def test_a_machine_counts_once_for_each_task_that_it_takes() -> None:
    drawn = draw_weighted(np.array([3, 1]), np.array([0.5, 0.5]), 4, np.random.default_rng(1))

    assert [3, 1] == drawn.tolist()


def test_scores_are_uniform_and_follow_from_machine_and_key_alone() -> None:
    machine = np.arange(1, 20_001)
    score = scores(machine, 7)
    tenths = np.bincount((score * 10).astype(int), minlength=10)

    assert np.array_equal(score[5:10], scores(machine[5:10], 7))
    assert 0 < score.min() < score.max() < 1
    assert abs(tenths - 2_000).max() < 200
    assert abs(np.corrcoef(score, scores(machine, 8))[0, 1]) < 0.03


def test_a_score_may_depend_on_what_the_task_asks_for() -> None:
    shapes = [
        a_group(cpu_milli=1_000),
        a_group(cpu_milli=2_000),
        a_group(constraints=(Constraint("zone", Operator.EXISTS),)),
    ]
    view = a_parted_view()
    chosen = {
        (by, cpu): ParSyncScheduler(Settings(strategy=Strategy.QUALITY, score=by))
        .place(view, a_job(5, cpu_milli=cpu), np.random.default_rng(1))
        .machine.tolist()
        for by in ScoredBy
        for cpu in (600, 900)
    }

    assert 3 == len(set(map(key_of, shapes)))
    assert key_of(shapes[0]) == key_of(a_group(tasks=9))
    assert chosen[ScoredBy.MACHINE, 600] == chosen[ScoredBy.MACHINE, 900]
    assert chosen[ScoredBy.TASK, 600] != chosen[ScoredBy.TASK, 900]


def test_settings_are_read_as_an_operator_says_them() -> None:
    said = {"strategy": "latency-first", "threshold": "0.5", "learn": "false", "score": "task"}
    scheduler = ParSyncScheduler.configured(said)

    assert (Strategy.LATENCY, 0.5) == (scheduler.settings.strategy, scheduler.settings.threshold)
    assert ScoredBy.TASK is scheduler.settings.score
    assert not scheduler.learns_from_refusals
    assert Settings() == ParSyncScheduler.configured({}).settings


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"stratgy": "quality-first"}, "did you mean 'strategy'"),
        ({"strategy": "quality"}, "'quality' will not do"),
        ({"threshold": "0"}, "'0' will not do: Input should be greater than 0"),
        ({"threshold": "nan"}, "'nan' will not do"),
        ({"hysteresis": "1"}, "'1' will not do"),
        ({"seed": "-1"}, "'-1' will not do"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(said: dict[str, str], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        ParSyncScheduler.configured(said)
