"""The watchdog, without processes."""

from pathlib import Path
from threading import Event

from omega.clock import ManualClock
from omega.nodes.agent.machine_lease import Deadline
from omega.nodes.agent.task_driver import TaskKey
from omega.nodes.agent.watchdog import Watchdog
from tests.unit.nodes.agent.fake_driver import FakeDriver


def test_it_waits_for_the_first_lease_of_a_slow_database(tmp_path: Path) -> None:
    looks = iter([False, False, False, True])
    seen = []

    def is_alone() -> bool:
        seen.append(next(looks))
        return seen[-1]

    watchdog = Watchdog(Deadline(tmp_path), ManualClock(), drivers=list, is_alone=is_alone)

    assert 0 == watchdog.watch(Event())
    assert [False, False, False, True] == seen


def test_a_deadline_that_is_put_off_while_it_is_read_has_not_passed(tmp_path: Path) -> None:
    """The agent may write it between the look at the clock and the look at the file."""
    deadline, clock, stop = Deadline(tmp_path), ManualClock(), Event()
    deadline.write(1.0)

    class Slow(Deadline):
        """Takes long to read the file; the agent puts it off just after."""

        def read(self) -> float | None:
            found = super().read()
            clock.advance(2.0)
            self.write(100.0)
            stop.set()
            return found

    driver = FakeDriver(exits={TaskKey(1, 0, 1): None})
    watchdog = Watchdog(Slow(tmp_path), clock, drivers=lambda: [driver], is_alone=lambda: False)

    assert 0 == watchdog.watch(stop)
