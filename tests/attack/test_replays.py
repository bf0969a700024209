"""A transaction that is sent again grants nothing twice, whatever became of its record."""

from uuid import UUID

import pytest

from tests.attack.books import wrongs
from tests.attack.calls import (
    Claim,
    Commit,
    Lease,
    Outcome,
    ask,
    commit,
    do,
    lease,
    one,
    start,
    submit,
)
from tests.attack.machine_rows import DOWN, OPEN, add_machines, places
from tests.attack.sessions import Session, Stage, wait_until
from tests.attack.wires import a_group, a_job

BLOCKS = 2**30


@pytest.fixture
def mine(owner: Session, submitter: Session, scheduler: Session) -> Lease:
    """A job of three tasks, leased."""
    add_machines(owner, 2)
    submit(submitter, a_job(a_group(tasks=3)))
    (mine,) = lease(scheduler)
    return mine


def prune(stage: Stage, owner: Session) -> None:
    """Remove all commits on record that may be removed, once nothing that is open is older.

    Transactions of other databases count as well: a server numbers them together.
    """
    over = """
        SELECT coalesce(max(changed_by) < pg_snapshot_xmin(pg_current_snapshot()), true)
          FROM omega.transaction"""
    wait_until(lambda: stage.see(over)[0][0], "older transactions to end")
    do(owner, "forget_changes")
    newest = "SELECT changes_from < pg_snapshot_xmin(pg_current_snapshot()) FROM omega.cell"
    wait_until(lambda: stage.see(newest)[0][0], "older transactions to end")
    do(owner, "prune_history", "transaction", 0, 0, BLOCKS)


def records(stage: Stage) -> int:
    ((count,),) = stage.see("SELECT count(*) FROM omega.transaction")
    return int(count)


@pytest.mark.parametrize("how", ["lost", "evicted"])
def test_a_task_that_came_back_is_not_granted_again(
    stage: Stage,
    owner: Session,
    submitter: Session,
    scheduler: Session,
    mine: Lease,
    how: str,
) -> None:
    """The lease is held all the while: only the record tells that the commit was answered."""
    first = one(1, Claim(mine, 0, 1), Claim(mine, 1, 2))
    answer = commit(scheduler, first)
    if how == "lost":
        do(owner, "set_state", [1], DOWN)
        assert [(1,)] == do(scheduler, "lose_tasks", [1])
        do(owner, "set_state", [1], OPEN)
    else:
        submit(submitter, a_job(scheduler="other", precedence=1))
        (stronger,) = lease(scheduler, "other")
        eviction = Claim(stronger, 0, 1, evicts=((mine.job, 0),))
        assert (0,) == commit(scheduler, one(2, eviction)).verdicts
    before = places(stage)
    prune(stage, owner)

    again = commit(scheduler, first)
    assert before == places(stage)
    assert again.is_like(answer)
    assert again.replayed
    assert [] == wrongs(stage)


def test_a_record_goes_once_nobody_plans_its_jobs(
    stage: Stage, owner: Session, scheduler: Session, mine: Lease
) -> None:
    first = one(1, Claim(mine, 0, 1))
    commit(scheduler, first)
    prune(stage, owner)
    assert 1 == records(stage)
    do(scheduler, "hand_back_jobs", [mine.job], [mine.token], [0], [True])
    prune(stage, owner)
    assert 0 == records(stage)

    assert (4,) == commit(scheduler, first).verdicts
    (anew,) = lease(scheduler)
    assert (4,) == commit(scheduler, first).verdicts
    assert (5,) == commit(scheduler, one(3, Claim(anew, 0, 1))).verdicts
    assert [(mine.job, 0, 1)] == places(stage)
    assert [] == wrongs(stage)


def test_a_job_that_was_granted_nothing_keeps_no_record(
    stage: Stage, owner: Session, submitter: Session, scheduler: Session, mine: Lease
) -> None:
    """Or whoever names a job that is being planned would keep all its records for ever."""
    submit(submitter, a_job())
    (other,) = lease(scheduler)
    nobodys = Lease(mine.job, UUID(int=7))
    assert (4,) == commit(scheduler, one(1, Claim(nobodys, 0, 1))).verdicts
    assert (0, 4) == commit(scheduler, one(2, Claim(other, 0, 1), Claim(nobodys, 0, 1))).verdicts
    assert (6,) == commit(scheduler, one(3, Claim(mine, 0, 99))).verdicts
    prune(stage, owner)

    assert 0 == records(stage)


def test_a_record_is_kept_for_a_lease_that_nobody_sees_yet(
    stage: Stage, owner: Session, submitter: Session, scheduler: Session, mine: Lease
) -> None:
    """Lease and commit are acknowledged together, while the owner prunes and waits for a table."""
    submit(submitter, a_job(a_group(tasks=2)))
    blocker = stage.owner("blocker")
    scheduler.do("BEGIN")
    (hidden,) = lease(scheduler)
    transaction = one(1, Claim(hidden, 0, 1))
    # One task of two, so that the lease goes on.
    assert (0,) == commit(scheduler, transaction).verdicts
    do(owner, "forget_changes")
    blocker.do("BEGIN")
    blocker.do("LOCK TABLE omega.cell IN ACCESS EXCLUSIVE MODE")
    start(owner, "prune_history", "transaction", 0, 0, BLOCKS)
    stage.settle(owner)
    scheduler.do("COMMIT")
    blocker.do("COMMIT")

    assert not owner.answer.sqlstate
    do(owner, "set_state", [1], DOWN)
    do(scheduler, "lose_tasks", [1])
    do(owner, "set_state", [1], OPEN)
    again = commit(scheduler, transaction)
    assert mine != hidden
    assert again.replayed or 0 not in again.verdicts
    assert [] == places(stage)


def test_of_several_jobs_one_that_is_planned_keeps_the_record(
    stage: Stage, owner: Session, submitter: Session, scheduler: Session, mine: Lease
) -> None:
    submit(submitter, a_job())
    (other,) = lease(scheduler)
    both = one(1, Claim(other, 0, 1), Claim(mine, 0, 1))
    commit(scheduler, both)
    prune(stage, owner)
    do(owner, "set_state", [1], DOWN)
    do(scheduler, "lose_tasks", [1])
    do(owner, "set_state", [1], OPEN)

    again = commit(scheduler, both)
    assert ((0, 0), True) == (again.verdicts, again.replayed)
    assert [] == places(stage)


def test_a_recalled_job_keeps_its_record(
    stage: Stage, owner: Session, submitter: Session, scheduler: Session
) -> None:
    add_machines(owner, 2)
    submit(submitter, a_job())
    (mine,) = lease(scheduler)
    commit(scheduler, one(1, Claim(mine, 0, 1)))
    do(scheduler, "begin_round", "batch", "me", 0)
    ((job, token, *_),) = do(scheduler, "recall_jobs", "batch", 1, None, 60_000)
    recalled = Lease(job, token)
    move = one(2, Claim(recalled, 0, 2, evicts=((job, 0),)))
    first = commit(scheduler, move)
    prune(stage, owner)

    again = commit(scheduler, move)
    assert [(job, 0, 2)] == places(stage)
    assert {0, 4, 8}.issuperset(again.verdicts)
    assert not again.replayed or again.is_like(first)
    assert [] == wrongs(stage)


def test_a_twin_that_is_sent_while_the_first_is_under_way_is_answered_alike(
    stage: Stage, scheduler: Session, mine: Lease
) -> None:
    transaction = one(1, *(Claim(mine, task, 1) for task in range(3)))
    scheduler.do("BEGIN")
    first = commit(scheduler, transaction)
    twins = [stage.session(f"twin {n}", "omega_scheduler") for n in range(2)]
    for twin in twins:
        start(twin, "commit_claims", *transaction.arguments)
        stage.settle(twin)
        assert not twin.is_done
    scheduler.do("COMMIT")

    answers = [Outcome.of(twin.answer.rows) for twin in twins]
    assert all(it.replayed and it.is_like(first) for it in answers)
    assert 3 == len(places(stage))
    assert [] == wrongs(stage)


def test_a_twin_of_one_that_was_taken_back_is_the_first(
    stage: Stage, scheduler: Session, mine: Lease
) -> None:
    transaction = one(1, *(Claim(mine, task, 1) for task in range(3)))
    scheduler.do("BEGIN")
    commit(scheduler, transaction)
    twin = stage.session("twin", "omega_scheduler")
    start(twin, "commit_claims", *transaction.arguments)
    stage.settle(twin)
    scheduler.do("ROLLBACK")

    ((verdicts, *_, replayed),) = twin.answer.rows
    assert ([0, 0, 0], False) == (verdicts, replayed)
    assert 3 == len(places(stage))
    assert [] == wrongs(stage)


def test_an_id_that_another_transaction_has_is_refused(
    stage: Stage, submitter: Session, scheduler: Session, mine: Lease
) -> None:
    submit(submitter, a_job())
    (other,) = lease(scheduler)
    commit(scheduler, one(1, Claim(mine, 0, 1)))

    answers = {
        ask(scheduler, "commit_claims", *bent.arguments).sqlstate
        for bent in (
            one(1, Claim(mine, 1, 1)),
            one(1, Claim(other, 0, 1)),
            Commit(UUID(int=1), (Claim(mine, 0, 1), Claim(other, 0, 1))),
        )
    }
    assert {"22023"} == answers
    assert [(mine.job, 0, 1)] == places(stage)


def test_two_with_one_id_and_no_job_in_common_grant_once(
    stage: Stage, submitter: Session, scheduler: Session, mine: Lease
) -> None:
    submit(submitter, a_job())
    (other,) = lease(scheduler)
    rival = stage.session("rival", "omega_scheduler")
    scheduler.do("BEGIN")
    commit(scheduler, one(1, Claim(mine, 0, 1)))
    start(rival, "commit_claims", *one(1, Claim(other, 0, 2)).arguments)
    stage.settle(rival)
    scheduler.do("COMMIT")

    assert "22023" == rival.answer.sqlstate
    assert [(mine.job, 0, 1)] == places(stage)
    assert [] == wrongs(stage)
