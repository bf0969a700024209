"""Rivals: real processes that race for one cell, lap after lap, and hand in what they were told.

Goal     Have commits meet in the database as they meet in life: from processes that share nothing.
Promise  A lap begins for all at once, with the cell at rest before and after it. What comes back is
         a whole history, or the error of the process that could not finish.
Source   omega/testing/races.py says what each of them does.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from types import TracebackType
from typing import Self
from uuid import UUID

import numpy as np

from omega.clock import RealClock
from omega.model.jobs import LeasedJob
from omega.store.protocols import Store
from omega.testing.races import Mode, Racer, jobs_to_race_for
from omega.testing.recorder import Event, History, Moment, Recorder

PROCESSES = get_context("forkserver")
"""Children are forked from one clean process that has imported this module: quick, and without
the threads and connections of whoever starts them."""
PROCESSES.set_forkserver_preload([__name__, "omega.store.postgres.store"])

START_S_MAX = 60.0
"""How long all wait for the last of them, who may have died."""

StoreMaker = Callable[[int], Store]
"""Opens the store of a rival, by its number; must be picklable."""


@dataclass(frozen=True, eq=False)
class Lap:
    """What one rival is to do."""

    jobs: tuple[LeasedJob, ...]
    mode: Mode
    seed: int
    transactions: int


@dataclass(frozen=True, eq=False)
class Run:
    """What one rival did."""

    events: tuple[Event, ...]
    faults: int
    """How often its store was away."""


class Rivals:
    """Processes at the start, inside a `with` block."""

    def __init__(self, open_store: StoreMaker, number: int) -> None:
        self._inboxes: list[Connection] = []
        self._processes = []
        self._line = PROCESSES.Barrier(number)  # kept: children find it by its name
        for rival in range(number):
            inbox, theirs = PROCESSES.Pipe()
            about = (open_store, rival, theirs, self._line)
            process = PROCESSES.Process(target=_race, args=about, daemon=True)
            process.start()
            theirs.close()
            self._inboxes.append(inbox)
            self._processes.append(process)
        self.faults = 0
        """How often a store was away, in all laps."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for inbox, process in zip(self._inboxes, self._processes, strict=True):
            if kind is not None:
                process.kill()
            elif process.is_alive():
                inbox.send(None)
            process.join()
            inbox.close()

    def begin(self, store: Store, mode: Mode, *, seed: int, transactions: int) -> "Race":
        """Let all of them commit so often, together, to the cell of this store."""
        jobs = jobs_to_race_for(store, mode, transactions)
        before = Moment.of(store)
        for rival, inbox in enumerate(self._inboxes):
            share = len(range(rival, transactions, len(self._inboxes)))
            inbox.send(Lap(jobs, mode, seed, share))
        return Race(self, store, before, jobs)

    def race(self, store: Store, mode: Mode, *, seed: int, transactions: int) -> History:
        """Begin, and wait for the end."""
        return self.begin(store, mode, seed=seed, transactions=transactions).finish()

    def are_done(self) -> bool:
        """Say whether all have finished, or failed."""
        return all(inbox.poll() for inbox in self._inboxes)

    def finished(self) -> list[tuple[Event, ...]]:
        """Wait until all have finished; raise what one of them raised."""
        runs: list[Run | Exception] = [inbox.recv() for inbox in self._inboxes]
        for run in runs:
            if isinstance(run, Exception):
                raise run
        done = [run for run in runs if isinstance(run, Run)]
        self.faults += sum(run.faults for run in done)
        return [run.events for run in done]


@dataclass(frozen=True, eq=False)
class Race:
    """A lap under way."""

    rivals: Rivals
    store: Store
    before: Moment
    jobs: tuple[LeasedJob, ...]

    def finish(self, settle: Callable[[], object] = bool) -> History:
        """Wait until all have finished; leave the queue and the cell empty.

        `settle` waits for what is still under way although nobody waits for its answer.
        """
        workers = self.rivals.finished()
        settle()
        history = History(self.before, self.jobs, tuple(workers), Moment.of(self.store))
        for job in self.jobs:
            self.store.cancel(job.id)
        return history


def _race(open_store: StoreMaker, rival: int, inbox: Connection, line: Barrier) -> None:
    store = open_store(rival)
    lap: Lap | None
    while (lap := inbox.recv()) is not None:
        try:
            line.wait(START_S_MAX)
            inbox.send(_run(store, lap, rival))
        except Exception as error:
            inbox.send(error)
    store.close()


def _run(store: Store, lap: Lap, rival: int) -> Run:
    events: list[Event] = []
    clock = RealClock()
    rng = np.random.default_rng([lap.seed, rival])
    racer = Racer(
        Recorder(store, f"rival {rival}", clock, events.append),
        lap.jobs,
        lap.mode,
        name=str(rival),
        rng=rng,
        clock=clock,
        new_id=lambda: UUID(bytes=rng.bytes(16)),
    )
    racer.run(lap.transactions)
    return Run(tuple(events), racer.faults)


def committed(histories: Sequence[History]) -> int:
    """Count the transactions of some races."""
    return sum(
        hasattr(event, "transaction")
        for history in histories
        for events in history.workers
        for event in events
    )
