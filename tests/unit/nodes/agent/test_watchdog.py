"""The watchdog, without processes."""

from pathlib import Path
from threading import Event

from omega.clock import ManualClock
from omega.nodes.agent.machine_lease import Deadline
from omega.nodes.agent.watchdog import Watchdog


def test_it_waits_for_the_first_lease_of_a_slow_database(tmp_path: Path) -> None:
    looks = iter([False, False, False, True])
    seen = []

    def is_alone() -> bool:
        seen.append(next(looks))
        return seen[-1]

    watchdog = Watchdog(Deadline(tmp_path), ManualClock(), drivers=list, is_alone=is_alone)

    assert 0 == watchdog.watch(Event())
    assert [False, False, False, True] == seen
