"""`omega sim sweep`: the same rows whoever simulates, and nothing that is done is lost."""

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import psutil
import pytest

from omega.cli.sim import sweep as sim_sweep
from omega.cli.sim.plan import SimPlan
from omega.cli.sim.trials import Packed
from omega.processes.workers import Workers
from omega.sim.cell import SimulatedCell
from omega.workload.recipe import job_list
from omega.workload.synthetic import W2
from tests.fixtures.command_line import Omega, Started, document
from tests.fixtures.job_lists import CELL
from tests.fixtures.sweeps import Here

OPENB = Path(__file__).parents[3] / "samples" / "openb"
SHORT = (*CELL, "--hours", 0.01)
SWEEP = ("sim", "sweep", *SHORT)
TIMES = ("--vary", "t-job-service=1,10")


def test_a_row_is_what_run_says_of_its_point(omega: Omega, jobs: Path, here: Here) -> None:
    told = document(
        omega(
            *SWEEP,
            *("--jobs", jobs, *TIMES, "--vary", "architecture=monolithic,shared-state"),
            *("--rule", "sequence", "--json", "-"),
        )
    )
    options = (*SHORT, "--jobs", jobs, "--rule", "sequence", "--t-job-service", 10)
    ran = document(omega("sim", "run", *options, "--json", "-"))["summary"]

    assert [
        (1.0, "monolithic"),
        (1.0, "shared-state"),
        (10.0, "monolithic"),
        (10.0, "shared-state"),
    ] == [(row["t_job_service"], row["architecture"]) for row in told["rows"]]
    assert 4 == here.runs == told["summary"]["points_done"]
    assert {"t_job_service": [1.0, 10.0], "architecture": ["monolithic", "shared-state"]} == told[
        "parameters"
    ]["vary"]
    row = told["rows"][-1]
    assert {name: ran[name] for name in ("batch", "service", "events", "utilisation")} == {
        name: row[name] for name in ("batch", "service", "events", "utilisation")
    }
    assert [0] == row["seeds"]


@pytest.mark.usefixtures("here")
def test_several_seeds_give_mean_and_deviation(omega: Omega, jobs: Path) -> None:
    crowded = ("--rule", "sequence", "--batch-schedulers", 3, "--t-job-batch", 2)
    options = ("--jobs", jobs, *crowded, "--json", "-")
    told = document(omega(*SWEEP, *options, "--vary", "t-job-service=5", "--seeds", 3))
    (row,) = told["rows"]
    alone = document(omega(*SWEEP, *options, "--t-job-service", 5, "--vary", "seed=0,1,2"))["rows"]
    wasted = [one["batch"]["busy_wasted"] for one in alone]

    assert [0, 1, 2] == row["seeds"]
    assert fmean(wasted) == row["batch"]["busy_wasted"]
    assert stdev(wasted) == row["deviation"]["batch"]["busy_wasted"] > 0


def test_a_sweep_of_a_trace_finds_what_runs_find(omega: Omega, here: Here) -> None:
    options = ("--trace", OPENB, "--trace-option", "times=replay", "--hours", 0.02)
    swept = document(omega("sim", "sweep", *options, "--vary", "seed=0,1", "--json", "-"))
    ran = document(omega("sim", "run", *options, "--seed", 1, "--json", "-"))["summary"]

    row = swept["rows"][1]
    assert {name: row[name] for name in ("ml-gpu", "utilisation")} == {
        name: ran[name] for name in ("ml-gpu", "utilisation")
    }
    assert 2 == here.runs
    assert ["openb"] == list(swept["parameters"]["given"])


def test_two_processes_find_what_one_finds(
    omega: Omega, jobs: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    live = ("--queue", "live", "--precedence-mix", "service=100")
    options = ("--jobs", jobs, *live, "--vary", "t-job-service=log:1..100/3", "--json", "-")
    many = document(omega(*SWEEP, *options, "--workers", 2))
    request.getfixturevalue("here")
    one = document(omega(*SWEEP, *options))

    assert [1.0, 10.0, 100.0] == [row["t_job_service"] for row in many["rows"]]
    assert one["rows"] == many["rows"]
    assert "2 workers" == many["summary"]["workers"]
    assert [] == [child.name() for child in psutil.Process().children() if _simulates(child)]


def test_a_dask_cluster_finds_what_we_find(omega: Omega, jobs: Path, here: Here) -> None:
    distributed = pytest.importorskip("distributed")
    options = ("--jobs", jobs, *TIMES, "--json", "-")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        there = document(omega(*SWEEP, *options, "--dask", cluster.scheduler_address))
    ours = document(omega(*SWEEP, *options))

    assert ours["rows"] == there["rows"]
    assert "1 thread of Dask" == there["summary"]["workers"]
    assert 2 == here.runs, "the cluster did its own"


def test_dask_is_asked_for_before_the_work(
    omega: Omega, jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    ran = omega(*SWEEP, "--jobs", jobs, *TIMES, "--dask", "127.0.0.1:1")

    assert 2 == ran.code
    assert "omega-scheduler[dask]" in ran.err


@pytest.mark.usefixtures("here")
def test_a_point_that_fails_is_named_and_takes_no_other_with_it(
    omega: Omega, jobs: Path, tmp_path: Path
) -> None:
    to = tmp_path / "out.json"
    ran = omega(*SWEEP, "--jobs", jobs, "--vary", "machines=20,1", *TIMES, "--json", to)
    told = document(omega(*SWEEP, "--jobs", jobs, "--vary", "machines=20", *TIMES, "--json", "-"))

    assert 2 == ran.code
    assert "machines 1, t-job-service 1.0, seed 0: 30 tasks" in " ".join(ran.err.split())
    assert "2 runs failed in all" in " ".join(ran.err.split())
    assert told["rows"] == read(to)["rows"]
    assert {"machines": 1, "t_job_service": 1.0, "seed": 0} == {
        name: value for name, value in read(to)["summary"]["failures"][0].items() if name != "why"
    }


@pytest.mark.usefixtures("here")
def test_an_audit_that_finds_something_names_the_point_and_tells_the_story(
    omega: Omega, jobs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SimulatedCell, "release", lambda *_: None)
    ran = omega(*SWEEP, "--jobs", jobs, *TIMES, "--audit")

    assert 1 == ran.code
    assert "t-job-service 1.0, seed 0: " in ran.err
    assert "granted to task" in ran.err


def test_what_was_done_before_is_not_done_again(
    omega: Omega, jobs: Path, here: Here, tmp_path: Path
) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    options = ("--jobs", jobs)
    grid = ("--vary", "rule=fit,sequence", "--vary", "t-job-service=10,1")
    assert 0 == omega(*SWEEP, *options, *TIMES, "--json", first).code
    assert 2 == here.runs

    assert 0 == omega(*SWEEP, *options, *grid, "--resume", first, "--json", second).code
    assert 2 + 2 == here.runs, "the two points of rule fit are there"
    assert 2 == read(second)["summary"]["points_reused"]

    assert 0 == omega(*SWEEP, *options, *grid, "--json", first).code
    assert read(first)["rows"] == read(second)["rows"]


@pytest.mark.parametrize("other", [("--seed", 1), ("--seeds", 2), ("--hours", 0.02)])
def test_what_was_asked_for_otherwise_is_done_again(
    omega: Omega, jobs: Path, here: Here, tmp_path: Path, other: tuple[object, ...]
) -> None:
    kept = tmp_path / "kept.json"
    options = ("--jobs", jobs, "--vary", "t-job-service=1")
    omega(*SWEEP, *options, "--json", kept)
    runs = here.runs
    ran = omega(*SWEEP, *options, *other, "--resume", kept)

    assert "Nothing of" in ran.out
    assert here.runs > runs


def test_another_job_list_of_that_name_is_done_again(
    omega: Omega, jobs: Path, here: Here, tmp_path: Path
) -> None:
    kept = tmp_path / "kept.json"
    options = ("--jobs", jobs, "--vary", "t-job-service=1")
    omega(*SWEEP, *options, "--json", kept)
    jobs.write_text("\n".join(jobs.read_text().splitlines()[:-1]) + "\n")
    omega(*SWEEP, *options, "--resume", kept)

    assert 2 == here.runs


def test_an_interrupted_sweep_writes_what_it_has(
    omega: Omega, jobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def processes(_: int) -> Iterator[Workers]:
        yield Workers(Here(gives_up_before=3), 1, "this process")

    monkeypatch.setattr(sim_sweep, "processes", processes)
    to = tmp_path / "out.json"
    ran = omega(*SWEEP, "--jobs", jobs, "--vary", "t-job-service=1,2,3,4", "--json", to)

    assert 130 == ran.code
    assert [1.0, 2.0] == [row["t_job_service"] for row in read(to)["rows"]]
    assert (4, 2) == tuple(read(to)["summary"][name] for name in ("points", "points_done"))


def test_ctrl_c_ends_the_workers(started: Started, tmp_path: Path) -> None:
    (tmp_path / "W2.csv").write_text(job_list(W2))
    to = tmp_path / "out.json"
    process = started(
        *("sim", "sweep", "--jobs", str(tmp_path / "W2.csv"), "--hours", "8000"),
        *("--vary", "t-job-service=1,2,3", "--workers", "1", "--json", str(to)),
    )
    watched = psutil.Process(process.pid)
    workers: list[psutil.Process] = []

    def simulating() -> bool:
        workers[:] = [child for child in watched.children() if _simulates(child)]
        return any(child.cpu_times().user > 0 for child in workers)

    started.wait_for(simulating)
    process.send_signal(signal.SIGINT)

    assert 130 == process.wait()
    assert [] == psutil.wait_procs(workers, timeout=0)[1]
    assert 0 == read(to)["summary"]["points_done"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--vary", "t-job-servce=1"), "did you mean 't-job-service'"),
        (("--vary", "t-job-service=-1"), "--t-job-service"),
        (("--vary", "t-job-service=1,x"), "--t-job-service"),
        (("--vary", "architecture=anarchy"), "anarchy"),
        (("--vary", "t-job-service"), "NAME=VALUE"),
        (("--vary", "t-job-service=1,1.0"), "a value twice"),
        (("--vary", "machines=1", "--vary", "machines=2"), "varied twice"),
        (("--vary", "compiled=true,false"), "changes no figure"),
        (("--vary", "set=round=1"), "name the setting"),
        (("--vary", "set:=1"), "name the setting"),
        (("--vary", "audit=false,true", "--compiled"), "an audited run is not compiled"),
        (("--vary", "set:round=1,1"), "a value twice"),
        (("--vary", "set:round=1", "--vary", "set:round=2"), "varied twice"),
        (("--vary", "set:round=1"), "there is no setting 'round'"),
        (("--vary", "t-job-service=log:0..1/3"), "is no range"),
        (("--vary", "t-job-service=lin:1..inf/3"), "is no range"),
        (("--vary", "t-job-service=lin:1..2/9999"), "is no range"),
        (("--vary", "machines=lin:1..1000/1000", "--seeds", 500), "more than 100,000 runs"),
        ((), "--vary"),
        ((*TIMES, "--workers", 1, "--dask", "127.0.0.1:1"), "--workers"),
        ((*TIMES, "--dask", "there://"), "no Dask scheduler answers at there://"),
        ((*TIMES, "--plot", "/nowhere/at/all.png"), "--plot"),
    ],
)
def test_what_cannot_be_swept_is_bad_usage(
    omega: Omega, jobs: Path, here: Here, options: tuple[object, ...], problem: str
) -> None:
    ran = omega(*SWEEP, "--jobs", jobs, *options)

    assert 2 == ran.code
    assert problem in " ".join(ran.err.split())
    assert 0 == here.runs


@pytest.mark.parametrize(
    "text",
    [
        '{"parameters": {}, "rows": []}',
        '{"parameters": [], "environment": {"omega": ""}, "rows": []}',
        '{"parameters": {"vary": {"t_job',
        "[]",
        "[" * 100_000,
        "9" * 5_000,
    ],
)
def test_what_is_no_sweep_is_not_resumed(
    omega: Omega, jobs: Path, tmp_path: Path, text: str
) -> None:
    run = tmp_path / "run.json"
    run.write_text(text)
    ran = omega(*SWEEP, "--jobs", jobs, *TIMES, "--resume", run)

    assert 2 == ran.code
    assert "run.json: this is no document of a sweep" in " ".join(ran.err.split())


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("part", "holds"),
    [
        ("batch", 5),
        ("batch", {}),
        ("batch", {"busy": "much", "conflict_fraction": 0.0, "wait_mean_s": None}),
        ("deviation", {"service": []}),
        ("deviation", None),
    ],
)
def test_a_document_whose_figures_are_none_is_not_resumed(
    omega: Omega, jobs: Path, tmp_path: Path, part: str, holds: object
) -> None:
    kept = tmp_path / "kept.json"
    options = ("--jobs", jobs, "--vary", "t-job-service=1", "--seeds", 2)
    omega(*SWEEP, *options, "--json", kept)
    told = read(kept)
    told["rows"][0][part] = holds
    kept.write_text(json.dumps(told))
    ran = omega(*SWEEP, *options, "--resume", kept)

    assert 2 == ran.code
    assert "kept.json: this is no document of a sweep" in " ".join(ran.err.split())


def test_two_lists_are_the_same_if_their_files_are(jobs: Path, tmp_path: Path) -> None:
    (tmp_path / "again.csv").write_bytes(jobs.read_bytes())
    again = Packed.read(SimPlan(jobs=tmp_path / "again.csv"))

    assert Packed.read(SimPlan(jobs=jobs)) == again
    assert len(again.packed) < jobs.stat().st_size


def _simulates(process: psutil.Process) -> bool:
    with suppress(psutil.ZombieProcess):
        return any("spawn_main" in word for word in process.cmdline())
    return False


def read(path: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(path.read_text())
    return told
