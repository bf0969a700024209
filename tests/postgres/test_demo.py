"""The demo at toy size, on a real server, with real processes."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import psutil
import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from omega.cli.cell_access import DEMO
from omega.errors import NotAllowed, SchemaMismatch, StoreUnavailable
from omega.lifecycle.states import State
from omega.model.resources import COLUMNS
from omega.store.postgres.databases import suffixed
from omega.store.postgres.store import PostgresStore
from omega.store.status import ProcessReport
from tests.fixtures.command_line import Omega

POLL_S = 0.05
SMALL = ("--machines", "20", "--schedulers", "batch=1,service=1")
WORKERS = 3
"""Its processes: two schedulers, and the virtual nodes."""
PROMISED = {
    "tasks_placed",
    "jobs_placed",
    "jobs_parked",
    "jobs_left",
    "tasks_per_second",
    "conflict_fraction",
    "conflicts",
    "allocated",
    "violations",
}


@pytest.fixture
def demo_url(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Have every command work beside the test's own database; drop the demo's afterwards."""
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    monkeypatch.setenv("OMEGA_DATA_DIR", str(tmp_path))
    url = suffixed(database_url, DEMO)
    yield url
    drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(drop.format(sql.Identifier(make_url(url).database or "")))


def start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "omega.cli", "demo", *SMALL, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for_reports(demo: subprocess.Popen[str], url: str, number: int) -> list[ProcessReport]:
    """Wait until so many processes of the demo have reported; fail when it ends before."""
    with closing(PostgresStore(url)) as store:
        while True:
            with suppress(subprocess.TimeoutExpired):
                demo.wait(POLL_S)
            assert demo.returncode is None, demo.communicate()[0]
            with suppress(StoreUnavailable, SchemaMismatch, NotAllowed):
                reports = store.reports()
                if len(reports) >= number:
                    return reports


def test_a_demo_places_work_on_a_half_filled_cell(omega: Omega, demo_url: str) -> None:
    ran = omega("demo", "--machines", 50, "--seconds", 2, "--json", "-")

    assert 0 == ran.code, ran.err
    document: dict[str, Any] = json.loads(ran.out)
    summary, rows = document["summary"], document["rows"]
    assert summary.keys() >= PROMISED
    assert (0, 0, False) == (summary["violations"], summary["jobs_left"], summary["interrupted"])
    assert summary["tasks_placed"] > 0
    assert summary["jobs_submitted"] == summary["jobs_placed"] + sum(
        summary["jobs_parked"].values()
    )
    assert {*COLUMNS, "gpu"} == summary["allocated"].keys()
    assert summary["prefill"]["placed"] == summary["prefill"]["tasks"] > 0
    assert [("batch", "0"), ("batch", "1"), ("service", "0"), ("ml-gpu", "0")] == [
        (row["scheduler"], row["replica"]) for row in rows
    ]
    assert summary["tasks_placed"] == sum(row["totals"].get("tasks_placed", 0) for row in rows)
    assert 50 == document["parameters"]["machines"]
    with closing(PostgresStore(demo_url)) as store:
        assert [] == store.reports(), "every process has left"
        assert State.PLANNING not in store.use().jobs_by_state


def test_a_demo_draws_its_picture_and_leaves_the_users_cell_alone(
    omega: Omega, demo_url: str, tmp_path: Path
) -> None:
    path = tmp_path / "demo.svg"

    ran = omega(
        "demo", "--machines", 20, "--seconds", 1, "--schedulers", "batch=1", "--picture", path
    )

    assert 0 == ran.code, ran.err
    words = " ".join(ElementTree.parse(path).getroot().itertext()).replace("\xa0", " ")
    for word in ("jobs arrive", "batch 0", "conflicts", "20 machines", "every invariant holds"):
        assert word in words
    assert 0 == json.loads(omega("cell", "show", "--json", "-").out)["summary"]["machines"]
    theirs = json.loads(omega("cell", "show", "--demo", "--json", "-").out)
    assert 20 == theirs["summary"]["machines"]
    assert 0 == omega("db", "verify", "--demo").code
    assert demo_url == omega("db", "url", "--demo").out.strip()


def test_a_scheduler_that_is_killed_starts_again_and_nothing_is_lost(
    demo_url: str, tmp_path: Path
) -> None:
    demo = start("--seconds", "4", "--json", str(tmp_path / "out.json"))
    victim, *_ = (
        report for report in wait_for_reports(demo, demo_url, WORKERS) if report.kind == "batch"
    )
    psutil.Process(victim.pid).send_signal(signal.SIGKILL)
    said, _ = demo.communicate()

    assert 0 == demo.returncode, said
    assert "was killed by SIGKILL and starts again in" in said
    summary = json.loads((tmp_path / "out.json").read_text())["summary"]
    assert (1, 0, 0) == (summary["restarts"], summary["violations"], summary["jobs_left"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_demo_that_is_told_to_end_ends_all_its_processes(
    demo_url: str, number: signal.Signals
) -> None:
    demo = start("--seconds", "600")
    wait_for_reports(demo, demo_url, WORKERS)
    children = psutil.Process(demo.pid).children()
    demo.send_signal(number)
    said, _ = demo.communicate()

    assert 130 == demo.returncode, said
    assert len(children) >= WORKERS
    assert not any(child.is_running() for child in children)
    with closing(PostgresStore(demo_url)) as store:
        assert [] == store.reports()
        assert State.PLANNING not in store.use().jobs_by_state
        assert [] == list(store.verify())


def test_processes_end_with_a_demo_that_is_killed(demo_url: str) -> None:
    demo = start("--seconds", "600")
    reports = wait_for_reports(demo, demo_url, WORKERS)
    children = [psutil.Process(report.pid) for report in reports]
    demo.kill()
    demo.communicate()

    gone, alive = psutil.wait_procs(children)
    assert (WORKERS, []) == (len(gone), alive)


def test_a_trace_fills_its_cell(omega: Omega, demo_url: str, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn1,9000,9000,2,T4\n")
    pods = [
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
        "deletion_time,scheduled_time",
        *(f"gpu-{n},500,512,1,500,,LS,Running,{n},100,50" for n in range(5)),
        *(f"cpu-{n},500,512,0,0,,BE,Running,{n},100,50" for n in range(5)),
        "large,99000,512,0,0,,LS,Running,9,100,50",
    ]
    (tmp_path / "pods_default.csv").write_text("\n".join(pods) + "\n")

    ran = omega("demo", "--trace", tmp_path, "--seconds", 1, "--json", "-")

    assert 0 == ran.code, ran.err
    summary = json.loads(ran.out)["summary"]
    assert (11, 9, 0, 0) == tuple(
        summary[name] for name in ("jobs_submitted", "jobs_placed", "jobs_left", "violations")
    )
    assert {"no_room": 1, "never_fits": 1} == summary["jobs_parked"]
    assert 1.0 == summary["allocated"]["gpu"]
    assert demo_url


def test_a_demo_that_cannot_work_is_refused_before_anything_is_made(
    omega: Omega, demo_url: str, tmp_path: Path
) -> None:
    for arguments in (
        ("--schedulers", "bach=1"),
        ("--trace", tmp_path),
        ("--json", tmp_path / "absent" / "out.json"),
        ("--picture", tmp_path / "absent" / "demo.svg"),
        ("--picture", tmp_path / "demo.png"),
        ("--seconds", 0),
    ):
        ran = omega("demo", *arguments)
        assert (2, "") == (ran.code, ran.out)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(demo_url)
