"""Writing functions refuse every isolation level but READ COMMITTED.

At the stricter levels a function would judge by a snapshot that was taken before it waited for a
lock.
"""

import pytest

from tests.attack.audit import violations
from tests.attack.calls import (
    Claim,
    call,
    call_sql,
    commit,
    lease_jobs,
    make_transaction,
    start,
    submit_jobs,
    try_call,
)
from tests.attack.machine_rows import add_machines, running_tasks
from tests.attack.sessions import Database, Session
from tests.attack.wires import UNLIMITED, a_group, a_job

NOT_SUPPORTED = "0A000"
LEVELS = ("REPEATABLE READ", "SERIALIZABLE")
WRITERS = """
    SELECT p.proname, r.rolname,
           array_to_string(ARRAY(SELECT 'NULL::' || format_type(t, NULL)
                                   FROM unnest(p.proargtypes) AS t), ', ')
      FROM pg_proc p JOIN pg_roles r
        ON r.rolname LIKE 'omega\\_%' AND has_function_privilege(r.oid, p.oid, 'EXECUTE')
     WHERE p.pronamespace = 'omega'::regnamespace AND p.provolatile = 'v'
       AND r.rolname IN ('omega_scheduler', 'omega_node', 'omega_submitter', 'omega_reader')
     ORDER BY 1, 2
"""
"""Each volatile function that a role may execute, with NULL for each argument."""
OWNER_FUNCTIONS = (
    "set_state",
    "resize_machine",
    "set_quota",
    "count_quota",
    "remove_quota",
    "set_tenant",
    "remove_tenant",
    "assign_machines",
    "forget_changes",
    "prune_history",
)


def test_each_writing_function_of_a_role_refuses_other_levels(database: Database) -> None:
    writers = database.query(WRITERS)
    sessions = {role: database.session(role, role) for role in {role for _, role, _ in writers}}
    answers = []
    for level in LEVELS:
        for name, role, nulls in writers:
            session = sessions[role]
            session.execute(f"BEGIN ISOLATION LEVEL {level}")
            answers.append((name, session.try_execute(f"SELECT omega.{name}({nulls})").sqlstate))
            session.execute("ROLLBACK")

    assert len({name for name, _ in answers}) > 15
    assert {(name, NOT_SUPPORTED) for name, _ in answers} == set(answers)


@pytest.mark.parametrize("level", LEVELS)
def test_each_function_of_the_owner_refuses_other_levels(
    owner: Session, database: Database, level: str
) -> None:
    ((all_functions,),) = database.query(
        "SELECT array_agg(proname::text) FROM pg_proc WHERE pronamespace = 'omega'::regnamespace"
    )
    owner.execute(f"SET default_transaction_isolation = '{level}'")
    answers = {
        name: try_call(owner, name, *[None] * call_sql(name).count("%s")).sqlstate
        for name in OWNER_FUNCTIONS
    }
    added = owner.try_execute("SELECT omega.add_machines(0, '{}', '{}', '{}', '{}')").sqlstate

    assert set(all_functions).issuperset(OWNER_FUNCTIONS)
    assert dict.fromkeys(OWNER_FUNCTIONS, NOT_SUPPORTED) == answers
    assert NOT_SUPPORTED == added


@pytest.mark.parametrize(
    "settings",
    [
        ["SET default_transaction_isolation = 'repeatable read'", "BEGIN"],
        ["BEGIN", "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"],
        ["SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE", "BEGIN"],
        ["BEGIN ISOLATION LEVEL REPEATABLE READ"],
        ["BEGIN ISOLATION LEVEL SERIALIZABLE", "SAVEPOINT one"],
    ],
)
def test_a_commit_on_an_old_snapshot_grants_nothing(
    database: Database,
    owner: Session,
    submitter: Session,
    scheduler: Session,
    settings: list[str],
) -> None:
    add_machines(owner, 1)
    submit_jobs(submitter, a_job())
    (lease,) = lease_jobs(scheduler)
    for setting in settings:
        scheduler.execute(setting)
    call(scheduler, "read_mark")
    # The snapshot is older than the quota.
    call(owner, "set_quota", "tenant", "ann", [0] * 5)

    refused = try_call(
        scheduler, "commit_claims", *make_transaction(1, Claim(lease, 0, 1)).arguments
    )
    scheduler.execute("ROLLBACK")

    assert NOT_SUPPORTED == refused.sqlstate
    assert [] == running_tasks(database)
    assert [] == violations(database)


def test_a_commit_at_read_uncommitted_sees_a_new_quota_or_is_refused(
    database: Database, owner: Session, submitter: Session, scheduler: Session
) -> None:
    add_machines(owner, 1)
    submit_jobs(submitter, a_job())
    (lease,) = lease_jobs(scheduler)
    scheduler.execute("BEGIN ISOLATION LEVEL READ UNCOMMITTED")
    call(scheduler, "read_mark")
    call(owner, "set_quota", "tenant", "ann", [0] * 5)

    answer = try_call(
        scheduler, "commit_claims", *make_transaction(1, Claim(lease, 0, 1)).arguments
    )
    scheduler.execute("ROLLBACK" if answer.sqlstate else "COMMIT")

    assert answer.sqlstate in {"", NOT_SUPPORTED}
    assert [] == running_tasks(database)


def test_two_commits_that_wait_for_one_machine_do_not_oversell_it(
    database: Database, owner: Session, submitter: Session, scheduler: Session
) -> None:
    (machine,) = add_machines(owner, 1, (1_500,) + (0,) * 10)
    submit_jobs(submitter, a_job(), a_job())
    first, second = lease_jobs(scheduler)
    rival = database.session("rival", "omega_scheduler")
    scheduler.execute("BEGIN")
    rival.execute("BEGIN")
    call(rival, "read_mark")
    assert (0,) == commit(scheduler, make_transaction(1, Claim(first, 0, machine))).verdicts

    start(rival, "commit_claims", *make_transaction(2, Claim(second, 0, machine)).arguments)
    database.settle()
    assert {"rival"} == database.waiting().keys()
    scheduler.execute("COMMIT")

    ((verdicts, *_),) = rival.answer.rows
    rival.execute("COMMIT")
    assert [2] == verdicts
    assert [] == violations(database)


def test_a_commit_that_was_refused_for_its_level_is_granted_at_read_committed(
    database: Database, owner: Session, submitter: Session, scheduler: Session
) -> None:
    add_machines(owner, 1)
    submit_jobs(submitter, a_job(a_group(tasks=2)))
    (lease,) = lease_jobs(scheduler)
    arguments = make_transaction(1, Claim(lease, 0, 1)).arguments
    scheduler.execute("BEGIN ISOLATION LEVEL SERIALIZABLE")
    assert NOT_SUPPORTED == try_call(scheduler, "commit_claims", *arguments).sqlstate
    scheduler.execute("ROLLBACK")
    scheduler.execute("SET default_transaction_isolation = 'read committed'")

    assert not try_call(scheduler, "commit_claims", *arguments).sqlstate
    assert [(lease.job, 0, 1)] == running_tasks(database)
    call(owner, "set_quota", "tenant", "ann", [UNLIMITED] * 5)
    assert [] == violations(database)
