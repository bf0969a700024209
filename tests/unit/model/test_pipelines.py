"""Pipelines as they are submitted."""

from dataclasses import replace

import pytest

from omega.limits import LIMITS
from omega.model.pipelines import PipelineSpec, PipelineStage, TokenRate, pipeline_to_wire
from omega.model.wire import spec_to_wire
from omega.testing.builders import a_spec

FIRST = PipelineStage("first", a_spec(), units=7)
LAST = PipelineStage("last", a_spec(2), ("first",))
CHAIN = PipelineSpec(name="chat", within_ms=5, stages=(FIRST, LAST))


def test_the_wire_form_names_stages_by_their_places() -> None:
    wire = pipeline_to_wire(replace(CHAIN, tokens=TokenRate(3, 10)))

    assert {
        "name": "chat",
        "tenant": "default",
        "within_ms": 5,
        "tokens": {"rate": 3, "interval_ms": 10},
        "stages": [
            {"name": "first", "after": [], "units": 7, "job": spec_to_wire(FIRST.job)},
            {"name": "last", "after": [0], "units": 1, "job": spec_to_wire(LAST.job)},
        ],
    } == wire
    assert pipeline_to_wire(CHAIN)["tokens"] is None


@pytest.mark.parametrize(
    "stages",
    [
        (),
        (LAST, FIRST),
        (FIRST, FIRST),
        (FIRST, replace(LAST, after=("first", "first"))),
        (replace(FIRST, after=("first",)),),
        (replace(FIRST, units=0),),
        (replace(FIRST, job=a_spec(tenant="another")),),
    ],
)
def test_stages_that_no_store_takes_are_a_mistake(stages: tuple[PipelineStage, ...]) -> None:
    with pytest.raises(AssertionError):
        replace(CHAIN, stages=stages)


@pytest.mark.parametrize("within_ms", [0, LIMITS.duration_ms_max + 1])
def test_no_time_and_too_much_time_are_a_mistake(within_ms: int) -> None:
    with pytest.raises(AssertionError):
        replace(CHAIN, within_ms=within_ms)


@pytest.mark.parametrize(("rate", "interval_ms"), [(0, 1), (1, 0)])
def test_tokens_have_a_rate_and_an_interval(rate: int, interval_ms: int) -> None:
    with pytest.raises(AssertionError):
        TokenRate(rate, interval_ms)
