"""Pipelines in YAML: what they mean, and what is said of those that are wrong."""

import pytest

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.model.pipelines import TokenRate
from omega.workload.pipeline_spec import parse_pipelines
from omega.workload.spec import parse_specs

CHAT = """\
name: chat
scheduler: batch
pipeline:
  within: 30s
  stages:
    - name: prefill
      input: 1469
      groups: [{cpu: 1}]
    - name: decode
      after: prefill
      minimum: all
      groups: [{cpu: 2, tasks: 3}]
"""


def test_a_pipeline_has_a_job_for_each_stage() -> None:
    (chat,) = parse_pipelines(CHAT, "chat.yaml")
    prefill, decode = chat.stages

    assert ("chat", "default", 30_000, None) == (
        chat.name,
        chat.tenant,
        chat.within_ms,
        chat.tokens,
    )
    assert ("prefill", (), 1_469) == (prefill.name, prefill.after, prefill.units)
    assert ("decode", ("prefill",), 1) == (decode.name, decode.after, decode.units)
    assert ("chat.decode", "batch", 3) == (
        decode.job.name,
        decode.job.scheduler,
        decode.job.minimum,
    )


def test_stages_may_stand_in_any_order_and_come_after_several() -> None:
    text = """\
- name: d
  tenant: ann
  precedence: 3
  pipeline:
    within: 1m
    tokens: {rate: 5, every: 10s}
    stages:
      - {name: join, after: [left, right], scheduler: batch, groups: [{cpu: 1}]}
      - {name: left, after: read, scheduler: batch, groups: [{cpu: 1}]}
      - {name: right, after: [read, read], scheduler: service, groups: [{cpu: 1}]}
      - {name: read, scheduler: batch, groups: [{cpu: 1}]}
"""
    (diamond,) = parse_pipelines(text, "d.yaml")
    stages = {stage.name: stage for stage in diamond.stages}

    assert ("read", "join") == (diamond.stages[0].name, diamond.stages[-1].name)
    assert (("left", "right"), ("read",)) == (stages["join"].after, stages["right"].after)
    assert TokenRate(5, 10_000) == diamond.tokens
    assert {("ann", 3)} == {(it.job.tenant, it.job.precedence) for it in diamond.stages}
    assert "service" == stages["right"].job.scheduler


@pytest.mark.parametrize(
    ("right", "wrong", "line", "field", "sentence"),
    [
        ("30s", "0", 4, "pipeline.within", "0 is less than 1"),
        ("30s", "soon", 4, "pipeline.within", "soon"),
        (
            "after: prefill",
            "after: [prefil]",
            10,
            "pipeline.stages[1].after",
            "stage 'decode' comes after 'prefil', which is no stage of its pipeline; did you mean"
            " 'prefill'?",
        ),
        ("after: prefill", "after: decode", 10, "pipeline.stages[1].after", "comes after itself"),
        (
            "input: 1469",
            "after: decode",
            10,
            "pipeline.stages[1].after",
            "stage 'prefill' comes after itself, by way of 'decode'",
        ),
        ("name: decode", "name: prefill", 9, "pipeline.stages[1].name", "is there twice"),
        ("input: 1469", "input: 0", 7, "pipeline.stages[0].input", "0 is less than 1"),
        ("input:", "inptu:", 7, "pipeline.stages[0].inptu", "did you mean 'input'?"),
        ("[{cpu: 1}]", "[]", 8, "pipeline.stages[0].groups", "at least 1"),
        ("{cpu: 1}", "{tasks: 1}", 8, "pipeline.stages[0].groups[0]", "ask for nothing"),
        ("minimum: all", "minimum: 4", 11, "pipeline.stages[1].minimum", "more than the job's"),
        ("scheduler: batch\n", "", 5, "pipeline.stages[0].scheduler", "for the whole pipeline"),
        ("name: chat", "name: " + 195 * "x", 6, "pipeline.stages[0].name", "is longer than 200"),
        ("  within: 30s", "  within: 30s\n  tokens: {rate: 0, every: 1s}", 5, None, "less than 1"),
        (CHAT[CHAT.index("pipeline") :], "groups: [{cpu: 1}]", 3, "groups", "type omega submit"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_field(
    right: str, wrong: str, line: int, field: str | None, sentence: str
) -> None:
    assert right in CHAT
    with pytest.raises(BadInput) as refused:
        parse_pipelines(CHAT.replace(right, wrong, 1), "chat.yaml")

    assert ("chat.yaml", line) == (refused.value.file, refused.value.line)
    assert field in (None, refused.value.field)
    assert sentence in refused.value.sentence


def test_files_without_a_pipeline_and_with_too_many_are_refused() -> None:
    with pytest.raises(BadInput, match="no pipeline in it"):
        parse_pipelines("", "p.yaml")
    with pytest.raises(BadInput, match="split it"):
        parse_pipelines("- {}\n" * (LIMITS.pipelines_per_submission_max + 1), "p.yaml")


def test_who_submits_a_pipeline_as_a_job_is_told_the_verb() -> None:
    with pytest.raises(BadInput, match="omega pipeline submit"):
        parse_specs(CHAT, "chat.yaml")
