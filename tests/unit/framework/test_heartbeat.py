"""Leases, and the thread that keeps them."""

import threading
from collections.abc import Mapping
from uuid import UUID

import pytest

from omega.clock import ManualClock
from omega.errors import SchemaMismatch
from omega.events import Event, StoreCallFailed
from omega.framework.heartbeat import Heartbeat
from omega.framework.leasing import Leases
from omega.store.memory.store import MemoryStore
from omega.store.protocols import Store
from omega.testing.builders import a_job, a_spec
from omega.testing.pass_through import PassThrough
from omega.testing.steps import LONG_MS, add_a_cell, lease_all, submit_and_lease
from tests.unit.framework.stores import Absent


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(clock: ManualClock) -> Absent:
    memory = MemoryStore(clock)
    add_a_cell(memory)
    return Absent(memory)


def a_heartbeat(
    leases: Leases, store: Store, events: list[Event] | None = None, *, interval_ms: int = 1_000
) -> Heartbeat:
    sink = (events if events is not None else []).append
    return Heartbeat(leases, lambda: store, sink, lease_ms=5_000, interval_ms=interval_ms)


def test_leases_are_held_from_taking_to_dropping() -> None:
    leases, job = Leases(), a_job()

    leases.take([job])
    held = leases.holds(job)
    leases.drop([job.id, 99])

    assert held
    assert not leases.holds(job)
    assert {} == leases.held()


def test_a_newer_lease_of_the_same_job_is_not_lost_with_the_older() -> None:
    leases, job = Leases(), a_job()
    leases.take([job])

    leases.lose({job.id: UUID(int=12345)})

    assert leases.holds(job)


def test_a_beat_keeps_a_lease_from_running_out(clock: ManualClock, store: Absent) -> None:
    leases = Leases()
    leases.take(submit_and_lease(store, a_spec(), lease_ms=5_000))
    heartbeat = a_heartbeat(leases, store)

    for _ in range(5):
        clock.advance(4.0)
        heartbeat.beat()

    assert [] == store.rescue()
    assert 1 == len(leases.held())


def test_a_lease_that_was_lost_is_noticed_and_the_others_stay(
    clock: ManualClock, store: Absent
) -> None:
    leases = Leases()
    lost, kept = submit_and_lease(store, a_spec(), a_spec(), lease_ms=5_000)
    leases.take([lost, kept])
    store.renew({kept.id: kept.token}, lease_ms=LONG_MS)
    clock.advance(6.0)
    assert [lost.id] == store.rescue()
    lease_all(store)

    a_heartbeat(leases, store).beat()

    assert {kept.id: kept.token} == leases.held()


def test_while_the_store_is_away_nothing_is_given_up(store: Absent) -> None:
    leases, events = Leases(), list[Event]()
    (job,) = submit_and_lease(store, a_spec())
    leases.take([job])
    heartbeat = a_heartbeat(leases, store, events)
    store.absences = 1

    heartbeat.beat()
    heartbeat.beat()

    assert leases.holds(job)
    assert [StoreCallFailed("renew", "the server is away")] == events
    assert 1 == store.closed  # a broken connection is not used again


class Beaten(PassThrough):
    """Tells when leases are renewed, and can break for good."""

    def __init__(self, store: Store, error: Exception | None = None) -> None:
        super().__init__(store)
        self.renewed = threading.Event()
        self.closed = threading.Event()
        self.error = error

    def renew(self, leases: Mapping[int, UUID], *, lease_ms: int) -> set[int]:
        self.renewed.set()
        if self.error is not None:
            raise self.error
        return super().renew(leases, lease_ms=lease_ms)

    def close(self) -> None:
        self.closed.set()


def test_the_thread_beats_by_itself_and_ends_with_the_block(store: Absent) -> None:
    leases, beaten = Leases(), Beaten(store)
    leases.take(submit_and_lease(store, a_spec()))
    threads = threading.active_count()

    with a_heartbeat(leases, beaten, interval_ms=1) as heartbeat:
        beaten.renewed.wait()
        heartbeat.check()

    assert threads == threading.active_count()
    assert beaten.closed.is_set()


def test_what_ends_the_thread_is_raised_where_it_can_be_dealt_with(store: Absent) -> None:
    leases, beaten = Leases(), Beaten(store, SchemaMismatch("at another migration"))
    leases.take(submit_and_lease(store, a_spec()))

    with a_heartbeat(leases, beaten, interval_ms=1) as heartbeat:
        beaten.closed.wait()

        with pytest.raises(SchemaMismatch):
            heartbeat.check()
