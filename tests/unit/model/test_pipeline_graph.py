"""The graph of a pipeline."""

import re

import pytest

from omega.errors import BadInput
from omega.model.pipeline_graph import PipelineGraph, Stage

DIAMOND = PipelineGraph(
    [
        Stage("join", ("fast", "slow")),
        Stage("slow", ("read",)),
        Stage("fast", ("read",)),
        Stage("read"),
    ]
)
COST_MS = {"read": 10, "fast": 20, "slow": 300, "join": 4}


def test_the_critical_path_of_a_diamond_is_the_longer_branch_not_the_sum() -> None:
    assert {"read": 304, "fast": 4, "slow": 4, "join": 0} == DIAMOND.below_ms(COST_MS)


def test_stages_are_in_an_order_in_which_they_can_run() -> None:
    assert ("read", "join") == (DIAMOND.order[0], DIAMOND.order[-1])
    assert () == PipelineGraph([]).order


@pytest.mark.parametrize(
    ("stages", "field", "sentence"),
    [
        ([Stage("a", ("a",))], "after", "stage 'a' comes after itself"),
        (
            [Stage("a", ("b",)), Stage("b", ("a",))],
            "after",
            "stage 'a' comes after itself, by way of 'b'",
        ),
        (
            [Stage("decode", ("prefil",)), Stage("prefill")],
            "after",
            "stage 'decode' comes after 'prefil', which is no stage of its pipeline; did you mean"
            " 'prefill'?",
        ),
        ([Stage("a"), Stage("a")], "name", "stage 'a' is there twice"),
    ],
)
def test_stages_that_cannot_run_are_refused(stages: list[Stage], field: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=re.escape(sentence)) as refused:
        PipelineGraph(stages)

    assert field == refused.value.field
