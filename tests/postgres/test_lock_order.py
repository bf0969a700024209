"""Every call takes its row locks in one order: jobs by id, then machines by id.

Whoever waits for a row holds none that comes after it, so there is no circle of waiters. Deadlocks
themselves would be retried by the store and are rare: here each row is held in turn, and whatever
the call holds meanwhile is looked at.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager

import numpy as np
import psycopg
import pytest
from psycopg import sql

from omega.lifecycle.states import ParkReason
from omega.model.arrays import integers
from omega.model.jobs import LeasedJob
from omega.model.machines import MachineState
from omega.model.resources import machine_capacity
from omega.store.base import HandBack, Parking
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_spec, a_stretch, a_transaction, evicting, or_on, some_claims
from omega.testing.steps import (
    LONG_MS,
    OVER_AT_ONCE_MS,
    a_running_job,
    add_a_cell,
    grant,
    submit_and_lease,
)
from tests.fixtures.at_work import wait_until

Row = tuple[str, int]
Call = Callable[[PostgresStore], object]

JOBS: tuple[Row, ...] = (("job", 1), ("job", 2))
MACHINES: tuple[Row, ...] = (("machine", 1), ("machine", 2))
THE_FIRST_JOB = JOBS[:1]
LOCK = sql.SQL("SELECT FROM omega.{} WHERE id = %s FOR NO KEY UPDATE")
LOOK = sql.SQL("SELECT FROM omega.{} WHERE id = %s FOR NO KEY UPDATE SKIP LOCKED")
WAITERS = "SELECT FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"


def two_of_two(store: PostgresStore) -> list[LeasedJob]:
    """Lease two jobs of two tasks on a cell of two machines."""
    add_a_cell(store, 2)
    return submit_and_lease(store, a_spec(2), a_spec(2))


def placed_on_both(store: PostgresStore) -> tuple[list[int], list[int]]:
    """Let a task of each of two jobs run on each of two machines; name them last first."""
    for job in two_of_two(store):
        grant(store, job, [0, 1], [1, 2])
    return [2, 2, 1, 1], [1, 0, 1, 0]


def gangs_on_both(store: PostgresStore) -> None:
    """Let two gangs of two tasks run on two machines."""
    add_a_cell(store, 2)
    for _ in range(2):
        a_running_job(store, a_spec(2, minimum=2), [1, 2])


def commit(store: PostgresStore) -> Call:
    one, two = two_of_two(store)
    claims = some_claims([0, 1], [2, 1])
    transaction = a_transaction(a_stretch(two, claims), a_stretch(one, claims))
    return lambda rival: rival.commit(transaction)


def commit_with_alternates(store: PostgresStore) -> Call:
    one, two = two_of_two(store)
    claims = or_on(some_claims([0], [2]), (0, 1))
    transaction = a_transaction(a_stretch(two, claims), a_stretch(one, claims))
    return lambda rival: rival.commit(transaction)


def commit_that_breaks_a_gang(store: PostgresStore) -> Call:
    """The claim is for the second machine; on the first one runs what falls with its victim."""
    add_a_cell(store, 2)
    a_running_job(store, a_spec(2, minimum=2), [1, 2])
    (job,) = submit_and_lease(store, a_spec(precedence=1))
    claims = evicting(some_claims([0], [2]), (0, 1, 1))
    transaction = a_transaction(a_stretch(job, claims))
    return lambda rival: rival.commit(transaction)


def end_tasks(store: PostgresStore) -> Call:
    jobs, tasks = placed_on_both(store)
    return lambda rival: rival.end_tasks(integers(jobs), np.array(tasks))


def cancel(store: PostgresStore) -> Call:
    placed_on_both(store)
    return lambda rival: rival.cancel(1)


def lose_tasks(store: PostgresStore) -> Call:
    """One machine is down; the other is that of the tasks that fall with their gangs."""
    gangs_on_both(store)
    store.set_state(integers([2]), MachineState.DOWN)
    return lambda rival: rival.lose_tasks(integers([2]))


def enforce_notices(store: PostgresStore) -> Call:
    gangs_on_both(store)
    store.resize(2, machine_capacity(0, 0, 0, 0), notice_ms=OVER_AT_ONCE_MS)
    return lambda rival: rival.enforce_notices()


def set_state(store: PostgresStore) -> Call:
    add_a_cell(store, 2)
    return lambda rival: rival.set_state(integers([2, 1]), MachineState.DRAINING)


def renew(store: PostgresStore) -> Call:
    tokens = {job.id: job.token for job in reversed(two_of_two(store))}
    return lambda rival: rival.renew(tokens, lease_ms=LONG_MS)


def hand_back(store: PostgresStore) -> Call:
    jobs = two_of_two(store)
    back = [HandBack(job.id, job.token, 0, progressed=False) for job in reversed(jobs)]
    return lambda rival: rival.hand_back(back)


def park(store: PostgresStore) -> Call:
    jobs = two_of_two(store)
    aside = [Parking(job.id, job.token, ParkReason.NO_ROOM, "") for job in reversed(jobs)]
    return lambda rival: rival.park(aside)


def wake(store: PostgresStore) -> Call:
    park(store)(store)
    return lambda rival: rival.wake([2, 1])


LOCKS: dict[Callable[[PostgresStore], Call], tuple[Row, ...]] = {
    commit: JOBS + MACHINES,
    commit_with_alternates: JOBS + MACHINES,
    commit_that_breaks_a_gang: JOBS + MACHINES,
    end_tasks: JOBS + MACHINES,
    cancel: THE_FIRST_JOB + MACHINES,
    lose_tasks: JOBS + MACHINES,
    enforce_notices: JOBS + MACHINES,
    set_state: MACHINES,
    renew: JOBS,
    hand_back: JOBS,
    park: JOBS,
    wake: JOBS,
}
"""By call, here in the one order, all that it locks; each names them in another."""


@contextmanager
def waiting_for(
    url: str, onlooker: psycopg.Connection, row: Row, call: Callable[[], object]
) -> Iterator[Future[object]]:
    """Hold a row while a call comes to wait for it, or ends because it does not."""
    table, number = row
    with psycopg.connect(url) as holder, ThreadPoolExecutor(1) as pool:
        holder.execute(LOCK.format(sql.Identifier(table)), [number])
        future = pool.submit(call)

        def is_waiting() -> bool:
            return future.done() or onlooker.execute(WAITERS, [holder.info.backend_pid]).rowcount > 0

        try:
            wait_until(is_waiting, f"the call to come to {table} {number}")
            yield future
        finally:
            holder.rollback()


def is_free(onlooker: psycopg.Connection, row: Row) -> bool:
    table, number = row
    return onlooker.execute(LOOK.format(sql.Identifier(table)), [number]).rowcount == 1


@pytest.mark.parametrize(
    ("prepared", "row"),
    [(prepared, row) for prepared, rows in LOCKS.items() for row in rows],
    ids=lambda it: " ".join(map(str, it)) if isinstance(it, tuple) else it.__name__,
)
def test_who_waits_for_a_row_holds_none_that_comes_after_it(
    database_url: str, store: PostgresStore, prepared: Callable[[PostgresStore], Call], row: Row
) -> None:
    locks, call = LOCKS[prepared], prepared(store)
    after = locks[locks.index(row) + 1 :]
    with (
        closing(PostgresStore(database_url)) as rival,
        psycopg.connect(database_url, autocommit=True) as onlooker,
    ):
        with waiting_for(database_url, onlooker, row, lambda: call(rival)) as future:
            assert not future.done(), "it locks this row, or it could be changed meanwhile"
            assert list(after) == [other for other in after if is_free(onlooker, other)]

        assert future.result(), "it goes through, and finds what to do"
    assert [] == list(store.verify())
