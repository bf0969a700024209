"""When `omega run` says why its job waits."""

from threading import Event

import pytest

from omega.cli.job.run import NOT_RUN, RunningJob
from omega.clock import ManualClock
from omega.lifecycle.states import ParkReason
from omega.store.leases import Parking
from omega.store.memory.store import MemoryStore
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
