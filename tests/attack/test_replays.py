"""A transaction that is sent again grants nothing twice, whether or not its record was pruned."""

from uuid import UUID

import pytest

from tests.attack.audit import violations
from tests.attack.calls import (
    Claim,
    Lease,
    Outcome,
    Transaction,
    call,
    commit,
    lease_jobs,
    make_transaction,
    start,
    submit_jobs,
    try_call,
)
from tests.attack.machine_rows import DOWN, OPEN, add_machines, running_tasks
from tests.attack.sessions import Database, Session, wait_until
from tests.attack.wires import a_group, a_job

BLOCKS = 2**30


@pytest.fixture
def lease(owner: Session, submitter: Session, scheduler: Session) -> Lease:
    """A lease of a job with three tasks."""
    add_machines(owner, 2)
    submit_jobs(submitter, a_job(a_group(tasks=3)))
    (lease,) = lease_jobs(scheduler)
    return lease


def prune(database: Database, owner: Session) -> None:
    """Prune all records of commits that may be pruned, after all older transactions have ended.

    Transactions of other databases delay this too: a server has one sequence of transaction ids.
    """
    is_newest = """
        SELECT coalesce(max(changed_by) < pg_snapshot_xmin(pg_current_snapshot()), true)
          FROM omega.transaction"""
    wait_until(lambda: database.query(is_newest)[0][0], "older transactions to end")
    call(owner, "forget_changes")
    is_forgotten = "SELECT changes_from < pg_snapshot_xmin(pg_current_snapshot()) FROM omega.cell"
    wait_until(lambda: database.query(is_forgotten)[0][0], "older transactions to end")
    call(owner, "prune_history", "transaction", 0, 0, BLOCKS)


def record_count(database: Database) -> int:
    ((count,),) = database.query("SELECT count(*) FROM omega.transaction")
    return int(count)


@pytest.mark.parametrize("how", ["lost", "evicted"])
def test_a_replay_does_not_grant_a_task_again_that_was_lost_or_evicted(
    database: Database,
    owner: Session,
    submitter: Session,
    scheduler: Session,
    lease: Lease,
    how: str,
) -> None:
    """The lease is still valid; only the record shows that the claim was granted before."""
    first = make_transaction(1, Claim(lease, 0, 1), Claim(lease, 1, 2))
    answer = commit(scheduler, first)
    if how == "lost":
        call(owner, "set_state", [1], DOWN)
        assert [(1,)] == call(scheduler, "lose_tasks", [1])
        call(owner, "set_state", [1], OPEN)
    else:
        submit_jobs(submitter, a_job(scheduler="other", precedence=10))
        (stronger,) = lease_jobs(scheduler, "other")
        eviction = Claim(stronger, 0, 1, evicts=((lease.job, 0),))
        assert (0,) == commit(scheduler, make_transaction(2, eviction)).verdicts
    before = running_tasks(database)
    prune(database, owner)

    again = commit(scheduler, first)
    assert before == running_tasks(database)
    assert again.matches(answer)
    assert again.replayed
    assert [] == violations(database)


def test_a_record_is_pruned_when_its_jobs_are_not_leased(
    database: Database, owner: Session, scheduler: Session, lease: Lease
) -> None:
    first = make_transaction(1, Claim(lease, 0, 1))
    commit(scheduler, first)
    prune(database, owner)
    assert 1 == record_count(database)
    call(scheduler, "hand_back_jobs", [lease.job], [lease.token], [0], [True])
    prune(database, owner)
    assert 0 == record_count(database)

    assert (4,) == commit(scheduler, first).verdicts
    (new_lease,) = lease_jobs(scheduler)
    assert (4,) == commit(scheduler, first).verdicts
    assert (5,) == commit(scheduler, make_transaction(3, Claim(new_lease, 0, 1))).verdicts
    assert [(lease.job, 0, 1)] == running_tasks(database)
    assert [] == violations(database)


def test_a_leased_job_without_grants_keeps_no_record(
    database: Database, owner: Session, submitter: Session, scheduler: Session, lease: Lease
) -> None:
    """Otherwise a login could keep its records by naming the leased job of another."""
    submit_jobs(submitter, a_job())
    (other,) = lease_jobs(scheduler)
    unknown = Lease(lease.job, UUID(int=7))
    assert (4,) == commit(scheduler, make_transaction(1, Claim(unknown, 0, 1))).verdicts
    claims = (Claim(other, 0, 1), Claim(unknown, 0, 1))
    assert (0, 4) == commit(scheduler, make_transaction(2, *claims)).verdicts
    assert (6,) == commit(scheduler, make_transaction(3, Claim(lease, 0, 99))).verdicts
    prune(database, owner)

    assert 0 == record_count(database)


def test_a_record_is_kept_for_a_lease_that_commits_while_the_owner_prunes(
    database: Database, owner: Session, submitter: Session, scheduler: Session, lease: Lease
) -> None:
    """Lease and claim are in one transaction, which commits while the prune waits for a table."""
    submit_jobs(submitter, a_job(a_group(tasks=2)))
    blocker = database.owner("blocker")
    scheduler.execute("BEGIN")
    (uncommitted,) = lease_jobs(scheduler)
    transaction = make_transaction(1, Claim(uncommitted, 0, 1))
    # One of two tasks is placed, so that the lease stays valid.
    assert (0,) == commit(scheduler, transaction).verdicts
    call(owner, "forget_changes")
    blocker.execute("BEGIN")
    blocker.execute("LOCK TABLE omega.cell IN ACCESS EXCLUSIVE MODE")
    start(owner, "prune_history", "transaction", 0, 0, BLOCKS)
    database.settle(owner)
    scheduler.execute("COMMIT")
    blocker.execute("COMMIT")

    assert not owner.answer.sqlstate
    call(owner, "set_state", [1], DOWN)
    call(scheduler, "lose_tasks", [1])
    call(owner, "set_state", [1], OPEN)
    again = commit(scheduler, transaction)
    assert lease != uncommitted
    assert again.replayed or 0 not in again.verdicts
    assert [] == running_tasks(database)


def test_a_record_of_several_jobs_is_kept_while_one_is_leased(
    database: Database, owner: Session, submitter: Session, scheduler: Session, lease: Lease
) -> None:
    submit_jobs(submitter, a_job())
    (other,) = lease_jobs(scheduler)
    both = make_transaction(1, Claim(other, 0, 1), Claim(lease, 0, 1))
    commit(scheduler, both)
    prune(database, owner)
    call(owner, "set_state", [1], DOWN)
    call(scheduler, "lose_tasks", [1])
    call(owner, "set_state", [1], OPEN)

    again = commit(scheduler, both)
    assert ((0, 0), True) == (again.verdicts, again.replayed)
    assert [] == running_tasks(database)


def test_a_record_of_a_recalled_job_is_kept(
    database: Database, owner: Session, submitter: Session, scheduler: Session
) -> None:
    add_machines(owner, 2)
    submit_jobs(submitter, a_job())
    (lease,) = lease_jobs(scheduler)
    commit(scheduler, make_transaction(1, Claim(lease, 0, 1)))
    call(scheduler, "begin_round", "batch", "me", 0)
    ((job, token, *_),) = call(scheduler, "recall_jobs", "batch", 1, None, 60_000)
    recalled = Lease(job, token)
    move = make_transaction(2, Claim(recalled, 0, 2, evicts=((job, 0),)))
    first = commit(scheduler, move)
    prune(database, owner)

    again = commit(scheduler, move)
    assert [(job, 0, 2)] == running_tasks(database)
    assert {0, 4, 8}.issuperset(again.verdicts)
    assert not again.replayed or again.matches(first)
    assert [] == violations(database)


def test_a_copy_that_is_sent_before_the_first_commits_gets_the_same_outcome(
    database: Database, scheduler: Session, lease: Lease
) -> None:
    transaction = make_transaction(1, *(Claim(lease, task, 1) for task in range(3)))
    scheduler.execute("BEGIN")
    first = commit(scheduler, transaction)
    copies = [database.session(f"copy {n}", "omega_scheduler") for n in range(2)]
    for copy in copies:
        start(copy, "commit_claims", *transaction.arguments)
        database.settle(copy)
        assert not copy.is_done
    scheduler.execute("COMMIT")

    answers = [Outcome.of(copy.answer.rows) for copy in copies]
    assert all(outcome.replayed and outcome.matches(first) for outcome in answers)
    assert 3 == len(running_tasks(database))
    assert [] == violations(database)


def test_a_copy_is_judged_anew_if_the_first_rolls_back(
    database: Database, scheduler: Session, lease: Lease
) -> None:
    transaction = make_transaction(1, *(Claim(lease, task, 1) for task in range(3)))
    scheduler.execute("BEGIN")
    commit(scheduler, transaction)
    copy = database.session("copy", "omega_scheduler")
    start(copy, "commit_claims", *transaction.arguments)
    database.settle(copy)
    scheduler.execute("ROLLBACK")

    ((verdicts, *_, replayed),) = copy.answer.rows
    assert ([0, 0, 0], False) == (verdicts, replayed)
    assert 3 == len(running_tasks(database))
    assert [] == violations(database)


def test_an_id_of_another_transaction_is_refused(
    database: Database, submitter: Session, scheduler: Session, lease: Lease
) -> None:
    submit_jobs(submitter, a_job())
    (other,) = lease_jobs(scheduler)
    commit(scheduler, make_transaction(1, Claim(lease, 0, 1)))

    answers = {
        try_call(scheduler, "commit_claims", *other_transaction.arguments).sqlstate
        for other_transaction in (
            make_transaction(1, Claim(lease, 1, 1)),
            make_transaction(1, Claim(other, 0, 1)),
            Transaction(UUID(int=1), (Claim(lease, 0, 1), Claim(other, 0, 1))),
        )
    }
    assert {"22023"} == answers
    assert [(lease.job, 0, 1)] == running_tasks(database)


def test_two_transactions_with_one_id_and_different_jobs_grant_once(
    database: Database, submitter: Session, scheduler: Session, lease: Lease
) -> None:
    submit_jobs(submitter, a_job())
    (other,) = lease_jobs(scheduler)
    rival = database.session("rival", "omega_scheduler")
    scheduler.execute("BEGIN")
    commit(scheduler, make_transaction(1, Claim(lease, 0, 1)))
    start(rival, "commit_claims", *make_transaction(1, Claim(other, 0, 2)).arguments)
    database.settle(rival)
    scheduler.execute("COMMIT")

    assert "22023" == rival.answer.sqlstate
    assert [(lease.job, 0, 1)] == running_tasks(database)
    assert [] == violations(database)
