"""Verbs around the queue: standard input, unknown kinds, several jobs, narrowed lists."""

import io
from dataclasses import replace
from types import SimpleNamespace

import pytest

from omega.lifecycle.states import State
from omega.model.machines import MachineState
from omega.model.outcomes import Verdict
from omega.store.leases import HandBack
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_claim, a_spec, a_transaction, claims_of_job, evicting
from omega.testing.steps import a_running_job, add_a_cell, submit_and_lease
from tests.fixtures.command_line import Omega, document, summary

pytestmark = pytest.mark.usefixtures("kept_sessions")

SPEC = "name: web\nscheduler: {kind}\ngroups:\n- tasks: 3\n  cpu: 1\n"


@pytest.fixture(autouse=True)
def _cell(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    """Standard input, to be filled."""
    content = io.BytesIO()
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=content))
    return content


def fill(given: io.BytesIO, text: str) -> None:
    given.write(text.encode())
    given.seek(0)


def test_standard_input_is_submitted(omega: Omega, store: PostgresStore, given: io.BytesIO) -> None:
    fill(given, SPEC.format(kind="batch"))

    ran = omega("submit", "-")

    assert (0, "Submitted job 1.\n", "") == ran
    assert [("web", 3)] == [(job.name, job.tasks) for job in store.jobs()]


def test_standard_input_is_named_in_errors(omega: Omega, given: io.BytesIO) -> None:
    fill(given, "name: web\nscheduler: batch\ngroups: 7\n")

    ran = omega("submit", "-")

    assert (2, "omega: standard input, line 3, field groups: 7 is not a list\n") == (
        ran.code,
        ran.err,
    )


def test_a_kind_that_nobody_knows_is_warned_of_and_the_remedy_holds(
    omega: Omega, store: PostgresStore, given: io.BytesIO
) -> None:
    fill(given, SPEC.format(kind="bacth"))

    submitted = omega("submit", "-")
    shown = omega("job", 1)

    assert 0 == submitted.code
    assert submitted.err.startswith("omega: no scheduler 'bacth' is installed here")
    assert "did you mean 'batch'?" in submitted.err
    assert "omega scheduler run bacth" not in shown.out
    assert "cancel the job and submit" in " ".join(shown.out.split())


def test_a_kind_that_reports_is_known(
    omega: Omega, store: PostgresStore, given: io.BytesIO
) -> None:
    store.report("bacth", "0", pid=1, facts={})
    fill(given, SPEC.format(kind="bacth"))

    assert "" == omega("submit", "-").err


def test_several_jobs_are_cancelled_by_number_and_name(omega: Omega, store: PostgresStore) -> None:
    ids = store.submit([a_spec(), replace(a_spec(), name="web"), a_spec()])
    store.cancel(ids[2])

    ran = omega("cancel", ids[0], "web", ids[2], 99, ids[0])

    assert 1 == ran.code
    assert f"Job {ids[0]} is cancelled.\nJob {ids[1]} is cancelled.\n" == ran.out
    assert [
        f"omega: job {ids[2]} is over already: cancelled",
        "omega: there is no job 99",
    ] == ran.err.splitlines()
    assert {State.CANCELLED} == {job.state for job in store.jobs()}


def test_jobs_are_narrowed_by_tenant_and_name(omega: Omega, store: PostgresStore) -> None:
    names = (("train-1", "ann"), ("train-2", "bob"), ("web", "ann"))
    store.submit([replace(a_spec(tenant=of), name=name) for name, of in names])

    def listed(*words: str) -> list[object]:
        return [row["name"] for row in document(omega("jobs", *words, "--json", "-"))["rows"]]

    assert ["web", "train-1"] == listed("--tenant", "ann")
    assert ["train-2", "train-1"] == listed("--name", "train-*")
    assert "There are no such jobs.\n" == omega("jobs", "--name", "train").out


def test_machines_are_listed_by_name_state_and_attribute(
    omega: Omega, store: PostgresStore
) -> None:
    ids = store.add_machines(a_cell(4, gpus=2, attributes={"zone": ["a", "a", "b", "b"]}))
    store.set_state(ids[1:3], MachineState.DRAINING)

    def listed(*words: str) -> list[object]:
        return [
            row["machine"] for row in document(omega("cell", "list", *words, "--json", "-"))["rows"]
        ]

    names = listed()
    assert 4 == len(names)
    assert names[1:3] == listed("--state", "draining")
    assert names[1:2] == listed("--state", "draining", "--where", "zone=a")
    assert [] == listed("--state", "gone")
    assert {"machines": 4} == summary(omega("cell", "list", "--limit", 1, "--json", "-"))
    shown = omega("cell", "list", "--limit", 1).out
    assert "and 3 machines more; see --limit" in shown
    assert "2 of 2" in shown, "GPUs"
    assert 2 == omega("cell", "list", "--state", "dwon").code


def test_jobs_are_held_released_and_moved_forward(omega: Omega, store: PostgresStore) -> None:
    first, second = store.submit([replace(a_spec(), name="web"), a_spec()])

    assert f"Job {first} is held.\n" == omega("hold", "web").out
    assert f"omega: job {first} is held: omega release {first}\n" == omega("requeue", first).err
    assert "omega release JOB" in omega("job", "web").out
    assert f"Job {first} has precedence -3.\n" == omega("requeue", first, "--precedence", -3).out
    assert f"Job {first} is in the queue again.\n" == omega("release", first).out
    again = omega("release", first, second)
    assert (1, 2) == (again.code, again.err.count("is not held"))
    assert f"Job {second} is in the queue.\n" == omega("requeue", second).out
    assert [(second, 0), (first, -3)] == [(job.id, job.precedence) for job in store.jobs()]
    store.lease("batch", holder="b", jobs_max=9, lease_ms=60_000)
    assert f"omega: job {first} is being planned: hold it, change it, and release it\n" == (
        omega("requeue", first).err
    )
    store.cancel(second)
    assert "is over already: cancelled" in omega("hold", second).err


def test_a_changed_precedence_breaks_no_invariant(store: PostgresStore) -> None:
    """Evictions of before are judged by the precedence of then."""
    (machine,) = add_a_cell(store, 1)
    victim = a_running_job(store, a_spec(), [machine], cpu_milli=4_000)
    (evictor,) = submit_and_lease(store, a_spec(2, precedence=50))
    claim = evicting(a_claim(0, machine=machine, cpu_milli=4_000), (0, victim.id, 0))
    evicts = a_transaction(claims_of_job(evictor, claim))
    assert [Verdict.ACCEPTED] == store.commit(evicts).verdicts.tolist()
    store.hand_back([HandBack(evictor.id, evictor.token, 0, progressed=True)])

    assert store.set_precedence(victim.id, 60)
    assert store.set_precedence(evictor.id, -5)
    assert [] == store.verify()
