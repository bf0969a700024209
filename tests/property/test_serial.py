"""The checker of serialisability, on what a store says that does one thing at a time.

The true histories must all be accepted, however their calls overlap; and none that the change of
one thing has made untrue.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from uuid import UUID

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omega.clock import ManualClock
from omega.errors import InvariantBroken, StoreUnavailable
from omega.model.arrays import Ids, Index
from omega.model.claims import ConflictRule
from omega.model.machines import MachineRows
from omega.model.outcomes import Outcome, Verdict
from omega.model.resources import Kind
from omega.store.memory.store import MemoryStore
from omega.store.protocols import Store
from omega.testing.faults import FaultyStore, Losses, Rates
from omega.testing.pass_through import PassThrough
from omega.testing.races import MODES, Mode, Racer, Unit, hot_cell, jobs_to_race_for
from omega.testing.recorder import NEVER, Ended, Event, History, Judged, Moment, Recorder
from omega.testing.serial import serial_order
from tests.fixtures.doses import examples

WORKERS = 3
STEPS = 6
"""Of each worker."""
TASKS = 3
"""Of each job: few, so that jobs are soon complete, and their leases over."""

modes = st.sampled_from(MODES)
seeds = st.integers(0, 2**32)
RELIABLE = Rates()
LOSSY = Rates(lose_request=0.2, lose_reply=0.2)

Spoil = Callable[[Judged, np.random.Generator], Outcome]


class Straggling(PassThrough):
    """Loses the answers to some ends of tasks, and carries these out when it is told to."""

    def __init__(self, store: Store, rng: np.random.Generator, share: float) -> None:
        super().__init__(store)
        self._rng = rng
        self._share = share
        self._late: list[tuple[Ids, Index]] = []

    def end_tasks(self, job: Ids, task: Index, started_ms: Ids | None = None) -> int:
        if self._rng.random() < self._share:
            self._late.append((job, task))
            raise StoreUnavailable("nobody knows what became of it")
        return super().end_tasks(job, task, started_ms)

    def catch_up(self) -> None:
        """Carry out one of those that are late, whichever."""
        if self._late:
            job, task = self._late.pop(int(self._rng.integers(len(self._late))))
            super().end_tasks(job, task)


def served_in_turn(
    mode: Mode, seed: int, rates: Rates = RELIABLE, late: float = 0.0
) -> tuple[list[tuple[int, Event]], History]:
    """Let racers take turns; return the events in order, with their worker, and the history."""
    rng = np.random.default_rng(seed)
    clock = ManualClock()
    store = Straggling(MemoryStore(clock), rng, late)
    hot_cell(store)
    jobs = jobs_to_race_for(store, mode, WORKERS * STEPS, tasks=TASKS)
    before = Moment.of(store)
    served: list[tuple[int, Event]] = []

    def racer(worker: int) -> Iterator[None]:
        faulty = FaultyStore(store, Losses(rates, rng, clock))
        recorder = Recorder(
            faulty, str(worker), clock, lambda event: served.append((worker, event))
        )
        return Racer(
            recorder,
            jobs,
            mode,
            name=str(worker),
            rng=np.random.default_rng([seed, worker]),
            clock=clock,
            new_id=lambda: UUID(bytes=rng.bytes(16)),
        ).steps(STEPS)

    racers = list(map(racer, range(WORKERS)))
    for worker in rng.permutation(np.repeat(np.arange(WORKERS), STEPS)).tolist():
        next(racers[worker], None)
        if late and rng.random() < 0.5:
            store.catch_up()
    workers = [overlapping(served, worker, rng) for worker in range(WORKERS)]
    return served, History(before, jobs, tuple(workers), Moment.of(store))


def overlapping(
    served: list[tuple[int, Event]], worker: int, rng: np.random.Generator
) -> tuple[Event, ...]:
    """Say when a worker asked and was answered: around the moment at which it was served."""
    moments = [float(number) for number, (whose, _) in enumerate(served) if whose == worker]
    edges = zip([-1.0, *moments], [*moments, float(len(served))], strict=True)
    # Between two moments there is first an answer, then a question.
    between = [np.sort(rng.uniform(low, high, 2)).tolist() for low, high in edges]
    return tuple(
        replace(event, started=asked, answered=told if event.answered < NEVER else NEVER)
        for event, (_, asked), (told, _) in zip(
            (served[int(moment)][1] for moment in moments), between, between[1:], strict=False
        )
    )


def a_history(mode: Mode, seed: int, rates: Rates = RELIABLE, late: float = 0.0) -> History:
    return served_in_turn(mode, seed, rates, late)[1]


def answered(history: History) -> int:
    return sum(event.answered < NEVER for events in history.workers for event in events)


@examples(250)
@given(modes, seeds)
def test_what_a_store_says_that_serves_one_at_a_time_has_an_order(mode: Mode, seed: int) -> None:
    history = a_history(mode, seed)

    assert len(history) == len(serial_order(history)) > STEPS


@examples(250)
@given(modes, seeds)
def test_what_was_asked_for_again_is_explained(mode: Mode, seed: int) -> None:
    history = a_history(mode, seed, LOSSY)

    assert answered(history) <= len(serial_order(history)) <= len(history)


@examples(250)
@given(modes, seeds)
def test_ends_that_come_long_after_their_worker_gave_up_are_explained(
    mode: Mode, seed: int
) -> None:
    history = a_history(mode, seed, LOSSY, late=0.5)

    assert answered(history) <= len(serial_order(history)) <= len(history)


def another_verdict(event: Judged, rng: np.random.Generator) -> Outcome:
    verdicts = event.outcome.verdicts.copy()
    at = rng.integers(len(verdicts))
    verdicts[at] = rng.choice([v for v in Verdict if v != verdicts[at]])
    return replace(event.outcome, verdicts=verdicts)


def another_machine(event: Judged, rng: np.random.Generator) -> Outcome:
    machine = event.outcome.machine.copy()
    machine[rng.integers(len(machine))] += 1
    return replace(event.outcome, machine=machine)


def more_evicted(event: Judged, rng: np.random.Generator) -> Outcome:
    outcome = event.outcome
    return replace(
        outcome,
        evicted_job=np.append(outcome.evicted_job, event.transaction.jobs[0].job),
        evicted_task=np.append(outcome.evicted_task, rng.integers(9)),
    )


def a_row_fewer(event: Judged, _rng: np.random.Generator) -> Outcome:
    fresh = event.outcome.fresh
    return replace(event.outcome, fresh=fresh.take(np.arange(len(fresh) - 1)))


def another_row(change: Callable[[MachineRows, int, int], MachineRows]) -> Spoil:
    def spoil(event: Judged, rng: np.random.Generator) -> Outcome:
        fresh, step = event.outcome.fresh, int(rng.choice([-1, 1, 2]))
        return replace(event.outcome, fresh=change(fresh, int(rng.integers(len(fresh))), step))

    return spoil


@another_row
def another_sequence(rows: MachineRows, at: int, step: int) -> MachineRows:
    sequence = rows.sequence.copy()
    sequence[at] += step
    return replace(rows, sequence=sequence)


@another_row
def another_revision(rows: MachineRows, at: int, step: int) -> MachineRows:
    revision = rows.revision.copy()
    revision[at] += step
    return replace(rows, revision=revision)


@another_row
def another_use(rows: MachineRows, at: int, step: int) -> MachineRows:
    used = rows.used.copy()
    used[at, Kind.CPU_MILLI] += step
    return replace(rows, used=used)


SPOILS: dict[str, Spoil] = {
    "another verdict": another_verdict,
    "another machine": another_machine,
    "more evicted": more_evicted,
    "a row fewer": a_row_fewer,
    "another sequence": another_sequence,
    "another revision": another_revision,
    "another use": another_use,
}


@given(spoil=st.sampled_from(list(SPOILS)), mode=modes, seed=seeds)
# What was already placed was so before its lease was lost, which another did at the same time.
@example(spoil="another verdict", mode=Mode(ConflictRule.FIT, Unit.INCREMENTAL), seed=13_763)
def test_one_changed_answer_is_found_out(spoil: str, mode: Mode, seed: int) -> None:
    served, history = served_in_turn(mode, seed)
    rng = np.random.default_rng(seed)
    worker = int(rng.integers(WORKERS))
    events = list(history.workers[worker])
    at = int(rng.choice([n for n, event in enumerate(events) if isinstance(event, Judged)]))
    event = events[at]
    assert isinstance(event, Judged)
    events[at] = replace(event, outcome=SPOILS[spoil](event, rng))
    workers = (*history.workers[:worker], tuple(events), *history.workers[worker + 1 :])

    try:
        order = serial_order(replace(history, workers=workers))
    except InvariantBroken:
        return
    # What was asked at the same time may come in another order, in which the other answer is true.
    to_come = [iter(its) for its in workers]
    assert any(
        placed is not next(to_come[whose]) for placed, (whose, _) in zip(order, served, strict=True)
    )


@examples(250)
@given(modes, seeds)
def test_an_event_that_nobody_tells_of_is_missed(mode: Mode, seed: int) -> None:
    """Without one that changed the cell, what came after it cannot be."""
    served, history = served_in_turn(mode, seed)
    changed = [
        number
        for number, (_, event) in enumerate(served)
        if (event.ended if isinstance(event, Ended) else event.outcome.accepted.any())
    ]
    worker, _ = served[changed[seed % len(changed)]]
    place = sum(whose == worker for whose, _ in served[: changed[seed % len(changed)]])
    left = history.workers[worker][:place] + history.workers[worker][place + 1 :]
    workers = (*history.workers[:worker], left, *history.workers[worker + 1 :])

    with pytest.raises(InvariantBroken):
        serial_order(replace(history, workers=workers))


@examples(250)
@given(modes, seeds)
def test_another_cell_at_the_end_is_found_out(mode: Mode, seed: int) -> None:
    history = a_history(mode, seed)
    used = history.after.rows.used.copy()
    used[seed % len(used), Kind.CPU_MILLI] += 1
    after = replace(history.after, rows=replace(history.after.rows, used=used))

    with pytest.raises(InvariantBroken, match="not as it was found"):
        serial_order(replace(history, after=after))
