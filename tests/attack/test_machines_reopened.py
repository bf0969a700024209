"""A forced end keeps tasks whose machine was reopened or enlarged while the call waited."""

import pytest

from tests.attack.audit import violations
from tests.attack.calls import (
    LEASE_MS,
    Claim,
    Lease,
    call,
    commit,
    lease_jobs,
    make_transaction,
    start,
    submit_jobs,
    try_call,
)
from tests.attack.machine_rows import DEFAULT_CAPACITY, DOWN, OPEN, add_machines, running_tasks
from tests.attack.sessions import Answer, Database, Session
from tests.attack.wires import a_group, a_job

COLLISION = "40001"
TOO_SMALL = [500, *DEFAULT_CAPACITY[1:]]


@pytest.fixture
def running(owner: Session, submitter: Session, scheduler: Session) -> Lease:
    """A leased job with a task on each of two machines and an unplaced third task."""
    first, second = add_machines(owner, 2)
    submit_jobs(submitter, a_job(a_group(tasks=3)))
    (lease,) = lease_jobs(scheduler)
    commit(scheduler, make_transaction(1, Claim(lease, 0, first), Claim(lease, 1, second)))
    return lease


@pytest.fixture
def cleaner(database: Database) -> Session:
    """A second scheduler, which ends tasks by force."""
    return database.session("cleaner", "omega_scheduler")


def lock_job(session: Session, lease: Lease, how: str) -> None:
    """Lock the job's row in a transaction that stays open."""
    session.execute("BEGIN")
    if how == "a renewal":
        call(session, "renew_leases", [lease.job], [lease.token], LEASE_MS)
    else:
        session.execute("SELECT FROM omega.job WHERE id = %s FOR UPDATE", [lease.job])


def ends_nothing(answer: Answer) -> bool:
    """Say whether a call has ended no task, or must be tried again."""
    return answer.sqlstate == COLLISION or answer.rows == [(0,)]


@pytest.fixture(params=["a renewal", "the owner"])
def locker(
    request: pytest.FixtureRequest, database: Database, scheduler: Session, running: Lease
) -> Session:
    """A session whose open transaction has locked the job's row."""
    session = scheduler if request.param == "a renewal" else database.owner("locker")
    lock_job(session, running, request.param)
    return session


def test_a_machine_that_is_reopened_keeps_its_tasks(
    database: Database, owner: Session, locker: Session, cleaner: Session, running: Lease
) -> None:
    call(owner, "set_state", [1], DOWN)
    start(cleaner, "lose_tasks", [1])
    database.settle(cleaner)
    assert {"cleaner"} == database.waiting().keys()
    call(owner, "set_state", [1], OPEN)
    locker.execute("COMMIT")

    assert ends_nothing(cleaner.answer)
    assert [(running.job, 0, 1), (running.job, 1, 2)] == running_tasks(database)
    assert [(0,)] == call(cleaner, "lose_tasks", [1])
    assert [] == violations(database)


def test_one_of_two_machines_that_is_reopened_keeps_its_tasks(
    database: Database, owner: Session, locker: Session, cleaner: Session, running: Lease
) -> None:
    call(owner, "set_state", [1, 2], DOWN)
    start(cleaner, "lose_tasks", [1, 2])
    database.settle(cleaner)
    call(owner, "set_state", [2], OPEN)
    locker.execute("COMMIT")

    first = cleaner.answer
    assert first.sqlstate in {"", COLLISION}
    assert (running.job, 1, 2) in running_tasks(database)
    try_call(cleaner, "lose_tasks", [1, 2])
    assert [(running.job, 1, 2)] == running_tasks(database)
    assert [] == violations(database)


def test_a_machine_that_is_enlarged_keeps_its_tasks(
    database: Database, owner: Session, locker: Session, cleaner: Session, running: Lease
) -> None:
    call(owner, "resize_machine", 1, TOO_SMALL, 0)
    start(cleaner, "enforce_notice", 1)
    database.settle(cleaner)
    assert {"cleaner"} == database.waiting().keys()
    call(owner, "resize_machine", 1, list(DEFAULT_CAPACITY), 0)
    locker.execute("COMMIT")

    assert ends_nothing(cleaner.answer)
    assert [(running.job, 0, 1), (running.job, 1, 2)] == running_tasks(database)
    assert [(0,)] == call(cleaner, "enforce_notice", 1)
    assert [] == violations(database)


def test_a_machine_whose_notice_is_extended_keeps_its_tasks(
    database: Database, owner: Session, scheduler: Session, cleaner: Session, running: Lease
) -> None:
    call(owner, "resize_machine", 1, TOO_SMALL, 0)
    lock_job(scheduler, running, "a renewal")
    start(cleaner, "enforce_notice", 1)
    database.settle(cleaner)
    call(owner, "resize_machine", 1, TOO_SMALL, 86_400_000)
    scheduler.execute("COMMIT")

    assert ends_nothing(cleaner.answer)
    assert 2 == len(running_tasks(database))
    assert [] == violations(database)


@pytest.mark.parametrize("function", ["lose_tasks", "enforce_notice"])
def test_a_task_that_is_moved_meanwhile_is_not_ended(
    database: Database,
    owner: Session,
    cleaner: Session,
    scheduler: Session,
    running: Lease,
    function: str,
) -> None:
    """The task has a new allocation, on another machine, when the call gets the lock."""
    if function == "lose_tasks":
        call(owner, "set_state", [1], DOWN)
    else:
        call(owner, "resize_machine", 1, TOO_SMALL, 0)
    scheduler.execute("BEGIN")
    move = Claim(running, 0, 2, evicts=((running.job, 0),))
    assert (0,) == commit(scheduler, make_transaction(2, move)).verdicts
    start(cleaner, function, [1] if function == "lose_tasks" else 1)
    database.settle(cleaner)
    assert not cleaner.is_done
    scheduler.execute("COMMIT")

    assert ends_nothing(cleaner.answer)
    assert [(running.job, 0, 2), (running.job, 1, 2)] == running_tasks(database)
    assert [] == violations(database)


def test_tasks_of_a_machine_that_stays_down_are_ended(
    database: Database, owner: Session, scheduler: Session, cleaner: Session, running: Lease
) -> None:
    """The call waits, too, but the machine has not changed."""
    call(owner, "set_state", [1], DOWN)
    lock_job(scheduler, running, "a renewal")
    start(cleaner, "lose_tasks", [1])
    database.settle(cleaner)
    scheduler.execute("COMMIT")

    assert [(1,)] == cleaner.answer.rows
    assert [(running.job, 1, 2)] == running_tasks(database)
    assert [] == violations(database)
