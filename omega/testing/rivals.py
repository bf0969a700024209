"""Rivals: processes that race for one cell, lap after lap, and return their recorded calls.

Goal     Commits collide in the database as in production: from processes that share nothing.
Promise  A lap begins for all processes at once; before and after it nobody works on the cell. The
         result is a complete history, or the error of a process that could not finish.
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
"""Children are forked from one process that has only imported this module. That is fast, and they
inherit no threads or connections of the caller."""
PROCESSES.set_forkserver_preload([__name__, "omega.store.postgres.store"])

START_S_MAX = 60.0
"""How many seconds all wait for the last one to be ready; it may have died."""

StoreMaker = Callable[[int], Store]
"""Opens the store of a rival by its number; must be picklable."""


@dataclass(frozen=True, eq=False)
class Lap:
    """The task of one rival in one lap."""

    jobs: tuple[LeasedJob, ...]
    mode: Mode
    seed: int
    transactions: int


@dataclass(frozen=True, eq=False)
class Run:
    """The recorded calls of one rival in one lap."""

    events: tuple[Event, ...]
    faults: int
    """How often its store did not answer."""


class Rivals:
    """Several processes, which run laps inside a `with` block."""

    def __init__(self, open_store: StoreMaker, number: int) -> None:
        self._inboxes: list[Connection] = []
        self._processes = []
        self._line = PROCESSES.Barrier(number)  # kept, because children find it by its name
        for rival in range(number):
            inbox, theirs = PROCESSES.Pipe()
            about = (open_store, rival, theirs, self._line)
            process = PROCESSES.Process(target=_race, args=about, daemon=True)
            process.start()
            theirs.close()
            self._inboxes.append(inbox)
            self._processes.append(process)
        self.faults = 0
        """How often a store did not answer, in all laps."""

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
        """Start a lap: all processes together commit so many transactions to this store's cell."""
        jobs = jobs_to_race_for(store, mode, transactions)
        before = Moment.of(store)
        for rival, inbox in enumerate(self._inboxes):
            share = len(range(rival, transactions, len(self._inboxes)))
            inbox.send(Lap(jobs, mode, seed, share))
        return Race(self, store, before, jobs)

    def race(self, store: Store, mode: Mode, *, seed: int, transactions: int) -> History:
        """Run a lap, and wait for its end."""
        return self.begin(store, mode, seed=seed, transactions=transactions).finish()

    def are_done(self) -> bool:
        """Return whether all have finished or failed."""
        return all(inbox.poll() for inbox in self._inboxes)

    def finished(self) -> list[tuple[Event, ...]]:
        """Wait until all have finished; return their events, or raise the error of one of them."""
        runs: list[Run | Exception] = [inbox.recv() for inbox in self._inboxes]
        for run in runs:
            if isinstance(run, Exception):
                raise run
        done = [run for run in runs if isinstance(run, Run)]
        self.faults += sum(run.faults for run in done)
        return [run.events for run in done]


@dataclass(frozen=True, eq=False)
class Race:
    """A lap that is being run."""

    rivals: Rivals
    store: Store
    before: Moment
    jobs: tuple[LeasedJob, ...]

    def finish(self, settle: Callable[[], object] = bool) -> History:
        """Wait until all have finished; cancel the jobs and return the history.

        `settle` waits for calls that are still being carried out after their callers gave up.
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
    """Return the number of transactions in some histories."""
    return sum(
        hasattr(event, "transaction")
        for history in histories
        for events in history.workers
        for event in events
    )
