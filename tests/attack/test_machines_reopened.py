"""A forced end keeps tasks whose machine was reopened or enlarged while the call waited.

It waits for the rows of machines, and for that of a job only if all jobs are locked. Otherwise jobs
that are locked are passed over.
"""

from collections.abc import Sequence

import pytest

from tests.attack.audit import violations
from tests.attack.calls import (
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


def ends_nothing(answer: Answer) -> bool:
    """Say whether a call has ended no task, or must be tried again."""
    return answer.sqlstate == COLLISION or answer.rows == [(0,)]


def test_a_machine_that_is_reopened_keeps_its_tasks(
    database: Database, owner: Session, cleaner: Session, running: Lease
) -> None:
    call(owner, "set_state", [1], DOWN)
    owner.execute("BEGIN")
    call(owner, "set_state", [1], OPEN)
    start(cleaner, "lose_tasks", [1])
    database.settle(cleaner)
    assert {"cleaner"} == database.waiting().keys()
    owner.execute("COMMIT")

    assert ends_nothing(cleaner.answer)
    assert [(running.job, 0, 1), (running.job, 1, 2)] == running_tasks(database)
    assert [(0,)] == call(cleaner, "lose_tasks", [1])
    assert [] == violations(database)


def test_one_of_two_machines_that_is_reopened_keeps_its_tasks(
    database: Database, owner: Session, cleaner: Session, running: Lease
) -> None:
    call(owner, "set_state", [1, 2], DOWN)
    owner.execute("BEGIN")
    call(owner, "set_state", [2], OPEN)
    start(cleaner, "lose_tasks", [1, 2])
    database.settle(cleaner)
    owner.execute("COMMIT")

    first = cleaner.answer
    assert first.sqlstate in {"", COLLISION}
    assert (running.job, 1, 2) in running_tasks(database)
    try_call(cleaner, "lose_tasks", [1, 2])
    assert [(running.job, 1, 2)] == running_tasks(database)
    assert [] == violations(database)


@pytest.mark.parametrize(
    ("capacity", "notice_ms"),
    [(DEFAULT_CAPACITY, 0), (TOO_SMALL, 86_400_000)],
    ids=["enlarged", "notice extended"],
)
def test_a_machine_that_is_resized_keeps_its_tasks(
    database: Database,
    owner: Session,
    cleaner: Session,
    running: Lease,
    capacity: Sequence[int],
    notice_ms: int,
) -> None:
    call(owner, "resize_machine", 1, TOO_SMALL, 0)
    owner.execute("BEGIN")
    call(owner, "resize_machine", 1, list(capacity), notice_ms)
    start(cleaner, "enforce_notice", 1)
    database.settle(cleaner)
    assert {"cleaner"} == database.waiting().keys()
    owner.execute("COMMIT")

    assert ends_nothing(cleaner.answer)
    assert [(running.job, 0, 1), (running.job, 1, 2)] == running_tasks(database)
    assert [(0,)] == call(cleaner, "enforce_notice", 1)
    assert [] == violations(database)


@pytest.mark.parametrize("function", ["lose_tasks", "enforce_notice"])
def test_a_task_that_is_being_moved_is_not_ended(
    database: Database,
    owner: Session,
    cleaner: Session,
    scheduler: Session,
    running: Lease,
    function: str,
) -> None:
    if function == "lose_tasks":
        call(owner, "set_state", [1], DOWN)
    else:
        call(owner, "resize_machine", 1, TOO_SMALL, 0)
    scheduler.execute("BEGIN")
    move = Claim(running, 0, 2, evicts=((running.job, 0),))
    assert (0,) == commit(scheduler, make_transaction(2, move)).verdicts
    start(cleaner, function, [1] if function == "lose_tasks" else 1)
    database.settle(cleaner)
    assert {"cleaner"} == database.waiting().keys(), "it waits, because no other job is there"
    scheduler.execute("COMMIT")

    assert ends_nothing(cleaner.answer)
    assert [(running.job, 0, 2), (running.job, 1, 2)] == running_tasks(database)
    assert [] == violations(database)


def test_tasks_of_a_machine_that_stays_down_are_ended(
    database: Database, owner: Session, cleaner: Session, running: Lease
) -> None:
    """The call waits, too, but the machine has not changed."""
    call(owner, "set_state", [1], DOWN)
    owner.execute("BEGIN")
    owner.execute("SELECT FROM omega.machine WHERE id = 1 FOR UPDATE")
    start(cleaner, "lose_tasks", [1])
    database.settle(cleaner)
    assert {"cleaner"} == database.waiting().keys()
    owner.execute("COMMIT")

    assert [(1,)] == cleaner.answer.rows
    assert [(running.job, 1, 2)] == running_tasks(database)
    assert [] == violations(database)
