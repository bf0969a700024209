"""Every call takes its row locks in one order: machine leases, jobs, quotas, machines, each by id.

Whoever waits for a row holds none that comes after it, so there is no circle of waiters. Deadlocks
themselves would be retried by the store and are rare: here each row is held in turn, and whatever
the call holds meanwhile is looked at.
"""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np
import psycopg
import pytest

from omega.lifecycle.states import ParkReason
from omega.model.arrays import integers
from omega.model.elastic import Workers
from omega.model.exits import Exit, ExitCause, TaskExit
from omega.model.jobs import LeasedJob
from omega.model.machines import MachineState
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.model.resources import machine_capacity
from omega.store.leases import HandBack, Parking
from omega.store.postgres.store import PostgresStore
from omega.store.postgres.tables import SHARDS
from omega.testing.builders import (
    a_spec,
    a_transaction,
    claims_of_job,
    evicting,
    or_on,
    some_claims,
)
from omega.testing.steps import (
    LONG_MS,
    OVER_AT_ONCE_MS,
    a_running_job,
    add_a_cell,
    grant,
    submit_and_lease,
)
from tests.fixtures.locks import in_the_way
from tests.fixtures.sessions import OpenStore

Call = Callable[[PostgresStore], object]


@dataclass(frozen=True)
class Rows:
    """Rows that come one after the other in the order of locks."""

    table: str
    condition: str
    number: int = 1

    def __str__(self) -> str:
        return f"{self.table} {self.condition}"

    @property
    def lock(self) -> str:
        return f"SELECT FROM omega.{self.table} WHERE {self.condition} FOR NO KEY UPDATE"

    def are_free(self, session: psycopg.Connection) -> bool:
        found = session.execute(f"{self.lock} SKIP LOCKED".encode()).rowcount
        session.rollback()
        return found == self.number


JOBS = tuple(Rows("job", f"id = {job}") for job in (1, 2))
MACHINES = tuple(Rows("machine", f"id = {machine}") for machine in (1, 2))
QUOTAS = tuple(Rows("quota_shard", f"quota_id = {quota}", SHARDS) for quota in (1, 2))
SHARDS_OF_QUOTAS = tuple(
    Rows("quota_shard", f"quota_id = {quota} AND shard = {shard}")
    for quota in (1, 2)
    for shard in (0, SHARDS // 2, SHARDS - 1)
)
LEASES = tuple(Rows("machine_lease", f"machine_id = {machine}") for machine in (1, 2))
EVERYTHING = JOBS + MACHINES
A_JOB_AND_MACHINES = JOBS[:1] + MACHINES
HELPERS_AND_MACHINES = (JOBS[1], Rows("job", "id = 3"), *MACHINES)


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


def limit(store: PostgresStore) -> None:
    """Set two quotas, for all jobs, that are far from used up."""
    for scope, name in ((QuotaScope.TENANT, "default"), (QuotaScope.SCHEDULER, "batch")):
        store.set_quota(Quota(scope, name, {Budget.CPU_MILLI: 1_000_000}))


def commit(store: PostgresStore) -> Call:
    one, two = two_of_two(store)
    claims = some_claims([0, 1], [2, 1])
    transaction = a_transaction(claims_of_job(two, claims), claims_of_job(one, claims))
    return lambda rival: rival.commit(transaction)


def commit_with_alternates(store: PostgresStore) -> Call:
    """There is no third machine, so that it comes to the others."""
    one, two = two_of_two(store)
    claims = or_on(some_claims([0], [3]), (0, 2), (0, 1))
    transaction = a_transaction(claims_of_job(two, claims), claims_of_job(one, claims))
    return lambda rival: rival.commit(transaction)


def commit_that_breaks_a_gang(store: PostgresStore) -> Call:
    """The claim is for the second machine; on the first one runs what falls with its victim."""
    add_a_cell(store, 2)
    a_running_job(store, a_spec(2, minimum=2), [1, 2])
    (job,) = submit_and_lease(store, a_spec(precedence=10))
    claims = evicting(some_claims([0], [2]), (0, 1, 1))
    transaction = a_transaction(claims_of_job(job, claims))
    return lambda rival: rival.commit(transaction)


def end_tasks(store: PostgresStore) -> Call:
    jobs, tasks = placed_on_both(store)
    return lambda rival: rival.end_tasks(integers(jobs), np.array(tasks))


def report_exits(store: PostgresStore) -> Call:
    """Of each of two gangs a task on the second machine fails; what runs on the first ends too."""
    gangs_on_both(store)
    live = store.allocations()
    names = zip(live.job.tolist(), live.task.tolist(), strict=True)
    began = dict(zip(names, live.started_ms.tolist(), strict=True))
    lost = Exit(cause=ExitCause.LOST)
    exits = [TaskExit(job, 1, began[job, 1], lost) for job in (2, 1)]
    return lambda rival: rival.report_exits(exits)


def report_exits_with_helpers(store: PostgresStore) -> Call:
    helped(store, minimum=1)
    live = store.allocations_of([1])
    exits = [TaskExit(1, 0, int(live.started_ms[0]), Exit(cause=ExitCause.LOST))]
    return lambda rival: rival.report_exits(exits)


def cancel(store: PostgresStore) -> Call:
    placed_on_both(store)
    return lambda rival: rival.cancel(1)


def helped(store: PostgresStore, *, minimum: int = 0) -> None:
    """Let a job run on the second machine, and its helpers on the first."""
    add_a_cell(store, 2)
    spec = replace(a_spec(1, minimum=minimum), workers=Workers(9))
    job = a_running_job(store, spec, [2])
    helpers = store.add_helpers("batch", job.id, 1, precedence=-1, holder="b", lease_ms=LONG_MS)
    assert helpers is not None
    grant(store, helpers, [0], [1])


def end_with_helpers(store: PostgresStore) -> Call:
    helped(store)
    return lambda rival: rival.end_tasks(integers([1]), np.array([0]))


def cancel_with_helpers(store: PostgresStore) -> Call:
    helped(store)
    return lambda rival: rival.cancel(1)


def end_helpers(store: PostgresStore) -> Call:
    helped(store)
    more = store.add_helpers("batch", 1, 1, precedence=-1, holder="b", lease_ms=LONG_MS)
    assert more is not None
    grant(store, more, [0], [2])
    return lambda rival: rival.end_helpers("batch", integers([3, 2]), np.array([0, 0]))


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


def held(store: PostgresStore, *, lease_ms: int = OVER_AT_ONCE_MS) -> None:
    """Let an agent hold each of two machines."""
    for machine in (2, 1):
        assert store.hold_machine(machine, UUID(int=1), lease_ms=lease_ms)


def set_state_of_held(store: PostgresStore) -> Call:
    call = set_state(store)
    held(store)
    return call


def hold_what_is_down(store: PostgresStore) -> Call:
    add_a_cell(store, 2)
    held(store)
    store.expire_machines()
    return lambda rival: rival.hold_machine(1, UUID(int=2), lease_ms=LONG_MS)


def free_what_is_down(store: PostgresStore) -> Call:
    add_a_cell(store, 2)
    held(store)
    store.expire_machines()
    return lambda rival: rival.free_machine(1, UUID(int=1))


def leave_machine(store: PostgresStore) -> Call:
    """On the other machine run the tasks that fall with their gangs."""
    gangs_on_both(store)
    held(store, lease_ms=LONG_MS)
    return lambda rival: rival.leave_machine(2, UUID(int=1))


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


LOCKS: dict[Callable[[PostgresStore], Call], tuple[Rows, ...]] = {
    commit: EVERYTHING,
    commit_with_alternates: EVERYTHING,
    commit_that_breaks_a_gang: EVERYTHING,
    end_tasks: EVERYTHING,
    report_exits: EVERYTHING,
    report_exits_with_helpers: EVERYTHING,
    cancel: A_JOB_AND_MACHINES,
    end_with_helpers: EVERYTHING,
    cancel_with_helpers: EVERYTHING,
    end_helpers: HELPERS_AND_MACHINES,
    lose_tasks: MACHINES,
    enforce_notices: MACHINES,
    set_state: MACHINES,
    set_state_of_held: LEASES + MACHINES,
    hold_what_is_down: LEASES[:1] + MACHINES[:1],
    free_what_is_down: LEASES[:1] + MACHINES[:1],
    leave_machine: LEASES[1:] + MACHINES,
    renew: JOBS,
    hand_back: JOBS,
    park: JOBS,
}
"""By call, here in the one order, all that it waits for; each names them in another.

Forced evictions pass over jobs that are locked: tests/attack/test_passed_over.py.
"""

CHARGED = {
    prepared: (*locks[: -len(MACHINES)], *QUOTAS, *MACHINES)
    for prepared, locks in LOCKS.items()
    if locks in (EVERYTHING, A_JOB_AND_MACHINES, HELPERS_AND_MACHINES)
    or prepared in (lose_tasks, enforce_notices)
}
"""The same where there are quotas, which some of them have to charge or to give back to."""


def each_of(
    locks: dict[Callable[[PostgresStore], Call], tuple[Rows, ...]],
) -> pytest.MarkDecorator:
    """Try every call with every row that it locks."""
    return pytest.mark.parametrize(
        ("prepared", "row"),
        [
            pytest.param(prepared, row, id=f"{prepared.__name__}-{row}")
            for prepared, rows in locks.items()
            for row in rows
        ],
    )


@pytest.fixture(autouse=True)
def tables_are_new(database_url: str) -> None:
    """Have no dead rows: with many, the planner reads machines in order, and hides a wrong order.

    In a table of a usual cell, calls look machines up one by one, in the order that they ask for.
    """
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute("TRUNCATE omega.job, omega.machine, omega.allocation, omega.machine_lease")


@pytest.fixture
def rival(database_url: str, open_store: OpenStore) -> Iterator[PostgresStore]:
    """The store that is called, in a session of its own."""
    with closing(open_store(database_url, application_name="omega rival")) as rival:
        yield rival


def assert_holds_nothing_after(
    url: str, rival: PostgresStore, row: Rows, call: Call, *, order: tuple[Rows, ...]
) -> None:
    """Hold a row; whoever comes to wait for it may hold what is before it, and nothing else."""
    after = order[order.index(row) + 1 :]
    with psycopg.connect(url) as onlooker:
        with in_the_way(url, row.lock, lambda: call(rival)) as (_, future):
            assert not future.done(), "it locks this row, or it could be changed meanwhile"
            assert list(after) == [other for other in after if other.are_free(onlooker)]

        assert future.result(), "it goes through, and finds what to do"
        assert [] == list(rival.verify())


@each_of(LOCKS)
def test_who_waits_for_a_row_holds_none_that_comes_after_it(
    database_url: str,
    store: PostgresStore,
    rival: PostgresStore,
    prepared: Callable[[PostgresStore], Call],
    row: Rows,
) -> None:
    assert_holds_nothing_after(database_url, rival, row, prepared(store), order=LOCKS[prepared])


@each_of(CHARGED)
def test_quotas_stand_between_jobs_and_machines(
    database_url: str,
    store: PostgresStore,
    rival: PostgresStore,
    prepared: Callable[[PostgresStore], Call],
    row: Rows,
) -> None:
    limit(store)

    assert_holds_nothing_after(database_url, rival, row, prepared(store), order=CHARGED[prepared])


@pytest.mark.parametrize("row", SHARDS_OF_QUOTAS, ids=str)
def test_who_locks_all_shards_of_quotas_takes_them_in_order(
    database_url: str, store: PostgresStore, rival: PostgresStore, row: Rows
) -> None:
    """Evictions need exact sums."""
    limit(store)
    order = (*JOBS, *SHARDS_OF_QUOTAS, *MACHINES)

    assert_holds_nothing_after(
        database_url, rival, row, commit_that_breaks_a_gang(store), order=order
    )
