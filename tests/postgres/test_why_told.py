"""What else `why` tells, on Postgres: of placed jobs, of specs, on the command line."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from omega.lifecycle.states import ParkReason, State
from omega.model.jobs import JobSpec
from omega.reports.why.reasons import Reason
from omega.reports.why.report import why_spec
from omega.store.leases import HandBack
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_spec
from omega.testing.steps import a_leased_job, a_running_job, add_a_cell, claim, grant
from schedulers.batch import BatchScheduler
from schedulers.service import ServiceScheduler
from tests.fixtures.command_line import Omega, document
from tests.fixtures.held_up import said, why, work_until, working
from tests.fixtures.logins import Login

pytestmark = pytest.mark.usefixtures("kept_sessions")

GIB = 1_024


@pytest.fixture(autouse=True)
def _cell(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every command work on the test's own database."""
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)


def test_what_yields_is_said_to_be_evicted_and_is(database_url: str, store: PostgresStore) -> None:
    (machine,) = add_a_cell(store, 1)
    a_running_job(store, a_spec(), [machine], cpu_milli=4_000)
    with working(database_url, ServiceScheduler()) as service:
        low, high = store.submit(
            [a_spec(scheduler="service", precedence=9), a_spec(scheduler="service", precedence=10)]
        )

        assert Reason.TO_EVICT is why(store, high).finding.reason
        report = why(store, low)
        assert Reason.NO_ROOM is report.finding.reason
        assert 10 == said(report, "precedence")
        work_until(service, store, high, State.RUNNING)


def test_a_reason_that_was_stored_and_does_not_hold_any_more_is_told(
    database_url: str, store: PostgresStore
) -> None:
    (machine,) = add_a_cell(store, 1)
    blocker = a_running_job(store, a_spec(), [machine], cpu_milli=4_000)
    with working(database_url, BatchScheduler()) as batch:
        (job,) = store.submit([a_spec()])
        work_until(batch, store, job, State.PARKED)
        assert why(store, job).differs is None
        store.cancel(blocker.id)

        report = why(store, job)

        assert Reason.TO_BE_WOKEN is report.finding.reason
        assert report.differs is not None
        assert report.differs.startswith(ParkReason.NO_ROOM.value)


def test_nobody_works_on_its_kind(store: PostgresStore) -> None:
    add_a_cell(store, 1)
    (job,) = store.submit([a_spec()])

    report = why(store, job)

    assert (Reason.NO_SCHEDULER, "omega scheduler run batch") == (
        report.finding.reason,
        report.finding.next_step,
    )


def test_a_placed_job_says_by_which_transaction_and_an_ended_one_that_it_is_over(
    store: PostgresStore,
) -> None:
    one, two = add_a_cell(store, 2)
    job = a_leased_job(store, a_spec(2))
    grant(store, job, [0], [one])
    grant(store, job, [1], [two])

    report = why(store, job.id)

    assert Reason.PLACED is report.finding.reason
    assert {0: "machine-1", 1: "machine-2"} == dict(report.placements)
    assert [(1, 0), (1, 0)] == [(it.granted, it.refused) for it in report.transactions]
    store.cancel(job.id)
    assert Reason.ENDED is why(store, job.id).finding.reason


def test_a_spec_that_is_not_submitted(store: PostgresStore) -> None:
    (machine,) = add_a_cell(store, 1)
    a_running_job(store, a_spec(), [machine], cpu_milli=2_000)

    def reason(spec: JobSpec) -> Reason:
        return why_spec(store, spec, {"batch": False}.get).finding.reason

    assert Reason.WOULD_FIT is reason(a_spec(2))
    assert Reason.GANG_SHORT is reason(a_spec(3, minimum=3))
    assert Reason.NO_ROOM is reason(a_spec(cpu_milli=3_000))
    assert Reason.NEVER_FITS is reason(a_spec(cpu_milli=5_000))


def test_a_reader_asks_on_the_command_line(
    store: PostgresStore,
    login: Login,
    omega: Omega,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    one, two = add_a_cell(store, 2, cpu_milli=1_000)
    winner = a_running_job(store, a_spec(), [one])
    a_running_job(store, a_spec(), [two])
    loser = a_leased_job(store, replace(a_spec(), name="loser"))
    claim(store, loser, [0], [one])
    store.hand_back([HandBack(loser.id, loser.token, 0, progressed=False)])
    store.report("batch", "0", pid=1, facts={})
    monkeypatch.setenv("OMEGA_DATABASE_URL", login("reader", "omega_reader"))

    ran = omega("why", "loser")
    told = document(omega("why", loser.id, "--json", "-"))

    assert 0 == ran.code, ran.err
    assert "no_room" in ran.out
    assert f"taken by batch 0 for job {winner.id}" in ran.out
    assert "no_room" == told["summary"]["reason"]
    assert [2, 2, 2, 0] == [row["left"] for row in told["rows"]]
    rules = omega("why", loser.id, "--machine", "machine-2", "--task", "0")
    assert re.search(r"no +1 core free +nothing free", rules.out), rules.out
    spec = tmp_path / "job.yaml"
    spec.write_text("{name: a, scheduler: batch, groups: [{tasks: 1, cpu: 9}]}")
    assert "never_fits" in omega("why", "--spec", spec).out
    for wrong, field in (
        (["loser", "--machine", "machine-9"], "--machine"),
        (["loser", "--task", "1"], "--task"),
        ([], "JOB"),
        (["nobody"], "nobody"),
    ):
        refused = omega("why", *wrong)
        assert refused.code in {1, 2}
        assert field in refused.err
