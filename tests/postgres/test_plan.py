"""Plans on Postgres: they change nothing, foretell what schedulers do, and are committed or not."""

import json
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from omega.cli.job.plan import plan_of
from omega.lifecycle.states import State
from omega.model.jobs import JobSpec
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.reports.plan import PlanReport
from omega.reports.plan_file import read_plan, what_changed
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from omega.testing.steps import a_leased_job, a_running_job, add_a_cell, end, grant, places
from schedulers.batch import BatchScheduler
from schedulers.service import ServiceScheduler
from tests.fixtures.command_line import Omega, document
from tests.fixtures.doses import Dose
from tests.fixtures.held_up import work_until, working
from tests.fixtures.logins import Login

pytestmark = pytest.mark.usefixtures("kept_sessions")


@pytest.fixture(autouse=True)
def _cell(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every command work on the test's own database."""
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)


def all_rows(url: str) -> dict[str, list[str]]:
    """Return all rows of Omega's tables, with the transactions that wrote and locked each."""
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'omega' ORDER BY 1"
        ).fetchall()
        return {
            name: [
                str(row)
                for row in connection.execute(
                    sql.SQL("SELECT t.xmin, t.xmax, t.ctid, t::text FROM {} t ORDER BY 3").format(
                        sql.Identifier("omega", name)
                    )
                )
            ]
            for (name,) in tables
        }


def a_contested_cell(store: PostgresStore) -> None:
    """Two machines: a gang that yields on both, and a quota."""
    one, two = add_a_cell(store, 2, cpu_milli=2_000)
    store.set_quota(Quota(QuotaScope.TENANT, "ann", {Budget.CPU_MILLI: 9_000, Budget.JOBS: 5}))
    gang = a_leased_job(store, a_spec(2, minimum=2, tenant="ann", cpu_milli=2_000))
    grant(store, gang, [0, 1], [one, two], cpu_milli=2_000)


A_SERVICE = a_spec(scheduler="service", tenant="ann", precedence=50, cpu_milli=1_500)


def test_a_plan_changes_not_one_row_and_a_reader_may_make_it(
    database_url: str, store: PostgresStore, login: Login
) -> None:
    a_contested_cell(store)
    url = login("reader", "omega_reader")
    before = all_rows(database_url)

    with closing(PostgresStore(url)) as reader:
        report = plan_of(reader, ServiceScheduler(), A_SERVICE, 0)

    assert before == all_rows(database_url)
    assert 1 == report.placed
    assert [(1, 0), (1, 1)] == sorted((it.job, it.task) for it in report.evictions)


def test_what_is_planned_is_what_the_scheduler_does(
    database_url: str, store: PostgresStore
) -> None:
    a_contested_cell(store)
    report = plan_of(store, ServiceScheduler(), A_SERVICE, 0)

    (job,) = store.submit([A_SERVICE])
    with working(database_url, ServiceScheduler()) as service:
        work_until(service, store, job, State.RUNNING)

    gang = store.job(1)
    assert gang is not None
    assert (0, job) == (gang.placed, gang.evicted_by)
    ((_, then),) = report.quotas
    assert store.quotas()[0].left == then.left
    assert report.rest is None


def test_the_rest_of_a_job_says_why_and_a_running_job_of_its_name_stands_beside(
    store: PostgresStore,
) -> None:
    (machine,) = add_a_cell(store, 1)
    a_running_job(store, a_spec(2), [machine, machine])

    report = plan_of(store, BatchScheduler(), a_spec(3), 0)

    assert 2 == report.placed
    assert report.rest is not None
    assert "no_room" == report.rest.finding.reason.value
    assert ["machine-1", "machine-1", None] == [it.now for it in report.tasks]
    assert (1, {}) == (report.before and report.before.id, dict(report.ends))
    assert {1: "machine-1"} == dict(plan_of(store, BatchScheduler(), a_spec(1), 0).ends)


def test_a_patient_job_is_planned_as_if_it_were_submitted_now(
    store: PostgresStore, omega: Omega, tmp_path: Path
) -> None:
    """The machine that it prefers is full, and the other one is empty."""
    preferred, _ = store.add_machines(a_cell(2, attributes={"zone": ["a", "b"]})).tolist()
    a_running_job(store, a_spec(), [preferred], cpu_milli=4_000)
    patient, hasty = tmp_path / "patient.yaml", tmp_path / "hasty.yaml"
    for spec, patience in ((patient, "10m"), (hasty, "0")):
        group = f"{{cpu: 1, prefer: [zone in a], patience: {patience}}}"
        spec.write_text(f"{{name: a, scheduler: batch, groups: [{group}]}}")

    planned = {spec: document(omega("plan", spec, "--json", "-")) for spec in (patient, hasty)}
    asked = {
        spec: document(omega("why", "--spec", spec, "--json", "-"))["summary"]
        for spec in (patient, hasty)
    }

    assert [None, "machine-2"] == [it["rows"][0]["machine"] for it in planned.values()]
    assert "patient" == planned[patient]["summary"]["rest"]["reason"]
    assert planned[hasty]["summary"]["rest"] is None
    assert ["patient", "would_fit"] == [it["reason"] for it in asked.values()]
    assert "zone in a" in asked[patient]["evidence"]
    assert "for another 10 min" in asked[patient]["evidence"]


def test_more_than_a_quota_has_left_is_not_planned(store: PostgresStore) -> None:
    add_a_cell(store, 1)
    store.set_quota(Quota(QuotaScope.SCHEDULER, "batch", {Budget.CPU_MILLI: 2_000}))

    report = plan_of(store, BatchScheduler(), a_spec(3), 0)

    assert 2 == report.placed
    assert report.rest is not None
    assert "over_quota" == report.rest.finding.reason.value
    assert [(2_000, 0)] == [
        (now.left[Budget.CPU_MILLI], then.left[Budget.CPU_MILLI]) for now, then in report.quotas
    ]


def test_a_plan_is_committed_from_its_file_or_says_what_has_changed(
    store: PostgresStore, omega: Omega, tmp_path: Path
) -> None:
    one, two = add_a_cell(store, 2)
    spec, plan = tmp_path / "job.yaml", tmp_path / "plan.json"
    spec.write_text("{name: a, scheduler: batch, groups: [{tasks: 2, cpu: 3}]}")
    assert 0 == omega("plan", spec, "--json", plan).code
    late = tmp_path / "late.json"
    late.write_bytes(plan.read_bytes())
    other = a_running_job(store, a_spec(), [one])
    end(store, other, 0)

    refused = omega("submit", "--plan", late)
    assert 1 == refused.code
    assert "machine-1 has changed: its sequence was 0, and is 1" in refused.err
    assert 1 == len(store.jobs())
    assert 0 == omega("plan", spec, "--json", plan).code
    told = document(omega("submit", "--plan", plan, "--json", "-"))

    (row,) = told["rows"]
    tasks = json.loads(plan.read_text())["rows"]
    assert {(row["id"], it["task"]): it["machine_id"] for it in tasks} == places(store)
    assert two in {it["machine_id"] for it in tasks}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda it: it.clear(), "KeyError"),
        (lambda it: it["rows"][0].update(task=-1), "ValueError"),
        (lambda it: it["rows"][0].update(task=7), "ValueError"),
        (lambda it: it["rows"][0].update(machine_id="1"), "ValueError"),
        (lambda it: it["rows"][0].update(amounts={"cpu_milli": -1}), "ValueError"),
        (lambda it: it["rows"][0].update(amounts={"gold": 1}), "KeyError"),
        (lambda it: it["summary"].update(spec={}), "BadInput"),
        (lambda it: it["rows"].clear(), "no task of its job has a place"),
    ],
)
def test_a_file_that_is_no_plan_is_refused(
    store: PostgresStore,
    omega: Omega,
    tmp_path: Path,
    change: Callable[[dict[str, object]], None],
    what: str,
) -> None:
    add_a_cell(store, 1)
    spec, plan = tmp_path / "job.yaml", tmp_path / "plan.json"
    spec.write_text("{name: a, scheduler: batch, groups: [{tasks: 1, cpu: 3}]}")
    assert 0 == omega("plan", spec, "--json", plan).code
    changed = json.loads(plan.read_text())
    change(changed)
    plan.write_text(json.dumps(changed))

    refused = omega("submit", "--plan", plan)

    assert 2 == refused.code
    assert what in refused.err
    assert "plan.json" in refused.err
    assert [] == store.jobs()
    plan.write_text("no JSON")
    assert "it is no JSON document" in omega("submit", "--plan", plan).err
    assert 2 == omega("submit").code


def test_a_kind_that_plans_by_rounds_has_no_plan_of_one_job(
    store: PostgresStore, omega: Omega, tmp_path: Path
) -> None:
    pytest.importorskip("highspy", reason="no ml-gpu extra")
    store.add_machines(a_cell(1, gpus=1))
    spec = tmp_path / "job.yaml"
    spec.write_text("{name: a, scheduler: ml-gpu, groups: [{tasks: 1, cpu: 1, gpus: 1}]}")

    refused = omega("plan", spec, "--set", "round=360")

    assert refused.code in {1, 2}
    assert "by rounds" in refused.err


def test_while_four_race_a_plan_is_committed_as_it_is_or_not_at_all(
    database_url: str, store: PostgresStore, dose: Dose, tmp_path: Path
) -> None:
    """Each plans, and commits after the others may have: never is another placement made."""
    machines = add_a_cell(store, 4, cpu_milli=1_000_000)
    times = dose(6, 250)
    made: list[tuple[JobSpec, PlanReport, int | None, list[str]]] = []
    at_once = threading.Barrier(4)

    def race(number: int) -> None:
        with closing(PostgresStore(database_url)) as mine:
            for turn in range(times):
                spec = replace(a_spec(2, cpu_milli=10), name=f"{number}-{turn}")
                at_once.wait()
                report = plan_of(mine, BatchScheduler(), spec, 10 * turn + number)
                file = tmp_path / f"{number}.json"
                file.write_text(json.dumps({"rows": report.rows(), "summary": report.summary()}))
                planned, names = read_plan(file, uuid4())
                outcome = mine.submit_planned(planned)
                changed = [] if outcome.job else what_changed(planned, outcome, names)
                made.append((spec, report, outcome.job, changed))

    threads = [threading.Thread(target=race, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert 4 * times == len(made)
    there = places(store)
    for spec, report, job, changed in made:
        if job is None:
            assert any("has changed" in sentence for sentence in changed)
            assert [] == store.jobs_named(spec.name)
        else:
            assert {(job, it.task): it.machine_id for it in report.tasks} == {
                name: machine for name, machine in there.items() if name[0] == job
            }
    committed = [job for _, _, job, _ in made if job is not None]
    assert len(there) == 2 * len(committed)
    assert set(there.values()) <= set(machines)
    assert 0 < len(committed) < len(made)
    assert [] == list(store.verify())
