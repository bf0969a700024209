"""The wire form keeps all of a job, and says so when it is not one."""

import json
from dataclasses import replace

import pytest

from omega.errors import BadInput
from omega.model.elastic import Phase, Workers
from omega.model.jobs import Constraint, JobSpec, Operator, Preference, StepWork, TaskGroup
from omega.model.wire import spec_from_wire, spec_to_wire

FULL = JobSpec(
    name="train",
    scheduler="ml-gpu",
    tenant="vision",
    precedence=-3,
    minimum=2,
    groups=(
        TaskGroup(
            tasks=2,
            cpu_milli=500,
            memory_mib=1_024,
            disk_mib=7,
            gpus=1,
            gpu_slices=250,
            duration_ms=60_000,
            constraints=(
                Constraint("gpu_model", Operator.IN, ("A100", "H100")),
                Constraint("ssd", Operator.EXISTS),
            ),
            spread_over="rack",
            different_machines=True,
            preferences=(Preference(Constraint("ssd", Operator.EXISTS), 5),),
            patience_ms=60_000,
        ),
        TaskGroup(tasks=1),
    ),
    preemptible=False,
)


ELASTIC = JobSpec(
    name="index",
    scheduler="elastic",
    groups=(TaskGroup(tasks=11, cpu_milli=1_000),),
    workers=Workers(1_000, (Phase("map", 50, 1_000), Phase("reduce", 5, 2_000, after="map"))),
)


@pytest.mark.parametrize("spec", [ELASTIC, replace(ELASTIC, workers=Workers(11))])
def test_an_elastic_job_comes_back_as_it_was(spec: JobSpec) -> None:
    assert spec == spec_from_wire(json.loads(json.dumps(spec_to_wire(spec))))


@pytest.mark.parametrize(
    "workers",
    [
        7,
        {},
        {"at_most": 11},
        {"at_most": 10, "phases": []},
        {"at_most": 11, "phases": [7]},
        {
            "at_most": 11,
            "phases": [{"name": "a", "activities": 0, "duration_ms": 1, "after": None}],
        },
        {"at_most": 11, "phases": [{"name": "a", "activities": 1, "duration_ms": 1, "after": "b"}]},
        {"at_most": 11, "phases": [{"name": "a", "activities": 1, "duration_ms": 1, "after": "a"}]},
    ],
)
def test_workers_that_no_job_has_are_refused(workers: object) -> None:
    with pytest.raises(BadInput):
        spec_from_wire({**spec_to_wire(ELASTIC), "workers": workers})


def test_a_job_comes_back_from_json_as_it_was() -> None:
    assert FULL == spec_from_wire(json.loads(json.dumps(spec_to_wire(FULL))))


def test_every_key_is_there_even_when_nothing_was_said() -> None:
    bare = spec_to_wire(JobSpec(name="bare", scheduler="batch", groups=(TaskGroup(tasks=1),)))

    assert {
        "name": "bare",
        "scheduler": "batch",
        "tenant": "default",
        "precedence": 0,
        "minimum": 0,
        "work": None,
        "preemptible": True,
        "workers": None,
        "groups": [
            {
                "tasks": 1,
                "cpu_milli": 0,
                "memory_mib": 0,
                "disk_mib": 0,
                "gpus": 0,
                "gpu_slices": 1_000,
                "duration_ms": None,
                "constraints": [],
                "spread_over": None,
                "different_machines": False,
                "program": None,
            }
        ],
    } == bare


def test_a_job_of_an_earlier_version_is_preemptible() -> None:
    wire = spec_to_wire(FULL)
    del wire["preemptible"]

    assert spec_from_wire(wire).preemptible


@pytest.mark.parametrize("value", [None, 1, "yes", []])
def test_what_is_neither_true_nor_false_is_refused(value: object) -> None:
    with pytest.raises(BadInput, match="neither true nor false"):
        spec_from_wire({**spec_to_wire(FULL), "preemptible": value})


@pytest.mark.parametrize("key", ["name", "groups", "minimum"])
def test_a_missing_key_is_named(key: str) -> None:
    wire = spec_to_wire(FULL)
    del wire[key]

    with pytest.raises(BadInput, match=key):
        spec_from_wire(wire)


def test_work_in_steps_comes_back_and_is_none_where_nothing_was_written() -> None:
    group = TaskGroup(tasks=2, gpus=4)
    work = StepWork("ResNet-18 (batch size 64)", 120_000, weight=3)
    spec = JobSpec(name="train", scheduler="ml-gpu", groups=(group,), work=work)
    wire = spec_to_wire(spec)

    assert {"kind": "ResNet-18 (batch size 64)", "steps": 120_000, "weight": 3} == wire["work"]
    assert spec == spec_from_wire(json.loads(json.dumps(wire)))
    # Jobs of earlier versions have no weight.
    wire["work"] = {"kind": "ResNet-18 (batch size 64)", "steps": 120_000}
    assert replace(spec, work=replace(work, weight=1)) == spec_from_wire(wire)
    del wire["work"]
    assert spec_from_wire(wire).work is None


@pytest.mark.parametrize(
    "work",
    [{"model": "ResNet-18"}, {"model": 18, "steps": 1}, {"model": "a", "steps": 0}, {}, 7, "steps"],
)
def test_work_in_another_form_is_refused(work: object) -> None:
    bare = JobSpec(name="bare", scheduler="batch", groups=(TaskGroup(tasks=1),))

    with pytest.raises(BadInput, match="not the wire form"):
        spec_from_wire({**spec_to_wire(bare), "work": work})


def test_work_in_steps_beside_a_duration_is_refused() -> None:
    with pytest.raises(BadInput, match="steps end a job in steps"):
        spec_from_wire({**spec_to_wire(FULL), "work": {"kind": "a", "steps": 1}})


def test_an_unknown_operator_is_named() -> None:
    text = json.dumps(spec_to_wire(FULL)).replace('"exists"', '"nearby"')

    with pytest.raises(BadInput, match="nearby"):
        spec_from_wire(json.loads(text))


def test_a_gang_larger_than_its_job_is_refused() -> None:
    with pytest.raises(BadInput, match="not the wire form"):
        spec_from_wire({**spec_to_wire(FULL), "minimum": 4})
