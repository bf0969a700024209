"""No call of the hot paths reads a whole table, however much there is: plans are kept, so a wrong
guess made once stays."""

import numpy as np
import psycopg

from omega.limits import LIMITS
from omega.model.arrays import integers
from omega.model.exits import Exit, ExitCause, TaskExit, TaskOutput
from omega.model.jobs import LeasedJob
from omega.model.lanes import Lane
from omega.store.inquiries import LINE_MAX
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job, evicting
from omega.testing.progress_contract import a_job_in_steps, report, told
from omega.testing.steps import (
    LONG_MS,
    a_leased_job,
    a_running_job,
    add_a_cell,
    end,
    grant,
    submit_and_lease,
)

MANY = 3_000
TOGETHER = 250
READ_WHOLE = (
    "SELECT relname::text FROM pg_stat_xact_user_tables"
    " WHERE schemaname = 'omega' AND relname = ANY (%s) AND seq_tup_read > 100"
)
REPEATED = """
    INSERT INTO omega.transaction
        (id, scheduler, replica, by_sequence, jobs, ends, tasks, machines, verdicts)
    SELECT gen_random_uuid(), scheduler, replica, by_sequence, jobs, ends, tasks, machines, verdicts
      FROM omega.transaction, generate_series(1, 250)
"""
"""A dozen transactions are read whole sooner than found by their keys."""
BIG = ["allocation", "job", "job_spec", "machine", "machine_change", "transaction"]


def run_many(store: PostgresStore) -> None:
    """Let a job of one task run on each machine."""
    jobs = submit_and_lease(store, *[a_spec(1)] * MANY)
    for first in range(0, MANY, TOGETHER):
        claims_by_job = [
            claims_of_job(job, a_claim(0, machine=machine))
            for machine, job in enumerate(jobs[first : first + TOGETHER], start=first + 1)
        ]
        assert store.commit(a_transaction(*claims_by_job)).accepted.all()


def commit_some(store: PostgresStore, job: LeasedJob, _running: LeasedJob) -> None:
    grant(store, job, [0, 1], [5, 6])


def evict_one(store: PostgresStore, job: LeasedJob, running: LeasedJob) -> None:
    claims = evicting(a_claim(0, machine=1), (0, running.id, 0))
    store.commit(a_transaction(claims_of_job(job, claims)))


def end_one(store: PostgresStore, _job: LeasedJob, running: LeasedJob) -> None:
    end(store, running, 0)


def end_one_and_look(store: PostgresStore, job: LeasedJob, running: LeasedJob) -> None:
    (mark,) = store._link.call("SELECT pg_current_xact_id()::text::bigint")[0]  # noqa: SLF001
    end_one(store, job, running)
    assert [1] == store.changes_since(mark).rows.id.tolist()


def report_on_one(store: PostgresStore, _job: LeasedJob, running: LeasedJob) -> None:
    report(store, running.id, 1, 1)
    told(store, running.id)


def ask_of_many(store: PostgresStore, _job: LeasedJob, _running: LeasedJob) -> None:
    """An agent asks of as many tasks as it may, of some thousands."""
    jobs = integers(range(1, LIMITS.tasks_per_release_max + 1))
    tasks = np.zeros(len(jobs), dtype=np.intp)
    assert not store.running(jobs, tasks, jobs).any()
    assert len(jobs) == len(store.programs(jobs))
    store.machine_revision(1)


def report_exits_of_some(store: PostgresStore, _job: LeasedJob, running: LeasedJob) -> None:
    jobs = [*range(1, 50), running.id]
    one_by_one = [store.allocations_of([number]) for number in jobs]  # found by their keys
    named = [
        (number, 0, int(live.started_ms[0])) for number, live in zip(jobs, one_by_one, strict=True)
    ]
    store.report_outputs([TaskOutput(*name, "stdout", 1, b"x") for name in named])
    lost = Exit(cause=ExitCause.LOST)
    assert len(jobs) == store.report_exits([TaskExit(*name, lost) for name in named])
    assert store.output(running.id, 0, "stdout") is not None


def ask_why(store: PostgresStore, job: LeasedJob, running: LeasedJob) -> None:
    """Some thousands of jobs wait before it, and their records are many."""
    assert store.waiting_job(job.id) is not None
    assert LINE_MAX == store.line_before("batch", -1, job.id, jobs_max=3).higher
    assert 1 == len(store.transactions_of(running.id, transactions_max=5))


def lease_from_a_lane(store: PostgresStore, _job: LeasedJob, _running: LeasedJob) -> None:
    """Some thousands of jobs wait in the lane."""
    (head,) = store.lanes("batch")
    lanes = {head.lane: 5, Lane("nobody", 0): 4}
    leased = store.lease("batch", holder="0", jobs_max=9, lease_ms=LONG_MS, lanes=lanes)
    assert 5 == len(leased)
    assert [] == store.parked("batch", jobs_max=5, by_lane=True)


CALLS = (
    ask_why,
    lease_from_a_lane,
    commit_some,
    evict_one,
    end_one,
    end_one_and_look,
    report_on_one,
    ask_of_many,
    report_exits_of_some,
)


def test_a_call_reads_what_it_names_alone(store: PostgresStore, database_url: str) -> None:
    """Each call is undone before the next, which finds the same 3,000 machines and jobs."""
    add_a_cell(store, MANY)
    run_many(store)
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute(REPEATED)
    running = a_running_job(store, a_job_in_steps(1), [1])
    job = a_leased_job(store, a_spec(3, precedence=50))
    store.submit([a_spec(1)] * MANY)
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute("ANALYZE")
    connection = store._link._open()  # noqa: SLF001 - a transaction's own books are read within it
    read_whole = {}
    for call in CALLS:
        connection.autocommit = True
        connection.execute("SELECT pg_stat_force_next_flush()")  # of what came before
        connection.autocommit = False
        call(store, job, running)
        read_whole[call.__name__] = connection.execute(READ_WHOLE, (BIG,)).fetchall()
        connection.rollback()

    assert {call.__name__: [] for call in CALLS} == read_whole
