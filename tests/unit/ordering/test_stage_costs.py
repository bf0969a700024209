"""How long stages are expected to take."""

import pytest

from omega.limits import LIMITS
from omega.model.pipeline_graph import PipelineGraph, Stage
from omega.ordering.stage_costs import PICOS_MAX, PICOS_PER_MS, learnt_picos, stage_costs_ms

DIAMOND = PipelineGraph(
    [Stage("read"), Stage("fast", ("read",)), Stage("slow", ("read",)), Stage("join", ("fast",))]
)
UNITS = {"read": 1, "fast": 10, "slow": 2_000, "join": 3}


def test_the_first_cost_is_what_was_measured_and_later_ones_move_it_by_an_eighth() -> None:
    first = learnt_picos(None, 1_000, 3)

    assert 333_333_333_333 == first
    assert (7 * first + 2_000_000_000_000) // 8 == learnt_picos(first, 2_000, 1)


@pytest.mark.parametrize(("took_ms", "units"), [(500_000, 10**9), (8_000, 10**6), (5, 10**12)])
def test_inputs_may_be_counted_in_bytes(took_ms: int, units: int) -> None:
    only = PipelineGraph([Stage("only")])
    known = learnt_picos(None, 1, units)
    for _ in range(60):
        known = learnt_picos(known, took_ms, units)
    cost_ms = stage_costs_ms(only, {"only": units}, {"only": known}, 1)["only"]

    assert took_ms == pytest.approx(cost_ms, rel=0.01, abs=7 * units // PICOS_PER_MS + 1)


@pytest.mark.parametrize(("took_ms", "expected"), [(-5, 0), (0, 0), (2**62, PICOS_MAX)])
def test_what_clocks_say_stays_within_bounds(took_ms: int, expected: int) -> None:
    assert expected == learnt_picos(None, took_ms, 1)


def test_a_cost_is_that_of_a_unit_times_the_units() -> None:
    costs = stage_costs_ms(DIAMOND, UNITS, dict.fromkeys(UNITS, 1_500 * 10**6), 1)

    assert {"read": 1, "fast": 15, "slow": 3_000, "join": 4} == costs


def test_a_stage_that_never_ran_has_the_mean_of_its_template_and_never_nothing() -> None:
    costs = stage_costs_ms(DIAMOND, UNITS, {"read": 4_000 * 10**6, "fast": 1_000 * 10**6}, 1)

    assert {"read": 4, "fast": 10, "slow": 5_000, "join": 7} == costs


def test_without_any_cost_the_longest_path_just_keeps_its_target() -> None:
    costs = stage_costs_ms(DIAMOND, UNITS, {}, 301)

    assert dict.fromkeys(UNITS, 100) == costs
    assert 200 == DIAMOND.below_ms(costs)["read"]


def test_no_cost_is_longer_than_a_duration_may_be() -> None:
    costs = stage_costs_ms(DIAMOND, UNITS, {"slow": PICOS_MAX}, 1)

    assert LIMITS.duration_ms_max == costs["slow"]
