"""Instances as files: what is read, and what is refused in which words."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omega.errors import BadInput
from schedulers.ml_gpu.instances import read_instance

Change = Callable[[dict[str, Any]], object]


@pytest.fixture
def changed(samples: Path, tmp_path: Path) -> Callable[[Change], Path]:
    """Write the sample with a change made to it."""

    def write(change: Change) -> Path:
        document = json.loads((samples / "gavel" / "textbook.json").read_text())
        change(document)
        path = tmp_path / "changed.json"
        path.write_text(json.dumps(document))
        return path

    return write


def test_columns_become_arrays(samples: Path) -> None:
    instance = read_instance(samples / "gavel" / "textbook.json")
    problem = instance.problem()

    assert ("k80", "v100") == problem.types
    assert [[10, 40], [4, 12], [50, 100]] == problem.rate.tolist()
    assert [25, 8, 75] == problem.proportional.tolist()
    assert [0, 0, 1] == problem.entity_of.tolist()
    assert [("A", 1), ("B", 1), ("C", 1)] == instance.kinds


def test_deadlines_and_orders_of_entities_may_be_given(
    changed: Callable[[Change], Path],
) -> None:
    def change(document: dict[str, Any]) -> None:
        document["jobs"]["seconds_left"] = [100, None, 5.5]
        document["entity_policies"] = ["fifo", "fairness"]

    problem = read_instance(changed(change)).problem()

    assert problem.due_s is not None
    assert [100, np.inf, 5.5] == problem.due_s.tolist()
    assert [True, False] == problem.entity_is_fifo.tolist()


def put(*steps: Any, value: Any) -> Change:  # noqa: ANN401 - JSON
    def change(document: Any) -> None:  # noqa: ANN401
        for step in steps[:-1]:
            document = document[step]
        document[steps[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        (put("job_types", 1, "throughput", value=[-4.0, 12.0]), "job_types.1.throughput.0", "-4.0"),
        (put("job_types", 1, "throughput", value=[4.0]), "job_types.1.throughput", "1 rates for 2"),
        (put("job_types", 0, "scale_factor", value=3), "jobs.type.0", "gang of 3 is larger"),
        (put("job_types", 0, "scale_factor", value=0), "job_types.0.scale_factor", "0"),
        (put("job_types", 0, "scale_factor", value=1.5), "job_types.0.scale_factor", "1.5"),
        (put("job_types", 0, "scale_factor", value=True), "job_types.0.scale_factor", "True"),
        (put("num_workers", "k80", value="1"), "num_workers.k80", "'1'"),
        (put("job_types", 0, "throughput", value=[0, 0]), "jobs.type.0", "runs on no type"),
        (put("num_workers", "a100", value=1), "num_workers.a100", "no such type"),
        (put("num_workers", value={"k80": 1}), "num_workers", "nothing of type 'v100'"),
        (put("num_workers", value={"k80": 0, "v100": 0}), "num_workers", "no GPU"),
        (put("num_workers", "k80", value=-1), "num_workers.k80", "-1"),
        (put("worker_types", value=["k80", "k80"]), "worker_types", "twice"),
        (put("instance_costs_per_hour", "tpu", value=1), "instance_costs_per_hour.tpu", "no such"),
        (put("instance_costs_per_hour", "k80", value=0), "instance_costs_per_hour.k80", "0"),
        (put("jobs", "type", 1, value=7), "jobs.type.1", "no job type 7"),
        (put("jobs", "type", value=[]), "jobs.type", "[]"),
        (put("jobs", "weight", value=[1, 1]), "jobs.weight", "2 entries for 3 jobs"),
        (put("jobs", "weight", 0, value=0), "jobs.weight.0", "0"),
        (put("jobs", "weight", 0, value=float("nan")), "jobs.weight.0", "finite"),
        (put("jobs", "steps_remaining", 0, value=50_000), "jobs.steps_remaining.0", "more steps"),
        (put("jobs", "entity", 0, value=2), "jobs.entity.0", "no entity 2"),
        (put("jobs", "weight", 0, value=5e-324), "jobs.weight.0", "greater than"),
        (put("jobs", "total_steps", 0, value=0), "jobs.total_steps.0", "greater than 0"),
        (
            put("jobs", "seconds_since_arrival", 0, value=1e30),
            "jobs.seconds_since_arrival.0",
            "less",
        ),
        (put("job_types", 0, "throughput", 1, value=1e30), "job_types.0.throughput.1", "1e-09 to"),
        (put("entity_policies", value=["fifo"]), "entity_policies", "as many"),
        (put("entity_policies", value=["lifo", "fifo"]), "entity_policies.0", "lifo"),
        (lambda document: document.pop("jobs"), "jobs", "required"),
    ],
)
def test_what_cannot_be_solved_is_refused_in_a_sentence(
    changed: Callable[[Change], Path], change: Change, field: str, words: str
) -> None:
    with pytest.raises(BadInput) as refused:
        read_instance(changed(change))

    assert field == refused.value.field
    assert words in refused.value.sentence
    assert 1 == len(str(refused.value).splitlines())


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "\x00", "[" * 100_000])
def test_what_is_no_instance_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)

    with pytest.raises(BadInput, match=r"x\.json"):
        read_instance(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        read_instance(tmp_path / "none.json")
