"""What is over for long is removed, at work, and nothing that somebody may still ask for."""

from collections.abc import Callable
from contextlib import closing
from functools import partial

import psycopg
import pytest

from omega.errors import BadInput, NotAllowed
from omega.lifecycle.states import State
from omega.model.arrays import integers
from omega.model.claims import Transaction
from omega.model.jobs import LeasedJob
from omega.model.machines import MachineState
from omega.model.outcomes import Verdict
from omega.store.leases import HandBack
from omega.store.postgres import history
from omega.store.postgres.connection import Link
from omega.store.postgres.history import prune
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job, evicting
from omega.testing.progress_contract import a_job_in_steps, report, told
from omega.testing.steps import LONG_MS, a_leased_job, a_running_job, add_a_cell, end
from tests.fixtures.at_work import wait_until
from tests.fixtures.command_line import Omega, document
from tests.fixtures.logins import Login

pytestmark = pytest.mark.usefixtures("kept_sessions")

DAY_MS = 24 * 60 * 60 * 1_000
AGE = """
    UPDATE omega.transaction SET committed_at = committed_at - interval '40 days';
    UPDATE omega.ended_task SET ended_at = ended_at - interval '40 days';
    UPDATE omega.job SET finished_at = finished_at - interval '40 days'
"""

Counts = dict[str, int]


def counts(url: str) -> Counts:
    with psycopg.connect(url) as connection:
        return {
            table: connection.execute(f"SELECT count(*) FROM omega.{table}".encode()).fetchone()[0]  # type: ignore[index]
            for table in ("transaction", "ended_task", "job", "job_spec", "allocation")
        }


def grow_old(url: str) -> None:
    """Let all that has happened have happened forty days ago."""
    with psycopg.connect(url) as connection:
        connection.execute(AGE.encode())


def is_settled(url: str) -> bool:
    """Say whether no delta may repeat a commit; other tests' transactions hold marks back, too."""
    with psycopg.connect(url) as connection:
        (settled,) = connection.execute(
            "SELECT NOT EXISTS (SELECT FROM omega.transaction"
            " WHERE changed_by >= pg_snapshot_xmin(pg_current_snapshot()))"
        ).fetchone() or (False,)
    return bool(settled)


def pruned(
    url: str,
    *,
    days: int = 30,
    told: Callable[[int, int], None] | None = None,
    at_once: bool = False,
) -> Counts:
    """Prune; return how many rows went, but for changes of machines, which have no age, and for
    what programs and pipelines have left.
    """
    if not at_once:
        wait_until(partial(is_settled, url), "transactions of others to end")
    removed = dict(
        prune(
            url,
            older_than_ms=days * DAY_MS,
            statement_timeout_ms=30_000,
            progress=told or (lambda _done, _total: None),
        )
    )
    of_pipelines = ("pipeline", "stage_cost", "pipeline_tokens")
    for table in ("machine_change", "task_exit", "task_output", *of_pipelines):
        del removed[table]
    return removed


def a_finished_job(store: PostgresStore, machines: list[int], tasks: int = 2) -> LeasedJob:
    job = a_running_job(store, a_spec(tasks=tasks), machines * tasks)
    end(store, job, *range(tasks))
    return job


@pytest.fixture
def machines(store: PostgresStore) -> list[int]:
    return add_a_cell(store, 1)


def test_what_is_over_for_long_goes_and_the_rest_stays(
    store: PostgresStore, database_url: str, machines: list[int]
) -> None:
    over = a_finished_job(store, machines)
    half_over = a_running_job(store, a_spec(tasks=2), machines * 2)
    end(store, half_over, 0)
    grow_old(database_url)
    recent = a_finished_job(store, machines)

    assert {"transaction": 2, "ended_task": 3, "job": 1} == pruned(database_url)
    assert {
        "transaction": 1,
        "ended_task": 2,
        "job": 2,
        "job_spec": 2,
        "allocation": 1,
    } == counts(database_url)
    assert store.job(over.id) is None
    assert {State.RUNNING: 1, State.SUCCEEDED: 1} == store.use().jobs_by_state
    assert store.job(recent.id) is not None
    assert [] == list(store.verify())

    end(store, half_over, 1)

    assert {State.SUCCEEDED: 2} == store.use().jobs_by_state
    assert [] == list(store.verify())
    assert {"transaction": 0, "ended_task": 0, "job": 0} == pruned(database_url)


def test_the_progress_of_a_job_goes_with_it(store: PostgresStore, database_url: str) -> None:
    gone, stays = store.submit([a_job_in_steps(), a_job_in_steps()])
    for job in (gone, stays):
        report(store, job, 5, 50)
    store.cancel(gone)
    grow_old(database_url)

    assert 1 == pruned(database_url)["job"]
    assert [(stays, 5, 50)] == told(store, gone, stays)
    with psycopg.connect(database_url) as connection:
        assert [(stays,)] == connection.execute("SELECT job_id FROM omega.progress").fetchall()


def test_a_cancelled_job_goes_too(store: PostgresStore, database_url: str) -> None:
    (job,) = store.submit([a_spec()])
    store.cancel(job)
    grow_old(database_url)

    assert 1 == pruned(database_url)["job"]


def test_a_repeated_id_that_is_young_is_answered_and_one_that_is_gone_grants_nothing(
    store: PostgresStore, database_url: str, machines: list[int]
) -> None:
    def commit(job: LeasedJob) -> Transaction:
        transaction = a_transaction(claims_of_job(job, a_claim(machine=machines[0])))
        assert store.commit(transaction).accepted.all()
        return transaction

    first = a_leased_job(store, a_spec(tasks=2))
    old = commit(first)
    store.hand_back([HandBack(first.id, first.token, LONG_MS, progressed=True)])
    grow_old(database_url)
    young = commit(a_leased_job(store, a_spec(tasks=2)))
    removed = pruned(database_url)

    assert 1 == removed["transaction"]
    assert [Verdict.ACCEPTED] == store.commit(young).verdicts.tolist()
    assert 1 == store.counts["repeated_commits"]
    assert [Verdict.LEASE_LOST] == store.commit(old).verdicts.tolist()
    assert 2 == len(store.allocations())
    assert [] == list(store.verify())


def test_a_commit_stays_while_its_lease_may_be_held(
    store: PostgresStore, database_url: str, machines: list[int]
) -> None:
    """Or a task that has come back to the job would be granted to whoever repeats the commit."""
    job = a_leased_job(store, a_spec(tasks=2))
    transaction = a_transaction(claims_of_job(job, a_claim(machine=machines[0])))
    store.commit(transaction)
    store.set_state(integers([machines[0]]), MachineState.DOWN)
    assert 1 == store.lose_tasks(integers([machines[0]]))
    store.set_state(integers([machines[0]]), MachineState.OPEN)
    grow_old(database_url)

    assert 0 == pruned(database_url)["transaction"]
    assert [Verdict.ACCEPTED] == store.commit(transaction).verdicts.tolist()
    assert 0 == len(store.allocations()), "it is answered, and not applied"
    store.hand_back([HandBack(job.id, job.token, 0, progressed=True)])
    assert 1 == pruned(database_url)["transaction"]


def test_a_commit_that_a_delta_may_still_repeat_stays(
    store: PostgresStore, database_url: str, machines: list[int]
) -> None:
    with psycopg.connect(database_url) as idle:
        idle.execute("SELECT pg_current_xact_id()")
        _, mark = store.allocations_since(0)
        job = a_running_job(store, a_spec(), machines)
        grow_old(database_url)
        kept = pruned(database_url, at_once=True)["transaction"]
        told, _ = store.allocations_since(mark)

    assert 0 == kept
    assert [job.id] == told.job.tolist()
    assert 1 == pruned(database_url)["transaction"]


def test_a_job_stays_while_a_commit_as_old_as_its_end_is_on_record(
    store: PostgresStore, database_url: str, machines: list[int]
) -> None:
    """Or nobody could tell by what right it evicted."""
    with psycopg.connect(database_url) as idle:
        idle.execute("SELECT pg_current_xact_id()")
        victim = a_running_job(store, a_spec(), machines)
        high = a_leased_job(store, a_spec(precedence=50))
        claim = evicting(a_claim(machine=machines[0]), (0, victim.id, 0))
        assert store.commit(a_transaction(claims_of_job(high, claim))).accepted.all()
        end(store, high, 0)
        grow_old(database_url)
        kept = pruned(database_url, at_once=True)

    assert {"transaction": 0, "ended_task": 2, "job": 0} == kept
    assert [] == list(store.verify())
    assert {"transaction": 2, "ended_task": 0, "job": 1} == pruned(database_url)
    assert [] == list(store.verify())


def test_nobody_is_waited_for(store: PostgresStore, database_url: str, machines: list[int]) -> None:
    held, free = (a_finished_job(store, machines) for _ in range(2))
    grow_old(database_url)
    with psycopg.connect(database_url) as other:
        other.execute("SELECT FROM omega.job WHERE id = %s FOR KEY SHARE", (held.id,))
        removed = pruned(database_url)["job"]

    assert 1 == removed
    assert store.job(free.id) is None
    assert store.job(held.id) is not None
    assert 1 == pruned(database_url)["job"]


def test_a_long_table_is_gone_through_block_by_block(
    store: PostgresStore,
    database_url: str,
    machines: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(history, "BLOCKS_AT_A_TIME", 1)
    tasks = 300
    job = a_running_job(store, a_spec(tasks=tasks), machines * tasks, cpu_milli=1)
    end(store, job, *range(tasks))
    grow_old(database_url)
    told: list[tuple[int, int]] = []

    removed = pruned(database_url, told=lambda done, total: told.append((done, total)))

    assert {"transaction": 1, "ended_task": tasks, "job": 1} == removed
    assert [(n, len(told)) for n in range(1, len(told) + 1)] == told
    assert 4 < len(told), "several blocks of ended_task alone"
    assert [] == list(store.verify())


def test_a_table_that_is_no_history_is_refused(database_url: str) -> None:
    with (
        closing(Link(database_url, application_name="t", statement_timeout_ms=1_000)) as link,
        pytest.raises(BadInput, match="there is no history in machine"),
    ):
        link.call("SELECT omega.prune_history('machine', 0, 0, 1)")


def test_the_command_says_what_it_removed(
    omega: Omega,
    store: PostgresStore,
    database_url: str,
    machines: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    a_finished_job(store, machines)
    grow_old(database_url)
    nothing = omega("db", "prune", "--older-than", "50d")
    wait_until(partial(is_settled, database_url), "transactions of others to end")
    told = document(omega("db", "prune", "--older-than", "30d", "--json", "-"))

    assert "Removed: 0 commits, 0 ended tasks, 0 jobs.\n" == nothing.out
    assert {"pruned": 4} == told["summary"]
    assert {"table": "job", "rows": 1} in told["rows"]


@pytest.mark.parametrize("text", ["59m", "11000d", "soon", "0s", "-3d"])
def test_an_age_that_makes_no_sense_is_bad_usage(
    omega: Omega, database_url: str, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    ran = omega("db", "prune", f"--older-than={text}")

    assert (2, "") == (ran.code, ran.out)
    assert "--older-than" in ran.err


@pytest.mark.parametrize(
    "role", ["omega_scheduler", "omega_node", "omega_submitter", "omega_reader"]
)
def test_it_is_the_owners_alone(
    store: PostgresStore, database_url: str, machines: list[int], login: Login, role: str
) -> None:
    a_finished_job(store, machines)
    grow_old(database_url)
    before = counts(database_url)

    with pytest.raises(NotAllowed, match="permission denied for function forget_changes"):
        pruned(login(role, role), at_once=True)
    assert before == counts(database_url)
