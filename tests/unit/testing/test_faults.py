"""Calls that are lost, late, or the last."""

import signal
import threading
from collections import Counter
from datetime import timedelta

import numpy as np
import pytest

from omega.clock import ManualClock
from omega.config import Settings
from omega.errors import StoreUnavailable
from omega.framework.runner import SchedulerProcess
from omega.lifecycle.states import State
from omega.model.claims import Transaction
from omega.store.memory.store import MemoryStore
from omega.testing.auditor import Auditor
from omega.testing.builders import a_spec, a_transaction, claims_of_job, some_claims
from omega.testing.faults import FaultyStore, Halt, Losses, Rates, Side, SkewedClock, Spoiler
from omega.testing.rivals import PROCESSES
from omega.testing.steps import a_leased_job, add_a_cell
from schedulers.batch import BatchScheduler


def losses(rates: Rates, clock: ManualClock | None = None, seed: int = 0) -> Losses:
    return Losses(rates, np.random.default_rng(seed), clock or ManualClock())


def a_claim_on(store: MemoryStore) -> Transaction:
    add_a_cell(store)
    return a_transaction(claims_of_job(a_leased_job(store), some_claims([0], [1])))


def test_a_lost_request_had_no_effect() -> None:
    store = MemoryStore(ManualClock())
    transaction = a_claim_on(store)
    spoiler = losses(Rates(lose_request=1.0))
    with pytest.raises(StoreUnavailable, match="commit had no effect"):
        FaultyStore(store, spoiler).commit(transaction)

    assert 0 == len(store.allocations())
    assert {"lost requests": 1} == spoiler.counts


def test_a_lost_reply_had_its_effect() -> None:
    store = MemoryStore(ManualClock())
    transaction = a_claim_on(store)
    spoiler = losses(Rates(lose_reply=1.0))
    with pytest.raises(StoreUnavailable, match="commit had its effect"):
        FaultyStore(store, spoiler).commit(transaction)

    assert 1 == len(store.allocations())
    assert store.commit(transaction).accepted.all()
    assert {"lost replies": 1} == spoiler.counts


def test_a_delay_is_by_the_clock() -> None:
    clock = ManualClock()
    spoiler = losses(Rates(delay=1.0, delay_s_max=5.0), clock)
    FaultyStore(MemoryStore(clock), spoiler).snapshot()

    (waited,) = clock.slept
    assert 0 < waited < 5
    assert {"delays": 1} == spoiler.counts


def test_the_same_seed_spoils_the_same_calls() -> None:
    def spoilt(seed: int) -> list[bool]:
        store = FaultyStore(MemoryStore(ManualClock()), losses(Rates(lose_request=0.5), seed=seed))
        found = []
        for _ in range(30):
            try:
                store.now_ms()
            except StoreUnavailable:
                found.append(True)
            else:
                found.append(False)
        return found

    assert spoilt(seed=1) == spoilt(seed=1) != spoilt(seed=2)


def test_closing_is_never_lost() -> None:
    FaultyStore(MemoryStore(ManualClock()), losses(Rates(lose_request=1.0))).close()


def test_a_scheduler_gets_its_work_done_all_the_same() -> None:
    clock, stop = ManualClock(), threading.Event()
    true_store = MemoryStore(clock)
    add_a_cell(true_store, 10)
    true_store.submit([a_spec(3) for _ in range(12)])
    spoiler = losses(Rates(lose_request=0.2, lose_reply=0.2), clock)
    store = FaultyStore(Auditor(true_store), spoiler)
    process = SchedulerProcess(
        scheduler=BatchScheduler(),
        store=store,
        open_store=lambda: store,
        clock=clock,
        settings=Settings(),
        sink=lambda _event: None,
        replica="0",
        run_seed=0,
        stop=stop,
    )
    # Leases given out in a reply that was lost have to run out first.
    while true_store.use().jobs_by_state != Counter({State.RUNNING: 12}):
        process.step()
        clock.advance(1.0)

    assert 36 == len(true_store.allocations())
    assert [] == list(true_store.verify())
    assert spoiler.counts.total() > 5


def calls(spoiler: Spoiler, number: int) -> None:
    """Make calls until the process ends."""
    store = FaultyStore(MemoryStore(ManualClock()), spoiler)
    for _ in range(number):
        store.snapshot()
        store.now_ms()


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("made", [2, 3])
def test_a_process_ends_at_the_call_it_is_told_to_end_at(side: Side, made: int) -> None:
    spoiler = Halt("now_ms", side, calls_before=2)
    process = PROCESSES.Process(target=calls, args=(spoiler, made))
    process.start()
    process.join()

    assert (0 if made == 2 else -signal.SIGKILL) == process.exitcode


def test_a_skewed_clock_is_wrong_by_as_much_all_the_time() -> None:
    right = ManualClock(100.0)
    wrong = SkewedClock(right, ahead_s=-7_200.0)
    before = wrong.now()
    wrong.sleep(5.0)

    assert -7_100.0 == before
    assert 5.0 == wrong.now() - before
    assert timedelta(hours=-2) == wrong.wall() - right.wall()
