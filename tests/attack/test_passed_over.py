"""A job whose row is locked by an open transaction holds up no call that concerns others, too."""

from collections.abc import Callable

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
)
from tests.attack.machine_rows import DEFAULT_CAPACITY, DOWN, add_machines, running_tasks
from tests.attack.sessions import Database, Session
from tests.attack.wires import a_group, a_job

TOO_SMALL = [0, *DEFAULT_CAPACITY[1:]]


@pytest.fixture
def leases(owner: Session, submitter: Session, scheduler: Session) -> tuple[Lease, Lease]:
    """Two leased jobs of three tasks."""
    add_machines(owner, 2)
    submit_jobs(submitter, *(a_job(a_group(tasks=3)) for _ in range(2)))
    first, second = lease_jobs(scheduler)
    return first, second


@pytest.mark.parametrize("lock", ["cancel_job", "hold_job"])
def test_parked_jobs_are_woken_beside_a_locked_one(
    database: Database,
    submitter: Session,
    scheduler: Session,
    leases: tuple[Lease, Lease],
    lock: str,
) -> None:
    jobs = [lease.job for lease in leases]
    tokens = [lease.token for lease in leases]
    call(scheduler, "park_jobs", jobs, tokens, ["no_room"] * 2, [""] * 2)
    submitter.execute("BEGIN")
    call(submitter, lock, jobs[0])

    start(scheduler, "wake_jobs", jobs)
    database.settle(scheduler)
    assert {} == database.waiting()
    assert [([jobs[1]],)] == scheduler.answer.rows

    submitter.execute("ROLLBACK")
    assert [([jobs[0]],)] == call(scheduler, "wake_jobs", jobs)
    assert [] == violations(database)


def fail(owner: Session) -> tuple[str, object]:
    call(owner, "set_state", [1], DOWN)
    return "lose_tasks", [1]


def shrink(owner: Session) -> tuple[str, object]:
    call(owner, "resize_machine", 1, TOO_SMALL, 0)
    return "enforce_notice", 1


@pytest.mark.parametrize("change", [fail, shrink])
def test_tasks_are_evicted_beside_those_of_a_locked_job(
    database: Database,
    owner: Session,
    submitter: Session,
    scheduler: Session,
    leases: tuple[Lease, Lease],
    change: Callable[[Session], tuple[str, object]],
) -> None:
    locked, other = leases
    claims = [Claim(lease, task, task + 1) for lease in leases for task in range(2)]
    commit(scheduler, make_transaction(1, *claims))
    function, argument = change(owner)
    submitter.execute("BEGIN")
    call(submitter, "hold_job", locked.job)

    start(scheduler, function, argument)
    database.settle(scheduler)
    assert {} == database.waiting()
    assert [(1,)] == scheduler.answer.rows
    left = [(locked.job, 0, 1), (locked.job, 1, 2), (other.job, 1, 2)]
    assert left == running_tasks(database)

    submitter.execute("ROLLBACK")
    assert [(1,)] == call(scheduler, function, argument)
    assert [(locked.job, 1, 2), (other.job, 1, 2)] == running_tasks(database)
    assert [] == violations(database)
