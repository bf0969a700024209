"""Loading a start state, and feeding jobs, on the store in memory."""

import numpy as np
import pytest

from omega.clock import ManualClock
from omega.errors import StoreUnavailable
from omega.lifecycle.states import State
from omega.model.arrays import Ids
from omega.model.claims import Transaction
from omega.model.outcomes import Outcome
from omega.store.feeding import JOBS_PER_FEED, Feeder
from omega.store.loading import place_prefill, submit_all
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_cell, a_spec
from omega.workload.arrivals import Arrival, Prefill
from omega.workload.synthetic import Shape, scattered


class Deaf(MemoryStore):
    """Applies every commit but loses the first replies."""

    losses = 2

    def commit(self, transaction: Transaction) -> Outcome:
        outcome = super().commit(transaction)
        if self.losses:
            self.losses -= 1
            raise StoreUnavailable("the reply was lost")
        return outcome


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(clock: ManualClock) -> MemoryStore:
    return MemoryStore(clock)


def a_filled_cell(store: MemoryStore, tasks: int) -> tuple[Prefill, Ids]:
    """Return the start state of ten machines with four cores, and the machines' ids."""
    cell = a_cell(10)
    return scattered(cell, tasks, Shape(), np.random.default_rng(1)), store.add_machines(cell)


def test_what_runs_at_the_start_is_placed_through_the_queue(
    store: MemoryStore, clock: ManualClock
) -> None:
    prefill, machines = a_filled_cell(store, 25)
    steps: list[int] = []

    loaded = place_prefill(store, prefill, machines, clock=clock, advance=steps.append)

    assert (1, 25, 25, 1) == (loaded.jobs, loaded.tasks, loaded.placed, loaded.transactions)
    assert [25] == steps
    assert {State.RUNNING: 1} == dict(store.use().jobs_by_state)
    assert prefill.used(10).tolist() == store.snapshot().rows.used.tolist()
    assert [] == list(store.verify())


def test_jobs_that_are_not_ours_are_given_back(store: MemoryStore, clock: ManualClock) -> None:
    (other,) = store.submit([a_spec(scheduler="service")])
    prefill, machines = a_filled_cell(store, 5)

    place_prefill(store, prefill, machines, clock=clock)

    status = store.job(other)
    assert status is not None
    assert State.PENDING is status.state


def test_a_job_that_somebody_else_took_is_left_to_him(
    store: MemoryStore, clock: ManualClock
) -> None:
    prefill, machines = a_filled_cell(store, 5)
    submit = store.submit

    def submit_and_steal(specs: list[object]) -> list[int]:
        ids = submit(specs)  # type: ignore[arg-type]
        store.lease("service", holder="thief", jobs_max=1, lease_ms=10_000)
        return ids

    store.submit = submit_and_steal  # type: ignore[method-assign, assignment]
    loaded = place_prefill(store, prefill, machines, clock=clock)

    assert (5, 0) == (loaded.tasks, loaded.placed)


def test_a_lost_reply_places_nothing_twice(clock: ManualClock) -> None:
    store = Deaf(clock)
    prefill, machines = a_filled_cell(store, 5)

    assert 5 == place_prefill(store, prefill, machines, clock=clock).placed
    assert 5 == store.use().live_allocations


def test_a_store_that_stays_away_is_reported(clock: ManualClock) -> None:
    store = Deaf(clock)
    store.losses = 99
    prefill, machines = a_filled_cell(store, 5)

    with pytest.raises(StoreUnavailable):
        place_prefill(store, prefill, machines, clock=clock)


def test_loading_stops_between_transactions(store: MemoryStore, clock: ManualClock) -> None:
    prefill, machines = a_filled_cell(store, 5)

    loaded = place_prefill(store, prefill, machines, clock=clock, stopped=lambda: True)

    assert (0, 0) == (loaded.placed, loaded.transactions)


def test_an_empty_start_is_nothing_to_place(store: MemoryStore, clock: ManualClock) -> None:
    _, machines = a_filled_cell(store, 0)

    loaded = place_prefill(store, Prefill.none(), machines, clock=clock)

    assert (0, 0, 0.0) == (loaded.jobs, loaded.placed, loaded.tasks_per_second)


def test_any_number_of_jobs_can_be_submitted(store: MemoryStore) -> None:
    steps: list[int] = []

    ids = submit_all(store, [a_spec()] * 2_500, steps.append)

    assert 2_500 == len(set(ids))
    assert [1_000, 1_000, 500] == steps


def test_a_feeder_submits_what_is_due_in_order(store: MemoryStore) -> None:
    arrivals = [Arrival(at, a_spec(name=f"at-{at}")) for at in (0.0, 1.0, 1.0, 2.5)]
    feeder = Feeder(arrivals, store)

    fed = [feeder.feed(elapsed_s) for elapsed_s in (0.0, 0.9, 1.0, 2.0)]

    assert [1, 0, 2, 0] == fed
    assert (3, 4, False) == (feeder.submitted, feeder.total, feeder.done)
    assert 1 == feeder.feed(99.0)
    assert feeder.done
    assert ["at-2.5", "at-1.0", "at-1.0", "at-0.0"] == [job.name for job in store.jobs()]


def test_a_feeder_takes_a_flood_in_sips(store: MemoryStore) -> None:
    feeder = Feeder([Arrival(0.0, a_spec())] * (JOBS_PER_FEED + 1), store)

    assert [JOBS_PER_FEED, 1, 0] == [feeder.feed(0.0) for _ in range(3)]
