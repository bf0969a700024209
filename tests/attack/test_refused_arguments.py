"""Functions refuse invalid arguments before they change anything."""

import pytest
from psycopg.types.json import Jsonb

from tests.attack.audit import violations
from tests.attack.calls import (
    Claim,
    Lease,
    Transaction,
    call,
    lease_jobs,
    make_transaction,
    step,
    submit_jobs,
    try_call,
)
from tests.attack.hostile_names import INVALID
from tests.attack.machine_rows import add_machines, running_tasks
from tests.attack.sessions import Database, Session
from tests.attack.wires import a_group, a_job

OVER_LIMIT = 10_001
INTEGER_MAX = 2**31 - 1


@pytest.fixture
def lease(owner: Session, submitter: Session, scheduler: Session) -> Lease:
    """A lease of a job with three tasks."""
    add_machines(owner, 2)
    submit_jobs(submitter, a_job(a_group(tasks=3)))
    (lease,) = lease_jobs(scheduler)
    return lease


def test_commit_claims_refuses_null_for_each_argument(
    database: Database, scheduler: Session, lease: Lease
) -> None:
    answers = []
    for at in range(20):
        arguments = make_transaction(1, Claim(lease, 0, 1)).arguments
        arguments[at] = None
        answers.append(try_call(scheduler, "commit_claims", *arguments).sqlstate)

    assert [INVALID] * 20 == answers
    assert [] == running_tasks(database)


def test_claims_with_extreme_integers_are_not_granted(
    database: Database, scheduler: Session, lease: Lease
) -> None:
    claims = (
        Claim(lease, INTEGER_MAX, 1),
        Claim(lease, 0, INTEGER_MAX),
        Claim(lease, -(2**31), -(2**31)),
        Claim(lease, 1, 1, (INTEGER_MAX,) * 11),
        Claim(Lease(2**63 - 1, lease.token), 0, 1),
    )
    answers = [
        try_call(scheduler, "commit_claims", *make_transaction(n, claim).arguments)
        for n, claim in enumerate(claims)
    ]

    assert {"", INVALID}.issuperset({it.sqlstate for it in answers})
    assert all(0 not in it.rows[0][0] for it in answers if it.rows)
    assert [] == running_tasks(database)
    assert [] == violations(database)


def test_commit_claims_limits_the_number_of_alternates_and_evictions(
    database: Database, scheduler: Session, lease: Lease
) -> None:
    for claim in (
        Claim(lease, 0, 1, alternates=(2,) * OVER_LIMIT),
        Claim(lease, 0, 1, evicts=((lease.job, 0),) * OVER_LIMIT),
    ):
        transaction = Transaction(lease.token, (claim,))
        assert INVALID == try_call(scheduler, "commit_claims", *transaction.arguments).sqlstate
    assert [] == running_tasks(database)


def test_read_changes_refuses_a_number_of_parts_below_one(scheduler: Session) -> None:
    read = "SELECT * FROM omega.read_changes(0, %s::integer, '{0}')"
    answers = [scheduler.try_execute(read, [parts]).sqlstate for parts in (0, -1, None)]

    assert [INVALID] * 3 == answers
    assert not scheduler.try_execute(read, [1]).sqlstate


def test_prune_history_refuses_block_numbers_that_no_table_has(owner: Session) -> None:
    blocks = ((-1, 1), (0, 0), (0, -1), (2**32, 1), (2**63 - 1, 1), (0, 2**63 - 1), (None, 1))
    answers = [try_call(owner, "prune_history", "transaction", 0, *it).sqlstate for it in blocks]

    assert [INVALID] * len(blocks) == answers
    assert INVALID == try_call(owner, "prune_history", "job_spec", 0, 0, 1).sqlstate


def test_report_process_refuses_a_missing_process_id(scheduler: Session) -> None:
    assert INVALID == try_call(scheduler, "report_process", "k", "0", None, Jsonb({})).sqlstate


def test_facts_hold_only_numbers_that_fit_a_double(scheduler: Session) -> None:
    report = "SELECT omega.report_process('k', '0', 1, %s::jsonb)"
    numbers = ("1.79e308", "-1.79e308", "1.799e308", "-1.799e308", "1.8e308", "1e309")
    answers = [scheduler.try_execute(report, [f'{{"a": {number}}}']).sqlstate for number in numbers]

    assert ["", "", INVALID, INVALID, INVALID, INVALID] == answers


def test_facts_have_sixteen_levels_at_most(scheduler: Session) -> None:
    report = "SELECT omega.report_process('k', '0', 1, %s::jsonb)"
    answers = [
        scheduler.try_execute(report, ['{"a": ' + "[" * arrays + "1" + "]" * arrays + "}"]).sqlstate
        for arrays in (15, 16)
    ]

    assert ["", INVALID] == answers


def test_report_progress_refuses_impossible_steps_and_run_times(
    database: Database, owner: Session, submitter: Session, scheduler: Session
) -> None:
    add_machines(owner, 1)
    submit_jobs(submitter, a_job(work={"kind": "a", "steps": 5}))
    (lease,) = lease_jobs(scheduler)
    call(scheduler, "commit_claims", *make_transaction(1, Claim(lease, 0, 1)).arguments)
    for steps, run_ms in ((1, 2**63 - 1), (1, -1), (-1, 1), (None, 1)):
        answer = try_call(owner, "report_progress", [lease.job], [steps], [run_ms])
        assert INVALID == answer.sqlstate, (steps, run_ms)
    assert not try_call(owner, "report_progress", [lease.job], [2**63 - 1], [1_000]).sqlstate
    assert [(5, 1_000)] == database.query("SELECT steps, run_ms FROM omega.progress")


def test_hand_back_jobs_refuses_delays_above_a_day(
    database: Database, scheduler: Session, lease: Lease
) -> None:
    given = [[lease.job], [lease.token]]
    for delay in (86_400_001, 315_576_000_000, -1, None):
        answer = try_call(scheduler, "hand_back_jobs", *given, [delay], [True])
        assert INVALID == answer.sqlstate, delay
    assert [("planning",)] == database.query("SELECT state FROM omega.job")
    assert [(1,)] == call(scheduler, "hand_back_jobs", *given, [86_400_000], [True])


def test_a_login_cannot_block_or_overwrite_the_reports_of_another(
    database: Database, scheduler: Session
) -> None:
    """Two logins may report under one name; each has a row of its own."""
    hostile = database.session_of("hostile", "attack_hostile_node", "omega_node")
    call(hostile, "report_process", "batch", "taken", 1, Jsonb({}))
    hostile.execute("BEGIN")
    call(hostile, "report_process", "batch", "open", 1, Jsonb({}))
    call(hostile, "report_process", "batch", "taken", 1, Jsonb({}))

    for replica in ("open", "taken"):
        assert step(database, scheduler, "report_process", "batch", replica, 2, Jsonb({}))
        assert not scheduler.answer.sqlstate, scheduler.answer.message
        assert step(database, scheduler, "forget_process", "batch", replica)
        assert not scheduler.answer.sqlstate, scheduler.answer.message
    hostile.execute("COMMIT")
    assert [(2,)] == database.query("SELECT count(*) FROM omega.process")
    call(scheduler, "forget_process", "batch", "taken")
    assert [(2,)] == database.query("SELECT count(*) FROM omega.process")


SETTINGS = (
    "SET random_page_cost = 1e12",
    "SET enable_indexscan = off; SET random_page_cost = 1e12; SET seq_page_cost = 0",
    "SET enable_indexscan = off; SET enable_nestloop = off; SET cpu_tuple_cost = 0",
    "SET cpu_operator_cost = 1e12; SET cpu_index_tuple_cost = 1e12",
    "SET enable_sort = off; SET enable_material = off; SET enable_memoize = off",
    "SET effective_cache_size = 1; SET work_mem = '64kB'; SET join_collapse_limit = 1",
)


def test_machines_are_locked_in_id_order_under_any_planner_settings(
    database: Database, owner: Session, scheduler: Session, lease: Lease
) -> None:
    owner.execute("VACUUM FULL omega.machine")  # no room of earlier tests' rows is used again
    add_machines(owner, 200)
    owner.execute("UPDATE omega.machine SET state = state WHERE id = 1")
    owner.execute("ANALYZE omega.machine")
    assert [(2,)] == database.query("SELECT id FROM omega.machine ORDER BY ctid LIMIT 1")
    unlocked = "SELECT id FROM omega.machine WHERE id = 2 FOR NO KEY UPDATE SKIP LOCKED"
    claims = (Claim(lease, 0, 2), Claim(lease, 1, 1))
    for settings in SETTINGS:
        for statement in (*settings.split("; "), "SET jit = off", "DISCARD PLANS", "BEGIN"):
            scheduler.execute(statement)
        owner.execute("BEGIN")
        owner.execute("SELECT FROM omega.machine WHERE id = 1 FOR NO KEY UPDATE")

        assert not step(
            database, scheduler, "commit_claims", *make_transaction(1, *claims).arguments
        ), settings
        assert [(2,)] == database.query(unlocked), settings
        owner.execute("COMMIT")
        assert [0, 0] == scheduler.answer.rows[0][0]
        scheduler.execute("ROLLBACK")
        scheduler.execute("RESET ALL")
    assert [] == violations(database)
