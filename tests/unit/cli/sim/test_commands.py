"""`omega sim run`: what it says, and that what cannot be simulated is one sentence."""

import sys
from pathlib import Path

import pytest

from omega.sim import compilation as sim_compiled
from omega.sim.cell import SimulatedCell
from omega.workload.recipe import job_list
from omega.workload.synthetic import W2
from tests.fixtures.command_line import Omega, document
from tests.fixtures.job_lists import CELL


@pytest.mark.parametrize(
    "architecture", ["monolithic", "multi-path", "static-partition", "shared-state"]
)
def test_a_run_says_what_came_of_each_workload(omega: Omega, jobs: Path, architecture: str) -> None:
    told = document(
        omega("sim", "run", "--jobs", jobs, "--architecture", architecture, *CELL, "--json", "-")
    )
    summary = told["summary"]

    assert architecture == told["parameters"]["architecture"]
    for workload in ("batch", "service"):
        assert 0 < summary[workload]["busy"] <= 1.1
        assert 0 < summary[workload]["tasks_placed"]
        assert {
            "conflict_fraction",
            "wait_mean_s",
            "wait_p90_s",
            "jobs_unfinished",
            "jobs_abandoned",
        } <= summary[workload].keys()
    assert summary["events"] > 360
    assert summary["wall_s"] > 0
    assert (1 if architecture in {"monolithic", "multi-path"} else 2) == len(told["rows"])


def test_one_seed_gives_one_document(omega: Omega, jobs: Path) -> None:
    options = (*CELL, "--batch-schedulers", 3, "--rule", "sequence", "--granularity", "gang")

    def summary(seed: int) -> dict[str, object]:
        ran = omega("sim", "run", "--jobs", jobs, *options, "--seed", seed, "--json", "-")
        told: dict[str, object] = document(ran)["summary"]
        del told["wall_s"]
        return told

    assert summary(1) == summary(1)
    assert summary(1) != summary(2)


def test_a_person_sees_a_table(omega: Omega, jobs: Path) -> None:
    ran = omega("sim", "run", "--jobs", jobs, *CELL)

    assert 0 == ran.code
    assert all(word in ran.out for word in ("batch", "service", "busy", "conflicts", "unfinished"))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--machines", 1, "--prefill-tasks", 30), "task"),
        (("--architecture", "anarchy"), "anarchy"),
        (("--hours", "nan"), "--hours"),
        (("--t-job-batch", -1), "--t-job-batch"),
    ],
)
def test_what_cannot_be_simulated_is_bad_usage(
    omega: Omega, jobs: Path, options: tuple[object, ...], problem: str
) -> None:
    ran = omega("sim", "run", "--jobs", jobs, *options)

    assert 2 == ran.code
    assert problem in " ".join(ran.err.split())


def test_the_published_lists_are_written_again(omega: Omega, tmp_path: Path) -> None:
    to = tmp_path / "W2.csv"

    assert 0 == omega("sim", "jobs", "W2", "--to", to).code
    assert job_list(W2) == to.read_text()
    assert 2 == omega("sim", "jobs", "W3", "--to", to).code
    assert 2 == omega("sim", "jobs", "W2", "--to", tmp_path / "none" / "W2.csv").code


def test_a_list_that_is_none_is_bad_input(omega: Omega, tmp_path: Path) -> None:
    broken = tmp_path / "broken.csv"
    broken.write_text("job_id,workload\n1,Batch\n")

    ran = omega("sim", "run", "--jobs", broken)
    missing = omega("sim", "run", "--jobs", tmp_path / "none.csv")

    assert (2, 2) == (ran.code, missing.code)
    assert "broken.csv" in ran.err

    broken.write_text("job_id,workload,submit_s,tasks,duration_s,cpus_per_task,mem_gb_per_task\n")
    empty = omega("sim", "run", "--jobs", broken, "--architecture", "monolithic")

    assert 2 == empty.code
    assert "no job to simulate" in empty.err


def test_a_run_can_be_audited(omega: Omega, jobs: Path) -> None:
    options = ("sim", "run", "--jobs", jobs, *CELL, "--hours", 0.02, "--json", "-")
    plain, audited = document(omega(*options)), document(omega(*options, "--audit"))

    assert audited["summary"].pop("audited") > 30
    assert plain["rows"] == audited["rows"]
    assert plain["summary"].keys() == audited["summary"].keys()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--audit",), "an audited run is not compiled"),
        (("--queue", "live"), "a run with --queue live is not compiled"),
        (("--machine-failures-every", "0.01"), "a run whose machines change is not compiled"),
        ((), "--compiled needs omega-scheduler[fast] to be installed"),
    ],
)
def test_what_cannot_be_compiled_is_bad_usage(
    omega: Omega,
    jobs: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
    problem: str,
) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)

    ran = omega("sim", "run", "--jobs", jobs, *CELL, "--compiled", *options)

    assert 2 == ran.code
    assert problem in " ".join(ran.err.split())
    monkeypatch.setattr(sim_compiled, "FROM_JOBS", 1)
    assert 0 == omega("sim", "run", "--jobs", jobs, *CELL, "--hours", 0.01).code


def test_an_audit_that_finds_something_tells_the_story_of_the_machine(
    omega: Omega, jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimulatedCell, "release", lambda *_: None)

    ran = omega("sim", "run", "--jobs", jobs, *CELL, "--audit")

    assert 1 == ran.code
    assert "expected" in ran.err
    assert "granted to task" in ran.err


def test_a_run_is_drawn_and_none_the_worse_for_it(omega: Omega, jobs: Path, tmp_path: Path) -> None:
    to = tmp_path / "run.png"
    options = ("sim", "run", "--jobs", jobs, *CELL, "--hours", 0.03, "--json", "-")
    plain, drawn = document(omega(*options)), document(omega(*options, "--plot", to))

    assert to.read_bytes().startswith(b"\x89PNG")
    assert plain["rows"] == drawn["rows"]
    assert 2 == omega(*options, "--plot", "/nowhere/at/all.png").code
