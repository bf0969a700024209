"""Keys of stages on random pipelines: paths one by one, and the orders that are the same."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omega.errors import BadInput
from omega.model.lanes import QueueOrder
from omega.model.pipeline_graph import PipelineGraph, Stage
from omega.ordering.deadlines import LAST, stage_key, start_deadlines
from tests.fixtures.doses import examples

TIMED = (QueueOrder.DEADLINE, QueueOrder.EDF)
COSTS = st.integers(0, 100)


@st.composite
def pipelines(draw: st.DrawFn) -> tuple[list[Stage], dict[str, int]]:
    names = "abcdefg"[: draw(st.integers(1, 7))]
    stages = [
        Stage(name, tuple(draw(st.sets(st.sampled_from(names[:at]))) if at else ()))
        for at, name in enumerate(names)
    ]
    return draw(st.permutations(stages)), {name: draw(COSTS) for name in names}


def longest_below(stages: Sequence[Stage], cost_ms: Mapping[str, int], name: str) -> int:
    """Return the longest of all paths below a stage, walked one by one."""
    below = [stage.name for stage in stages if name in stage.after]
    return max(
        (cost_ms[other] + longest_below(stages, cost_ms, other) for other in below), default=0
    )


@given(pipelines())
@examples(500)
def test_the_critical_path_is_the_longest_of_all_paths(
    pipeline: tuple[list[Stage], dict[str, int]],
) -> None:
    stages, cost_ms = pipeline
    below = PipelineGraph(stages).below_ms(cost_ms)

    assert {each.name: longest_below(stages, cost_ms, each.name) for each in stages} == below


@given(pipelines(), st.integers(0, 10_000))
@examples(300)
def test_a_stage_that_starts_at_its_deadline_leaves_the_next_time_to_keep_theirs(
    pipeline: tuple[list[Stage], dict[str, int]], target_ms: int
) -> None:
    stages, cost_ms = pipeline
    keys = start_deadlines(PipelineGraph(stages), cost_ms, target_ms)

    for stage in stages:
        assert keys[stage.name] + cost_ms[stage.name] <= target_ms
        assert all(keys[prior] + cost_ms[prior] <= keys[stage.name] for prior in stage.after)


def ordered(policy: QueueOrder, targets_ms: Sequence[int], costs_ms: Sequence[int]) -> list[int]:
    """Return the order of pipelines of one stage each, in which equal keys go by age."""
    alone = PipelineGraph([Stage("only")])
    keys = []
    for target_ms, cost_ms in zip(targets_ms, costs_ms, strict=True):
        start_ms = start_deadlines(alone, {"only": cost_ms}, target_ms)["only"]
        keys.append(stage_key(policy, start_ms=start_ms, cost_ms=cost_ms, stamp_ms=LAST))
    return sorted(range(len(keys)), key=lambda at: (keys[at], at))


@given(st.lists(st.integers(0, 1_000)), COSTS)
@examples(300)
def test_with_one_stage_and_equal_costs_least_laxity_is_earliest_deadline(
    targets_ms: list[int], cost_ms: int
) -> None:
    costs_ms = [cost_ms] * len(targets_ms)
    llf, edf = (ordered(policy, targets_ms, costs_ms) for policy in TIMED)

    assert llf == edf


@given(st.lists(st.integers(0, 1_000)), COSTS, st.integers(1, 1_000))
@examples(300)
def test_with_all_targets_and_costs_equal_each_policy_is_first_in_first_out(
    arrivals_ms: list[int], cost_ms: int, within_ms: int
) -> None:
    arrivals_ms = sorted(arrivals_ms)
    targets_ms = [arrival_ms + within_ms for arrival_ms in arrivals_ms]
    for policy in (*TIMED, QueueOrder.SJF):
        order = ordered(policy, targets_ms, [cost_ms] * len(targets_ms))

        assert list(range(len(arrivals_ms))) == order


@given(pipelines(), st.data())
@examples(300)
def test_a_circle_of_stages_is_refused(
    pipeline: tuple[list[Stage], dict[str, int]], data: st.DataObject
) -> None:
    """The stage that all paths begin with comes after one that it leads to, or after itself."""
    stages, _ = pipeline
    names = [stage.name for stage in stages]
    last = data.draw(st.sampled_from(names))
    first = next(iter(PipelineGraph(stages).order))
    chain = {first: (last,), last: (first,)} if first != last else {first: (first,)}
    circular = [Stage(each.name, (*each.after, *chain.get(each.name, ()))) for each in stages]

    with pytest.raises(BadInput, match="comes after itself"):
        PipelineGraph(circular)
