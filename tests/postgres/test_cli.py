"""The verbs, run on a real server as a user would run them."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from omega.lifecycle.states import State
from omega.limits import Limits
from omega.model.jobs import StepWork
from omega.store.postgres.revision import head
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from tests.fixtures.command_line import Omega, Ran, Started, document, summary

TWO = "name,cpu_milli,memory_mib,gpus,zone\na,4000,8192,2,z1\nb,8000,16384,,z2\n"
JOB = """\
name: web
scheduler: service
groups:
- tasks: 3
  cpu: 1
  memory: 1GiB
"""


@pytest.fixture(autouse=True)
def _cell(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every command work on the test's own database."""
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)


@pytest.fixture
def two_machines(omega: Omega, tmp_path: Path) -> Ran:
    """Load two machines."""
    (tmp_path / "two.csv").write_text(TWO)
    return omega("cell", "load", tmp_path / "two.csv", "--json", "-")


def test_init_makes_a_new_database_ready_and_can_be_repeated(
    omega: Omega, empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", empty_database_url)

    first, second, third = omega("db", "init"), omega("db", "init"), omega("db", "migrate")

    assert (0, f"The database is ready (schema {head()}).\n") == (first.code, first.out)
    assert "was ready before" in second.out
    assert f"The schema is {head()}; it was {head()}." in third.out
    assert 0 == omega("db", "verify").code


def test_without_tables_a_verb_says_what_to_run(
    omega: Omega, empty_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", empty_database_url)

    ran = omega("status")

    assert (1, "") == (ran.code, ran.out)
    assert ran.err == "omega: this database has no cell yet; run: omega db init\n"


def test_the_url_is_printed_alone(omega: Omega) -> None:
    assert (0, os.environ["OMEGA_DATABASE_URL"] + "\n", "") == omega("db", "url")


def test_a_list_of_machines_is_loaded(omega: Omega, two_machines: Ran) -> None:
    shown = summary(omega("cell", "show", "--json", "-"))

    assert 2 == summary(two_machines)["machines"]
    assert (2, 2) == (shown["machines"], shown["open"])
    assert {"zone": {"z1": 1, "z2": 1}} == shown["attributes"]
    assert "8 cores" in omega("cell", "show").out


def test_a_malformed_list_stores_nothing(omega: Omega, tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text(TWO + "c,many,1,,\n")

    ran = omega("cell", "load", tmp_path / "bad.csv")

    assert (2, "") == (ran.code, ran.out)
    assert f"{tmp_path / 'bad.csv'}, line 4, field cpu_milli: must be a whole number" in ran.err
    assert 0 == summary(omega("cell", "show", "--json", "-"))["machines"]


def test_a_name_that_is_taken_refuses_all(omega: Omega, two_machines: Ran, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("name,cpu_milli,memory_mib\nc,1,1\nb,1,1\n")

    ran = omega("cell", "load", tmp_path / "more.csv")

    assert (2, 0) == (ran.code, two_machines.code)
    assert "b" in ran.err
    assert 2 == summary(omega("cell", "show", "--json", "-"))["machines"]


def test_a_synthetic_cell_is_loaded(omega: Omega) -> None:
    assert 30 == summary(omega("cell", "load", "synthetic:30", "--json", "-"))["machines"]


def test_a_traces_start_state_is_loaded_if_wanted(omega: Omega, tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn1,1000,1024,2,T4\n")
    (tmp_path / "pods_default.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
        "deletion_time,scheduled_time\np1,500,512,1,500,,LS,Running,0,10,1\n"
    )

    loaded = summary(omega("cell", "load", tmp_path, "--running", "--json", "-"))

    assert 1 == loaded["machines"]
    assert isinstance(loaded["running"], dict)
    assert 0 == loaded["running"]["tasks"]


def test_a_job_is_submitted_listed_shown_and_cancelled(omega: Omega, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)
    handed_in = document(omega("submit", tmp_path / "job.yaml", "--json", "-"))
    (row,) = handed_in["rows"]
    job = row["id"]

    listed = document(omega("jobs", "--state", "pending", "--scheduler", "service", "--json", "-"))
    shown = summary(omega("job", job, "--json", "-"))

    assert {"jobs": 1, "tasks": 3, "unplaced": 0} == handed_in["summary"]
    assert [job] == [each["id"] for each in listed["rows"]]
    assert ("pending", 3, 0) == (shown["state"], shown["tasks"], shown["placed"])
    assert "no_scheduler" == shown["why"]["reason"]
    assert "omega scheduler run service" in omega("job", job).out
    assert (0, f"Job {job} is cancelled.\n", "") == omega("cancel", job)
    assert (1, "", f"omega: job {job} is over already: cancelled\n") == omega("cancel", job)
    assert "There are no such jobs." in omega("jobs", "--state", "pending").out


def test_a_job_that_never_was_cannot_be_shown_or_cancelled(omega: Omega) -> None:
    assert (1, "", "omega: there is no job 99\n") == omega("job", 99)
    assert (1, "", "omega: there is no job 99\n") == omega("cancel", 99)


def test_a_malformed_spec_stores_nothing(omega: Omega, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB + "  gpus: lots\n")

    ran = omega("submit", tmp_path / "job.yaml")

    assert (2, "") == (ran.code, ran.out)
    assert f"{tmp_path / 'job.yaml'}, line 7, field groups[0].gpus: " in ran.err
    assert 1 == ran.err.count("\n")
    assert 0 == summary(omega("jobs", "--json", "-"))["jobs"]


def test_a_spec_with_more_jobs_than_one_submission_takes_stores_nothing(
    omega: Omega, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omega.workload.spec.LIMITS", Limits(jobs_per_submission_max=2))
    (tmp_path / "job.yaml").write_text(f"{JOB}---\n" * 3)

    ran = omega("submit", tmp_path / "job.yaml")

    assert (2, "") == (ran.code, ran.out)
    assert f"{tmp_path / 'job.yaml'}, line 15: there are 3 jobs in it, more than 2" in ran.err
    assert 0 == summary(omega("jobs", "--json", "-"))["jobs"]


def test_waiting_ends_when_the_time_is_up(omega: Omega, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(JOB)

    ran = omega("submit", tmp_path / "job.yaml", "--wait", "--timeout", "0")

    assert 1 == ran.code
    assert "1 job not fully placed; why: omega why" in ran.out


def test_a_broken_invariant_is_listed_and_ends_with_one(
    omega: Omega, two_machines: Ran, database_url: str
) -> None:
    assert 0 == two_machines.code
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE omega.machine SET cpu_milli_used = 1 WHERE id = 1")

    told, written = omega("db", "verify"), omega("db", "verify", "--json", "-")

    assert 1 == told.code == written.code
    assert "Broken invariants" in told.out
    assert json.loads(written.out)["summary"]["violations"] >= 1


def test_the_status_of_an_idle_cell(omega: Omega, two_machines: Ran) -> None:
    assert 0 == two_machines.code
    told = omega("status")

    assert 0 == told.code
    assert "2 machines" in told.out
    assert "No scheduler runs" in told.out
    assert {"machines", "allocated", "jobs_by_state", "parked_by_reason"} <= set(
        summary(omega("status", "--json", "-"))
    )


def test_watching_and_a_document_exclude_each_other(omega: Omega) -> None:
    assert 2 == omega("status", "--watch", "--json", "-").code


def test_a_server_that_does_not_answer_is_one_sentence(
    omega: Omega, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", "postgresql://nobody:secret@127.0.0.1:1/none")

    for ran in (omega("status"), omega("db", "init")):
        assert (1, "", 1) == (ran.code, ran.out, ran.err.count("\n"))
        assert "secret" not in ran.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_scheduler_places_jobs_and_ends_cleanly(
    store: PostgresStore, started: Started, number: signal.Signals
) -> None:
    store.add_machines(a_cell(5))
    (job,) = store.submit([a_spec(7)])
    process = started("scheduler", "run", "batch", "--replica", "a")

    started.wait_for(lambda: State.RUNNING in store.use().jobs_by_state)
    started.wait_for(lambda: bool(store.reports()))
    process.send_signal(number)

    assert 0 == process.wait()
    assert 7 == len(store.placements(job))
    assert [] == store.reports()
    assert [] == list(store.verify())


@pytest.mark.parametrize(("sync", "in_full"), [("full", True), ("delta", False)])
def test_a_scheduler_reads_what_changed_or_all_as_it_is_told(
    omega: Omega, store: PostgresStore, started: Started, sync: str, *, in_full: bool
) -> None:
    store.add_machines(a_cell(5))
    store.submit([a_spec(7)])
    started("scheduler", "run", "batch", "--sync", sync)

    started.wait_for(lambda: bool(store.reports()) and refreshes(store) > 1)

    (report,) = store.reports()
    totals: Any = report.facts["totals"]
    assert in_full == (totals["refreshes_full"] == totals["refreshes"])
    assert {} == summary(omega("status", "--json", "-"))["conflicts"]
    assert "refused none" in omega("status").out


def refreshes(store: PostgresStore) -> int:
    """Return how often a scheduler says that it has looked at the cell."""
    totals: Any = store.reports()[0].facts["totals"]
    return int(totals.get("refreshes", 0))


def test_a_scheduler_that_is_told_to_end_gives_its_leases_back(
    store: PostgresStore, started: Started
) -> None:
    store.add_machines(a_cell(5))
    jobs = store.submit([a_spec(2) for _ in range(40)])
    # Each decision takes a minute: the process is told to end while it thinks about the first.
    process = started("scheduler", "run", "batch", "--t-job", "60")

    started.wait_for(lambda: State.PLANNING in store.use().jobs_by_state)
    process.terminate()

    assert 0 == process.wait()
    states = {status.state for status in map(store.job, jobs) if status is not None}
    assert State.PLANNING not in states
    assert [] == list(store.verify())


def test_virtual_nodes_end_tasks_and_end_cleanly(
    omega: Omega, store: PostgresStore, started: Started
) -> None:
    store.add_machines(a_cell(5))
    store.submit([a_spec(4, duration_ms=60_000)])
    started("scheduler", "run", "batch")
    nodes = started("node", "simulate", "--speedup", "1000")

    started.wait_for(lambda: State.SUCCEEDED in store.use().jobs_by_state)
    started.wait_for(lambda: len(store.reports()) == 2)
    told = omega("status").out
    nodes.terminate()

    assert "batch 0" in told
    assert "virtual, at 1000× speed" in told  # noqa: RUF001 - the sign for times
    assert 0 == nodes.wait()
    assert ["batch"] == [report.kind for report in store.reports()]


def test_virtual_nodes_make_steps_at_the_rates_of_a_table(
    omega: Omega, store: PostgresStore, started: Started, samples: Path
) -> None:
    store.add_machines(a_cell(1, gpus=1, attributes={"gpu_model": ["v100"]}))
    (job,) = store.submit([a_spec(gpus=1, work=StepWork("A", 4_000))])
    rates = samples / "gavel" / "simulation_throughputs.json"
    started("scheduler", "run", "batch")
    started("node", "simulate", "--speedup", "1000", "--rates", str(rates), "--restart", "30")

    started.wait_for(lambda: State.SUCCEEDED in store.use().jobs_by_state)
    progress = summary(omega("job", job, "--json", "-"))["progress"]

    assert progress.pop("run_ms") >= 100_000
    assert {"kind": "A", "steps": 4_000, "done": 4_000} == progress


def test_a_table_of_rates_that_is_none_is_refused(omega: Omega, tmp_path: Path) -> None:
    (tmp_path / "rates.json").write_text("[]")

    ran = omega("node", "simulate", "--rates", tmp_path / "rates.json")

    assert 2 == ran.code
    assert "it is no table of rates" in ran.err


def test_waiting_ends_when_a_scheduler_has_placed_all(
    omega: Omega, store: PostgresStore, started: Started, tmp_path: Path
) -> None:
    store.add_machines(a_cell(5))
    started("scheduler", "run", "service")
    (tmp_path / "job.yaml").write_text(JOB)

    ran = omega("submit", tmp_path / "job.yaml", "--wait", "--json", "-")

    (row,) = document(ran)["rows"]
    assert ("running", 3) == (row["state"], row["placed"])


def test_a_job_that_can_never_fit_is_parked_with_what_is_missing(
    omega: Omega, store: PostgresStore, started: Started, tmp_path: Path
) -> None:
    store.add_machines(a_cell(5))
    started("scheduler", "run", "service")
    (tmp_path / "job.yaml").write_text(JOB.replace("cpu: 1", "cpu: 640"))

    ran = omega("submit", tmp_path / "job.yaml", "--wait")
    told = omega("job", store.jobs(jobs_max=1)[0].id).out

    assert 1 == ran.code
    assert "never_fits" in told
    assert "Ask for less" in told
