"""Machine leases among several sessions: never two holders at a time, by the database's clock."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from uuid import UUID

import psycopg
import pytest

from omega.errors import NotAllowed
from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.store.postgres.assignment import assign_machines
from omega.store.postgres.store import PostgresStore
from omega.store.protocols import Store
from omega.testing.builders import a_spec
from omega.testing.machine_lease_contract import ANN, BOB, fall_silent, hold, state_of
from omega.testing.steps import LONG_MS, a_running_job, add_a_cell, places
from tests.fixtures.at_work import AT_MOST_S, wait_until
from tests.fixtures.locks import in_the_way
from tests.fixtures.logins import Login, user_of

SHORT_MS = 50
RIVALS = 3
TURNS = 15
"""How often each of several rivals holds the machine."""
HELD_BY_ANN = f"SELECT omega.hold_machine(1, '{ANN}', {LONG_MS})"


@pytest.fixture
def machine(store: PostgresStore) -> int:
    """The cell's one machine."""
    (machine,) = add_a_cell(store, 1)
    return machine


@pytest.fixture
def agent(login: Login, database_url: str, store: PostgresStore) -> Iterator[Store]:
    """The store as a login sees it that stands for machine-1 of three."""
    add_a_cell(store)
    url = login("alice", "omega_node")
    assign_machines(database_url, user_of(url), ["machine-1"])
    with closing(PostgresStore(url)) as agent:
        yield agent


def rows_of_leases(url: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as owner:
        return owner.execute(
            "SELECT machine_id, holder, login, state_before FROM omega.machine_lease"
        ).fetchall()


def test_a_login_holds_and_leaves_its_own_machines_alone(
    store: PostgresStore, agent: Store
) -> None:
    a_running_job(store, a_spec(2), [2, 2])
    hold(store, 2, ANN)
    calls: list[Callable[[int], object]] = [
        lambda machine: agent.hold_machine(machine, ANN, lease_ms=LONG_MS),
        lambda machine: agent.leave_machine(machine, ANN),
    ]

    for call in calls:
        for foreign in (2, 99):
            with pytest.raises(NotAllowed, match=f"machine {foreign} is none for which"):
                call(foreign)

    assert 2 == len(places(store))
    assert not store.hold_machine(2, BOB, lease_ms=LONG_MS)
    assert MachineState.OPEN == state_of(store, 2)


def test_a_login_evicts_from_its_own_machines_alone(
    database_url: str, store: PostgresStore, agent: Store, login: Login
) -> None:
    """`leave_machine` of a store is two calls; the second may be made by itself."""
    a_running_job(store, a_spec(3), [1, 2, 2])
    store.set_state(integers([2]), MachineState.DOWN)

    with psycopg.connect(login("alice2", "omega_node"), autocommit=True) as session:
        assign_machines(database_url, session.info.user, ["machine-1"])
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute("SELECT omega.lose_own_tasks(2)")
        up = session.execute("SELECT omega.lose_own_tasks(1)").fetchone()

    assert (0,) == up
    assert 3 == len(places(store))


def test_a_login_that_stands_for_a_machine_leaves_it(
    database_url: str, store: PostgresStore, agent: Store
) -> None:
    a_running_job(store, a_spec(3), [1, 2, 1])
    hold(agent, 1, ANN)
    assert ["alice" in str(row[2]) for row in rows_of_leases(database_url)] == [True]

    assert 2 == agent.leave_machine(1, ANN)

    assert [2] == store.allocations().machine.tolist()
    assert [(1, ANN, 0)] == [(row[0], row[1], row[3]) for row in rows_of_leases(database_url)]
    hold(agent, 1, BOB)
    assert MachineState.OPEN == state_of(store, 1)


def test_the_second_of_two_at_once_is_refused(
    database_url: str, store: PostgresStore, machine: int
) -> None:
    fall_silent(store, machine, holder=UUID(int=3))

    with in_the_way(
        database_url, HELD_BY_ANN, lambda: store.hold_machine(machine, BOB, lease_ms=LONG_MS)
    ) as (session, held):
        assert not held.done()
        session.commit()
        assert not held.result()

    assert store.hold_machine(machine, ANN, lease_ms=LONG_MS)


def test_the_second_of_two_first_holders_is_refused(
    database_url: str, store: PostgresStore, machine: int
) -> None:
    with in_the_way(
        database_url, HELD_BY_ANN, lambda: store.hold_machine(machine, BOB, lease_ms=LONG_MS)
    ) as (session, held):
        session.commit()
        assert not held.result()


def test_whoever_waited_holds_the_machine_for_as_long_as_it_asked(
    database_url: str, store: PostgresStore, machine: int
) -> None:
    """The time begins when the lease is granted, and not when it was asked for."""
    hold(store, machine, BOB)
    lock = "SELECT clock_timestamp() FROM omega.machine_lease FOR UPDATE"
    with in_the_way(
        database_url, lock, lambda: store.hold_machine(machine, BOB, lease_ms=LONG_MS)
    ) as (session, held):
        (waited_at,) = session.execute("SELECT clock_timestamp()").fetchone() or (None,)
        session.commit()
        assert held.result()

    with psycopg.connect(database_url) as owner:
        (lasts,) = owner.execute(
            "SELECT expires_at - %s >= %s * interval '1 ms' FROM omega.machine_lease",
            [waited_at, LONG_MS],
        ).fetchone() or (False,)
    assert lasts


def test_a_lease_in_use_is_passed_over(
    database_url: str, store: PostgresStore, machine: int
) -> None:
    fall_silent(store, machine)

    with in_the_way(database_url, HELD_BY_ANN, store.expire_machines) as (session, expired):
        assert [] == expired.result(AT_MOST_S)
        session.commit()

    assert [] == store.expire_machines()
    assert MachineState.OPEN == state_of(store, machine)


def test_a_machine_in_use_keeps_no_other_open(store: PostgresStore, database_url: str) -> None:
    first, second = add_a_cell(store, 2)
    fall_silent(store, first, second)
    with psycopg.connect(database_url) as other:
        other.execute("SELECT FROM omega.machine WHERE id = %s FOR NO KEY UPDATE", (first,))
        assert [second] == store.expire_machines()
    assert [first] == store.expire_machines()


def test_an_agent_that_comes_back_as_its_machine_expires_gets_it_back(
    database_url: str, store: PostgresStore, machine: int
) -> None:
    fall_silent(store, machine)

    with in_the_way(
        database_url,
        "SELECT omega.expire_machines()",
        lambda: store.hold_machine(machine, ANN, lease_ms=LONG_MS),
    ) as (session, held):
        session.commit()
        assert held.result()

    assert MachineState.OPEN == state_of(store, machine)
    assert [] == list(store.verify())


@pytest.mark.parametrize("state", MachineState)
@pytest.mark.parametrize("first", ["expire_machines()", f"hold_machine(1, '{ANN}', {LONG_MS})"])
def test_what_an_operator_says_meanwhile_holds(
    database_url: str, store: PostgresStore, machine: int, state: MachineState, first: str
) -> None:
    fall_silent(store, machine)
    if first.startswith("hold"):
        store.expire_machines()

    with in_the_way(
        database_url,
        f"SELECT omega.{first}",
        lambda: store.set_state(integers([machine]), state),
    ) as (session, _):
        session.commit()

    assert state == state_of(store, machine)
    assert [] == list(store.verify())
    hold(store, machine)
    assert state == state_of(store, machine)


def test_a_machine_taken_down_just_before_it_expires_stays_down(
    database_url: str, store: PostgresStore, machine: int
) -> None:
    fall_silent(store, machine)
    # An operator's session that has locked the machine's row alone, as one without leases would.
    taken_down = "UPDATE omega.machine SET state = 2 WHERE id = 1"

    with in_the_way(database_url, taken_down, store.expire_machines) as (session, expired):
        assert [] == expired.result(AT_MOST_S)
        session.commit()

    assert [] == store.expire_machines()
    hold(store, machine)
    assert MachineState.DOWN == state_of(store, machine)


@dataclass
class Rivalry:
    """What rivals for one machine know together."""

    last: UUID | None = None
    """Who held it last; one writes at a time, as far as leases work."""
    beliefs: list[tuple[float, float, UUID]] = field(default_factory=list)
    """From when until when somebody is sure to hold it, by the database's clock, in seconds."""
    expiries: list[tuple[float, float]] = field(default_factory=list)
    """Between which moments the machine was declared down."""
    done: set[UUID] = field(default_factory=set)
    """Who has held it often enough."""

    def is_turn_of(self, name: UUID, rivals: int) -> bool:
        """Return whether somebody else held it last, or nobody else is left."""
        return self.last != name or len(self.done - {name}) == rivals - 1


def seconds(session: psycopg.Connection) -> float:
    """Return the time by the database's clock."""
    row = session.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
    assert row is not None
    return float(row[0])


def hold_in_turns(url: str, name: UUID, rivalry: Rivalry) -> None:
    """Hold machine 1 so many times, each time after somebody else while there is one."""
    with psycopg.connect(url, autocommit=True) as session, closing(PostgresStore(url)) as store:

        def is_held() -> bool:
            asked = seconds(session)
            if not store.hold_machine(1, name, lease_ms=SHORT_MS):
                return False
            rivalry.beliefs.append((seconds(session), asked + SHORT_MS / 1_000, name))
            rivalry.last = name
            return True

        for _ in range(TURNS):
            wait_until(
                lambda: rivalry.is_turn_of(name, RIVALS) and is_held(),
                f"{name} to hold the machine",
            )
            is_held()  # once more, which prolongs the lease if it has not been lost
        rivalry.done.add(name)


def expire_all_along(url: str, rivalry: Rivalry, is_over: Callable[[], bool]) -> None:
    """Declare machine 1 down whenever its lease has run out."""
    with psycopg.connect(url, autocommit=True) as session, closing(PostgresStore(url)) as store:

        def expire_once() -> bool:
            asked = seconds(session)
            if store.expire_machines():
                rivalry.expiries.append((asked, seconds(session)))
            return is_over()

        wait_until(expire_once, "the rivals to be done")


def test_two_never_hold_a_machine_at_a_time(
    database_url: str, store: PostgresStore, machine: int
) -> None:
    rivalry = Rivalry()
    names = [UUID(int=number) for number in range(1, RIVALS + 1)]

    with ThreadPoolExecutor(len(names) + 1) as threads:
        rivals = [threads.submit(hold_in_turns, database_url, name, rivalry) for name in names]
        threads.submit(
            expire_all_along, database_url, rivalry, lambda: all(it.done() for it in rivals)
        ).result()
        for rival in rivals:
            rival.result()

    told = sorted(belief for belief in rivalry.beliefs if belief[0] < belief[1])
    for (_, until, one), (since, _, other) in pairwise(told):
        assert one == other or until <= since, f"{one} and {other} at a time"
    for asked, answered in rivalry.expiries:
        covering = [it for it in told if it[0] <= asked and answered <= it[1]]
        assert [] == covering, "it was taken down while somebody held it"
    assert {*names} == {name for _, _, name in rivalry.beliefs}
    assert [] == list(store.verify())
    wait_until(lambda: store.hold_machine(machine, ANN, lease_ms=LONG_MS), "the last lease to end")
    assert MachineState.OPEN == state_of(store, machine)
    assert [] == store.expire_machines()
