"""`omega sim fit`: what it says of a trace, and that what it writes can be simulated."""

import json
from pathlib import Path

import pytest

from omega.workload.recipe import job_list
from omega.workload.synthetic import W2
from tests.fixtures.command_line import Omega, document
from tests.fixtures.job_lists import CELL

HEAD = "job_id,workload,submit_s,tasks,duration_s,cpus_per_task,mem_gb_per_task"
TASKS = ("trace", "exponential", "lognormal", "weibull", "off by", "gap, s", "duration, s")


@pytest.fixture
def lumpy(tmp_path: Path) -> Path:
    """Jobs of one task or of a hundred, which follow no law."""
    path = tmp_path / "lumpy.csv"
    rows = [
        f"{n},Batch,{n * 2.5},{100 if n % 10 == 0 else 1},{n % 7 + 1},1,2" for n in range(1, 101)
    ]
    path.write_text("\n".join([HEAD, *rows]))
    return path


def test_every_law_stands_beside_what_was_seen(omega: Omega, jobs: Path) -> None:
    told = document(omega("sim", "fit", jobs, "--json", "-"))
    rows = {(one["workload"], one["quantity"], one["law"]): one for one in told["rows"]}

    assert {"batch", "service"} == {workload for workload, _, _ in rows}
    assert 2 * 3 * 5 == len(rows)
    fitted = rows["batch", "gap_s", "exponential"]
    assert 2 == pytest.approx(fitted["parameters"]["mean"], rel=0.2)
    assert fitted["distance"] < fitted["by_sampling"]
    assert ["0.1", "0.5", "0.9", "0.99"] == list(rows["batch", "gap_s", None]["quantiles"])
    assert 0 == rows["batch", "gap_s", "empirical"]["distance"]
    assert [] == told["summary"]["notes"]


def test_a_person_sees_where_no_law_fits(omega: Omega, lumpy: Path) -> None:
    ran = omega("sim", "fit", lumpy)
    said = " ".join(ran.out.split())

    assert 0 == ran.code
    assert all(word in said for word in TASKS)
    assert "batch, tasks: no law fits; exponential is off by 8" in said
    assert "--law empirical draws from what was observed" in said


@pytest.mark.parametrize("law", ["best", "empirical"])
def test_what_is_drawn_can_be_simulated(omega: Omega, jobs: Path, tmp_path: Path, law: str) -> None:
    to = tmp_path / "drawn.csv"
    assert 0 == omega("sim", "fit", jobs, "--to", to, "--hours", 0.05, "--law", law).code
    ran = document(omega("sim", "run", "--jobs", to, *CELL, "--hours", 0.05, "--json", "-"))

    assert 0 < ran["summary"]["batch"]["tasks_placed"]
    assert 0 < ran["summary"]["service"]["jobs"]
    first = to.read_text()
    omega("sim", "fit", jobs, "--to", to, "--hours", 0.05, "--law", law)
    assert first == to.read_text()
    omega("sim", "fit", jobs, "--to", to, "--hours", 0.05, "--law", law, "--seed", 1)
    assert first != to.read_text()


def test_a_trace_of_a_folder_is_read_as_it_was_submitted(omega: Omega, tmp_path: Path) -> None:
    (tmp_path / "W2.csv").write_text(job_list(W2))
    told = document(omega("sim", "fit", tmp_path, "--json", "-"))

    assert {"batch": 4_247, "service": 352} == told["summary"]["jobs"]


def test_pods_are_fitted_in_their_own_time_and_left_out_of_the_list(
    omega: Omega, tmp_path: Path
) -> None:
    nodes = "sn,cpu_milli,memory_mib,gpu,model\nn,8000,8192,2,V100"
    head = (
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
        "creation_time,deletion_time,scheduled_time"
    )
    pods = [
        f"pod-{n},1000,1024,{n % 2},{1000 * (n % 2)},,BE,Succeeded,{n * n},{n * n + 30 + n},{n * n}"
        for n in range(1, 20)
    ]
    (tmp_path / "nodes.csv").write_text(nodes)
    (tmp_path / "pods_default.csv").write_text("\n".join([head, *pods]))
    to = tmp_path / "drawn.csv"
    document_to = tmp_path / "fit.json"
    ran = omega("sim", "fit", tmp_path, "--to", to, "--json", document_to)

    assert 0 == ran.code
    assert {"batch": 9, "ml-gpu": 10} == json.loads(document_to.read_text())["summary"]["jobs"]
    assert "ml-gpu is not in the list" in ran.out
    assert {"Batch"} == {line.split(",")[1] for line in to.read_text().splitlines()[1:]}


def test_it_is_drawn(omega: Omega, jobs: Path, tmp_path: Path) -> None:
    to = tmp_path / "fit.png"

    assert 0 == omega("sim", "fit", jobs, "--plot", to).code
    assert to.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--trace-option", "a=b"), "a job list has no options"),
        (("--law", "natural"), "natural"),
        (("--to", "/nowhere/at/all.csv"), "--to"),
        (("--plot", "/nowhere/at/all.png"), "--plot"),
    ],
)
def test_what_cannot_be_fitted_is_bad_usage(
    omega: Omega, jobs: Path, options: tuple[str, ...], problem: str
) -> None:
    ran = omega("sim", "fit", jobs, *options)

    assert 2 == ran.code
    assert problem in " ".join(ran.err.split())
