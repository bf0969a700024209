"""Job specs in YAML: what they mean, and what is said of those that are wrong."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import omega.workload.spec as module
from omega.errors import BadInput
from omega.limits import LIMITS, Limits
from omega.model.jobs import Constraint, JobSpec, Operator, Preference, StepWork, TaskGroup
from omega.model.wire import spec_to_wire
from omega.workload.spec import parse_specs, read_specs
from omega.workload.yaml_events import LOADERS, Loader
from omega.workload.yaml_lines import documents

FULL = """\
name: train
scheduler: ml-gpu
tenant: vision
precedence: 7
minimum: all
groups:
  - tasks: 4
    cpu: 500m
    memory: 1.5GiB
    disk: 10GiB
    gpus: 0.5
    duration: 10m
    spread_over: rack
    different_machines: true
    constraints:
      - zone in a|b
      - ssd exists
      - {attribute: platform, operator: not_in, values: [P0]}
  - cpu: 2
"""
SMALL = "name: a\nscheduler: batch\ngroups: [{cpu: 1}]\n"


@pytest.fixture(autouse=True, params=LOADERS)
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read with each of the loaders."""
    loader: Callable[[str], Loader] = request.param
    monkeypatch.setattr(module, "documents", partial(documents, loader=loader))


def test_a_full_spec_says_all_there_is_to_a_job() -> None:
    assert [
        JobSpec(
            name="train",
            scheduler="ml-gpu",
            tenant="vision",
            precedence=7,
            minimum=5,
            groups=(
                TaskGroup(
                    tasks=4,
                    cpu_milli=500,
                    memory_mib=1_536,
                    disk_mib=10_240,
                    gpus=1,
                    gpu_slices=500,
                    duration_ms=600_000,
                    spread_over="rack",
                    different_machines=True,
                    constraints=(
                        Constraint("zone", Operator.IN, ("a", "b")),
                        Constraint("ssd", Operator.EXISTS),
                        Constraint("platform", Operator.NOT_IN, ("P0",)),
                    ),
                ),
                TaskGroup(tasks=1, cpu_milli=2_000),
            ),
        )
    ] == parse_specs(FULL, "jobs.yaml")


def test_preferences_are_constraints_with_weights() -> None:
    said = "prefer: [zone in a|b|a, {attribute: ssd, operator: exists, weight: 5}], patience: 10m"

    (spec,) = parse_specs(SMALL.replace("cpu: 1", f"cpu: 1, {said}"), "jobs.yaml")

    assert (
        Preference(Constraint("zone", Operator.IN, ("a", "b"))),
        Preference(Constraint("ssd", Operator.EXISTS), 5),
    ) == spec.groups[0].preferences
    assert 600_000 == spec.groups[0].patience_ms


@pytest.mark.parametrize(
    ("said", "field", "sentence"),
    [
        ("prefer: zone", "groups[0].prefer", "'zone' is not a list"),
        ("prefer: [zone]", "groups[0].prefer[0]", "'zone' is not a constraint"),
        (
            "prefer: [{attribute: a, operator: exists, weight: 0}]",
            "groups[0].prefer[0].weight",
            "0",
        ),
        (
            "prefer: [{attribute: a, operator: exists, weight: 101}]",
            "groups[0].prefer[0].weight",
            "100",
        ),
        (
            "prefer: [{attribute: a, operator: exists, wieght: 1}]",
            "groups[0].prefer[0].wieght",
            "weight",
        ),
        ("prefer: [a exists], patience: soon", "groups[0].patience", "'soon' is not a duration"),
        ("patience: 5m", "groups[0].patience", "it prefers nothing to wait for"),
    ],
)
def test_what_is_wrong_with_preferences_is_told(said: str, field: str, sentence: str) -> None:
    text = SMALL.replace("cpu: 1", f"cpu: 1, {said}")

    with pytest.raises(BadInput) as refused:
        parse_specs(text, "jobs.yaml")

    assert (3, field) == (refused.value.line, refused.value.field)
    assert sentence in str(refused.value)


def test_work_in_steps_is_a_kind_and_their_number() -> None:
    said = "work: {kind: ResNet-18 (batch size 64), steps: 120000}\n"

    (spec,) = parse_specs(SMALL + said, "jobs.yaml")

    assert StepWork("ResNet-18 (batch size 64)", 120_000) == spec.work
    (weighty,) = parse_specs(SMALL + said.replace("}", ", weight: 5}"), "jobs.yaml")
    assert StepWork("ResNet-18 (batch size 64)", 120_000, weight=5) == weighty.work


@pytest.mark.parametrize(
    ("work", "line", "field", "said"),
    [
        ("{kind: a}", 4, "work.steps", "this field must be given"),
        ("{knd: a, steps: 1}", 4, "work.knd", "did you mean 'kind'? (known: kind, steps, weight)"),
        ("{kind: a, steps: 1, weight: 0}", 4, "work.weight", "0 is less than 1"),
        ("{kind: a, steps: 1, weight: 1001}", 4, "work.weight", "more than 1000"),
        ("{kind: a, steps: 1, weight: 1.5}", 4, "work.weight", "1.5 is not a whole number"),
        ("{kind: a, steps: 0}", 4, "work.steps", "0 is less than 1"),
        ("{kind: a, steps: 1000000000000001}", 4, "work.steps", "more than 1000000000000000"),
        ("{kind: a, steps: few}", 4, "work.steps", "'few' is not a whole number"),
        ("{kind: 7, steps: 1}", 4, "work.kind", "7 is not text"),
        ("7", 4, "work", "7 is not a mapping of fields"),
        ("{kind: a, steps: 1}", 3, "groups[0].duration", "ends after the last one; leave this out"),
    ],
)
def test_what_is_wrong_with_work_in_steps_is_told(
    work: str, line: int, field: str, said: str
) -> None:
    text = SMALL.replace("cpu: 1", "cpu: 1, duration: 5m") + f"work: {work}\n"

    with pytest.raises(BadInput) as caught:
        parse_specs(text, "jobs.yaml")

    assert (line, field) == (caught.value.line, caught.value.field)
    assert said in caught.value.sentence


def test_what_is_not_said_has_a_default() -> None:
    (spec,) = parse_specs(SMALL, "jobs.yaml")

    assert ("default", 0, 0) == (spec.tenant, spec.precedence, spec.minimum)
    assert (TaskGroup(tasks=1, cpu_milli=1_000),) == spec.groups


@pytest.mark.parametrize(
    "text",
    [
        f"---\n{SMALL}---\n{SMALL}---\n",
        "- {name: a, scheduler: b, groups: [{cpu: 1}]}\n" * 2,
    ],
    ids=["documents", "list"],
)
def test_a_file_may_hold_several_jobs(text: str) -> None:
    assert 2 == len(parse_specs(text, "jobs.yaml"))


@pytest.mark.parametrize(
    ("text", "operator", "values"),
    [
        ("zone in a|b", Operator.IN, ("a", "b")),
        ("zone in a | b", Operator.IN, ("a", "b")),
        ("zone in a|a", Operator.IN, ("a",)),
        ("zone in rack 7", Operator.IN, ("rack 7",)),
        ("zone not in c", Operator.NOT_IN, ("c",)),
        ("zone not_in c", Operator.NOT_IN, ("c",)),
        ("zone exists", Operator.EXISTS, ()),
        ("zone missing", Operator.MISSING, ()),
    ],
)
def test_constraints_are_short_sentences(
    text: str, operator: Operator, values: tuple[str, ...]
) -> None:
    spec = SMALL.replace("{cpu: 1}", f"{{cpu: 1, constraints: ['{text}']}}")

    (group,) = parse_specs(spec, "jobs.yaml")[0].groups

    assert (Constraint("zone", operator, values),) == group.constraints


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "said"),
    [
        ("1.5GiB", "4GB?", 9, "groups[0].memory", "'4GB?' is not an amount of memory; write"),
        ("500m", "", 8, "groups[0].cpu", "it has no value"),
        ("gpus: 0.5", "gpus: 1.5", 11, "groups[0].gpus", "only a single GPU can be shared"),
        ("10m", "soon", 12, "groups[0].duration", "'soon' is not a duration"),
        ("memory:", "memry:", 9, "groups[0].memry", "did you mean 'memory'?"),
        ("scheduler:", "sheduler:", 2, "sheduler", "did you mean 'scheduler'?"),
        ("attribute:", "attr:", 18, "groups[0].constraints[2].attr", "did you mean 'attribute'?"),
        ("tasks: 4", "tasks: four", 7, "groups[0].tasks", "'four' is not a whole number"),
        ("tasks: 4", "tasks: 0", 7, "groups[0].tasks", "0 is less than 1"),
        ("tasks: 4", "tasks: 100001", 7, "groups[0].tasks", "100001 is more than 100000"),
        ("tasks: 4", "tasks: 100000", 6, "groups", "the job has 100001 tasks, more than 100000"),
        ("minimum: all", "minimum: 6", 5, "minimum", "6 is more than the job's 5 tasks"),
        ("minimum: all", "minimum: most", 5, "minimum", "'most' is not a number of tasks"),
        ("minimum: all", "minimum: -1", 5, "minimum", "-1 is not a number of tasks"),
        ("precedence: 7", "precedence: 9999999999", 4, "precedence", "is more than 2147483647"),
        ("name: train", "name: 3", 1, "name", "3 is not text; put it in quotes"),
        ("name: train", "name: ''", 1, "name", "it must not be empty"),
        ("name: train", f"name: {'x' * 201}", 1, "name", "longer than 200 characters"),
        ("name: train", 'name: "a\\0"', 1, "name", "characters that cannot be printed"),
        ("name: train", "name: a\u3164b", 1, "name", "characters that cannot be printed"),
        ("tenant: vision", "tenant: \u115f", 3, "tenant", "characters that cannot be printed"),
        ("name: train\n", "", 1, "name", "this field must be given"),
        ("true", "maybe", 14, "groups[0].different_machines", "'maybe' is not true or false"),
        ("ssd exists", "ssd exist", 17, "groups[0].constraints[1]", "is not a constraint; write"),
        ("ssd exists", "ssd exists x", 17, "groups[0].constraints[1]", "exists and missing none"),
        ("zone in a|b", "zone in", 16, "groups[0].constraints[0]", "in and not_in take values"),
        ("zone in a|b", "zone in a||b", 16, "groups[0].constraints[0].values[1]", "not be empty"),
        ("not_in", "near", 18, "groups[0].constraints[2].operator", "'near' is not one of 'in'"),
        ("[P0]", "P0", 18, "groups[0].constraints[2].values", "'P0' is not a list"),
        ("- cpu: 2", "- tasks: 2", 19, "groups[1]", "its tasks ask for nothing"),
        ("- cpu: 2", "- 2", 19, "groups[1]", "2 is not a mapping of fields"),
    ],
)
def test_what_is_wrong_is_told_with_file_line_and_field(
    old: str, new: str, line: int, field: str, said: str
) -> None:
    assert old in FULL

    with pytest.raises(BadInput) as caught:
        parse_specs(FULL.replace(old, new), "jobs.yaml")

    assert ("jobs.yaml", line, field) == (
        caught.value.file,
        caught.value.line,
        caught.value.field,
    )
    assert said in caught.value.sentence


def test_of_several_things_wrong_the_first_is_told() -> None:
    wrong = FULL.replace("1.5GiB", "much").replace("500m", "some").replace("10m", "soon")

    with pytest.raises(BadInput, match="line 8"):
        parse_specs(wrong, "jobs.yaml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no job in it"),
        ("---\n---\n", "there is no job in it"),
        ("[]", "there is no job in it"),
        ("hello", "line 1: 'hello' is not a mapping of fields"),
        ("- hello", "line 1: 'hello' is not a mapping of fields"),
        ("name: a\nscheduler: b\ngroups: []", "line 3, field groups: it must hold at least 1"),
        ("name: a\nscheduler: b\ngroups: 7", "line 3, field groups: 7 is not a list"),
        (b"name: \xff", "line 1: this is not UTF-8"),
    ],
)
def test_a_file_without_a_job_says_so(text: str | bytes, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        parse_specs(text, "jobs.yaml")


def test_too_many_groups_constraints_or_jobs_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    many_groups = SMALL.replace("[{cpu: 1}]", str([{"cpu": 1}] * 65))
    many_constraints = SMALL.replace("cpu: 1", f"cpu: 1, constraints: {['a exists'] * 33}")

    with pytest.raises(BadInput, match="field groups: it must hold no more than 64"):
        parse_specs(many_groups, "jobs.yaml")
    with pytest.raises(BadInput, match=r"groups\[0\]\.constraints: it must hold no more than 32"):
        parse_specs(many_constraints, "jobs.yaml")
    monkeypatch.setattr(module, "LIMITS", Limits(jobs_per_submission_max=1))
    with pytest.raises(BadInput, match="line 5: there are 2 jobs in it, more than 1"):
        parse_specs(f"{SMALL}---\n{SMALL}", "jobs.yaml")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- 1\n" * 10_001, "line 10001: there are 10001 jobs in it, more than 10000"),
        ("---\n" * 10_001, "line 10001: there are more than 10,000 documents in it; split it"),
        (f"groups: {[1] * 65}", "line 1, field groups: it must hold no more than 64"),
        (f"groups: [{{constraints: {[1] * 33}}}]", "constraints: it must hold no more than 32"),
        (
            f"groups: [{{constraints: [{{values: {[1] * 1_001}}}]}}]",
            "field groups[0].constraints[0].values: it must hold no more than 1000",
        ),
        (
            "\n".join(f"a{n}: 1" for n in range(21)),
            "line 1: it has 21 fields; there are only name, scheduler, tenant, precedence, minimum,"
            " groups, work, preemptible, workers, phases",
        ),
        (
            f"groups: [{{constraints: [{json.dumps(dict.fromkeys('abcdefg', 1))}]}}]",
            "field groups[0].constraints[0]: it has 7 fields; there are only attribute, operator,",
        ),
    ],
)
def test_of_too_many_none_is_judged(text: str, said: str) -> None:
    """What is wrong with each of them would be one more error to hold and to compare."""
    with pytest.raises(BadInput) as refusal:
        parse_specs(text, "jobs.yaml")

    assert said in str(refusal.value)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("zone in a|b", "zone in {}", "groups[0].constraints[0]"),
        ("[P0]", "[{}]", "groups[0].constraints[2].values"),
    ],
)
def test_a_constraint_has_as_many_values_as_the_limit_allows(
    old: str, new: str, field: str
) -> None:
    most = LIMITS.values_per_constraint_max
    separator = ", " if "[" in new else "|"

    def spec(values: int) -> str:
        return FULL.replace(old, new.format(separator.join(f"v{n}" for n in range(values))))

    ((group, _),) = (one.groups for one in parse_specs(spec(most), "jobs.yaml"))
    assert most in [len(constraint.values) for constraint in group.constraints]
    with pytest.raises(BadInput, match=f"it must hold no more than {most}") as refusal:
        parse_specs(spec(most + 1), "jobs.yaml")
    assert ("jobs.yaml", 16 if "|" in old else 18, field) == (
        refusal.value.file,
        refusal.value.line,
        refusal.value.field,
    )


def test_a_job_is_as_long_as_the_store_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = FULL.replace("zone in a|b", "zone in a|é|\N{GRINNING FACE}")
    (spec,) = parse_specs(text, "jobs.yaml")
    size = len(json.dumps(spec_to_wire(spec), ensure_ascii=False).encode())

    monkeypatch.setattr(module, "LIMITS", Limits(wire_bytes_small=1, wire_bytes_max=size))
    assert [spec] == parse_specs(text, "jobs.yaml")
    monkeypatch.setattr(module, "LIMITS", Limits(wire_bytes_small=1, wire_bytes_max=size - 1))
    with pytest.raises(BadInput) as refusal:
        parse_specs(f"{SMALL}---\n{text}", "jobs.yaml")
    assert f"jobs.yaml, line 5: the job is {size:,} bytes long as it is stored" in str(
        refusal.value
    )


def test_a_job_that_no_store_takes_is_refused() -> None:
    values = "|".join(f"{n:0200}" for n in range(700))
    text = SMALL.replace("cpu: 1", f"cpu: 1, constraints: [a in {values}]")

    with pytest.raises(BadInput, match=r"line 1: the job is .* bytes long .*more than 131,072"):
        parse_specs(text, "jobs.yaml")


def test_a_file_is_read_from_its_path(tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + SMALL.encode())

    assert ["a"] == [spec.name for spec in read_specs(path)]


def test_a_file_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No such file"):
        read_specs(tmp_path / "none.yaml")


def test_a_file_without_an_end_is_refused() -> None:
    with pytest.raises(BadInput, match="longer than"):
        read_specs(Path("/dev/zero"))
