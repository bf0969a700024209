"""Nobody ends a task on a machine that has come back while it was waited for."""

import pytest

from tests.attack.books import wrongs
from tests.attack.calls import LEASE_MS, Claim, Lease, ask, commit, do, lease, one, start, submit
from tests.attack.machine_rows import DOWN, OPEN, ROOMY, add_machines, places
from tests.attack.sessions import Answer, Session, Stage
from tests.attack.wires import a_group, a_job

COLLISION = "40001"
LITTLE = [500, *ROOMY[1:]]


@pytest.fixture
def running(owner: Session, submitter: Session, scheduler: Session) -> Lease:
    """A job of which a task runs on each of two machines; a third waits under its lease."""
    first, second = add_machines(owner, 2)
    submit(submitter, a_job(a_group(tasks=3)))
    (mine,) = lease(scheduler)
    commit(scheduler, one(1, Claim(mine, 0, first), Claim(mine, 1, second)))
    return mine


@pytest.fixture
def cleaner(stage: Stage) -> Session:
    """A scheduler that sees a machine in use that is down, or too small."""
    return stage.session("cleaner", "omega_scheduler")


def held_by(session: Session, mine: Lease, how: str) -> None:
    """Leave a transaction open in which the job's row is locked."""
    session.do("BEGIN")
    if how == "a renewal":
        do(session, "renew_leases", [mine.job], [mine.token], LEASE_MS)
    else:
        session.do("SELECT FROM omega.job WHERE id = %s FOR UPDATE", [mine.job])


def ends_nothing(answer: Answer) -> bool:
    """Say whether a call has ended nothing, or is to be made again."""
    return answer.sqlstate == COLLISION or answer.rows == [(0,)]


HOLDERS = ("a renewal", "the owner")


@pytest.mark.parametrize("how", HOLDERS)
def test_a_machine_that_is_opened_again_keeps_its_tasks(
    stage: Stage, owner: Session, scheduler: Session, cleaner: Session, running: Lease, how: str
) -> None:
    do(owner, "set_state", [1], DOWN)
    holder = stage.owner("holder") if how == "the owner" else scheduler
    held_by(holder, running, how)
    start(cleaner, "lose_tasks", [1])
    stage.settle(cleaner)
    assert {"cleaner"} == stage.waiting().keys()
    do(owner, "set_state", [1], OPEN)
    holder.do("COMMIT")

    assert ends_nothing(cleaner.answer)
    assert [(running.job, 0, 1), (running.job, 1, 2)] == places(stage)
    assert [(0,)] == do(cleaner, "lose_tasks", [1])
    assert [] == wrongs(stage)


@pytest.mark.parametrize("how", HOLDERS)
def test_of_two_machines_the_one_that_is_opened_again_keeps_its_tasks(
    stage: Stage, owner: Session, scheduler: Session, cleaner: Session, running: Lease, how: str
) -> None:
    do(owner, "set_state", [1, 2], DOWN)
    holder = stage.owner("holder") if how == "the owner" else scheduler
    held_by(holder, running, how)
    start(cleaner, "lose_tasks", [1, 2])
    stage.settle(cleaner)
    do(owner, "set_state", [2], OPEN)
    holder.do("COMMIT")

    first = cleaner.answer
    assert first.sqlstate in {"", COLLISION}
    assert (running.job, 1, 2) in places(stage)
    ask(cleaner, "lose_tasks", [1, 2])
    assert [(running.job, 1, 2)] == places(stage)
    assert [] == wrongs(stage)


@pytest.mark.parametrize("how", HOLDERS)
def test_a_machine_that_has_grown_keeps_its_tasks(
    stage: Stage, owner: Session, scheduler: Session, cleaner: Session, running: Lease, how: str
) -> None:
    do(owner, "resize_machine", 1, LITTLE, 0)
    holder = stage.owner("holder") if how == "the owner" else scheduler
    held_by(holder, running, how)
    start(cleaner, "enforce_notice", 1)
    stage.settle(cleaner)
    assert {"cleaner"} == stage.waiting().keys()
    do(owner, "resize_machine", 1, list(ROOMY), 0)
    holder.do("COMMIT")

    assert ends_nothing(cleaner.answer)
    assert [(running.job, 0, 1), (running.job, 1, 2)] == places(stage)
    assert [(0,)] == do(cleaner, "enforce_notice", 1)
    assert [] == wrongs(stage)


def test_a_machine_whose_notice_is_longer_now_keeps_its_tasks(
    stage: Stage, owner: Session, scheduler: Session, cleaner: Session, running: Lease
) -> None:
    do(owner, "resize_machine", 1, LITTLE, 0)
    held_by(scheduler, running, "a renewal")
    start(cleaner, "enforce_notice", 1)
    stage.settle(cleaner)
    do(owner, "resize_machine", 1, LITTLE, 86_400_000)
    scheduler.do("COMMIT")

    assert ends_nothing(cleaner.answer)
    assert 2 == len(places(stage))
    assert [] == wrongs(stage)


@pytest.mark.parametrize("verb", ["lose_tasks", "enforce_notice"])
def test_what_is_placed_anew_while_it_is_waited_for_is_not_ended(
    stage: Stage, owner: Session, cleaner: Session, scheduler: Session, running: Lease, verb: str
) -> None:
    """The task runs elsewhere by then: what was seen is another allocation."""
    if verb == "lose_tasks":
        do(owner, "set_state", [1], DOWN)
    else:
        do(owner, "resize_machine", 1, LITTLE, 0)
    scheduler.do("BEGIN")
    move = Claim(running, 0, 2, evicts=((running.job, 0),))
    assert (0,) == commit(scheduler, one(2, move)).verdicts
    start(cleaner, verb, [1] if verb == "lose_tasks" else 1)
    stage.settle(cleaner)
    assert not cleaner.is_done
    scheduler.do("COMMIT")

    assert ends_nothing(cleaner.answer)
    assert [(running.job, 0, 2), (running.job, 1, 2)] == places(stage)
    assert [] == wrongs(stage)


def test_what_stays_down_is_lost(
    stage: Stage, owner: Session, scheduler: Session, cleaner: Session, running: Lease
) -> None:
    """Waiting alone is no reason to end nothing."""
    do(owner, "set_state", [1], DOWN)
    held_by(scheduler, running, "a renewal")
    start(cleaner, "lose_tasks", [1])
    stage.settle(cleaner)
    scheduler.do("COMMIT")

    assert [(1,)] == cleaner.answer.rows
    assert [(running.job, 1, 2)] == places(stage)
    assert [] == wrongs(stage)
