"""What `omega run` says and does while its job waits, and while its store is away."""

from threading import Event

import pytest

from omega.cli.job.following import AWAY_S
from omega.cli.job.run import NOT_RUN, RunningJob
from omega.clock import ManualClock
from omega.errors import OmegaError, StoreUnavailable
from omega.lifecycle.states import ParkReason
from omega.model.exits import Exit, ExitCause, TaskExit
from omega.model.programs import Program
from omega.store.leases import Parking
from omega.store.memory.store import MemoryStore
from omega.store.status import JobStatus
from omega.testing.builders import a_spec
from omega.testing.steps import a_leased_job, add_a_cell, end, grant

HOUR_S = 3_600.0


class Hours(ManualClock):
    """One of a job's two tasks runs for an hour; an hour later the job is cancelled."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__()
        self.store = MemoryStore(self)
        add_a_cell(self.store, 1)
        self.job = a_leased_job(self.store, a_spec(2))
        grant(self.store, self.job, [0], [1])
        parking = Parking(self.job.id, self.job.token, ParkReason.NO_ROOM, "it is full")
        self.store.park([parking])
        self.capsys = capsys
        self.said: dict[float, str] = {}
        """What was printed, by the time."""

    def sleep(self, seconds: float) -> None:
        self.said[self.now()] = self.capsys.readouterr().err
        super().sleep(HOUR_S / 6)
        if self.now() == HOUR_S:
            end(self.store, self.job, 0)
        elif self.now() == 2 * HOUR_S:
            self.store.cancel(self.job.id)


def test_why_a_job_waits_is_said_when_nothing_of_it_runs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Hours(capsys)

    assert NOT_RUN == RunningJob(clock.store, clock.job.id, clock).wait(Event())
    waits = [now_s for now_s, text in clock.said.items() if f"{clock.job.id} waits" in text]
    assert waits
    assert waits[0] > HOUR_S


class Away(MemoryStore):
    """A store that does not answer so many times."""

    absences = 0

    def job(self, job: int) -> JobStatus | None:
        if self.absences:
            self.absences -= 1
            raise StoreUnavailable("the server is away")
        return super().job(job)


class Ending(ManualClock):
    """A job's tasks end when somebody has slept so many times."""

    def __init__(self, sleeps: int, *exits: Exit) -> None:
        super().__init__()
        self.store = Away(self)
        self.sleeps = sleeps
        add_a_cell(self.store, 1)
        self.job = a_leased_job(self.store, a_spec(len(exits), program=Program(command=("x",))))
        grant(self.store, self.job, range(len(exits)), [1] * len(exits))
        live = self.store.allocations_of([self.job.id])
        self.exits = [
            TaskExit(self.job.id, task, started_ms, ended)
            for task, started_ms, ended in zip(
                live.task.tolist(), live.started_ms.tolist(), exits, strict=True
            )
        ]

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if len(self.slept) == self.sleeps:
            self.store.report_exits(self.exits)


def test_a_store_that_is_away_is_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Ending(6, Exit(cause=ExitCause.EXITED, code=7))
    clock.store.absences = 3

    assert 7 == RunningJob(clock.store, clock.job.id, clock).wait(Event())
    assert 1 == capsys.readouterr().err.count("the server is away")
    assert [AWAY_S] * 3 == clock.slept[:3]


def test_a_job_that_failed_has_no_exit_code_of_success() -> None:
    """How its tasks ended is pruned before the job is."""
    clock = Ending(1, Exit(cause=ExitCause.EXITED, code=7))
    clock.store.exits = lambda *_args, **_named: []  # type: ignore[method-assign]

    assert 1 == RunningJob(clock.store, clock.job.id, clock).wait(Event())


def test_who_stops_while_the_store_is_away_is_not_kept_waiting() -> None:
    clock = Ending(1, Exit(cause=ExitCause.EXITED, code=0))
    clock.store.absences = 10**6
    stop = Event()
    stop.set()

    assert RunningJob(clock.store, clock.job.id, clock).wait(stop) is None
    clock.store.absences = 0


def test_a_job_that_is_gone_is_an_error() -> None:
    clock = Ending(1, Exit(cause=ExitCause.EXITED, code=0))

    with pytest.raises(OmegaError, match="not on record"):
        RunningJob(clock.store, clock.job.id + 1, clock).wait(Event())
