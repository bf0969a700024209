"""The watchdog of an agent: kills its tasks when the lease on the machine is about to run out.

Goal     Hold an agent's promise when the agent itself is stopped, killed, or waits for a network.
Promise  A process of its own, which does nothing but read a deadline. It kills until nothing runs,
         also what is started after the deadline. It ends when the agent is gone and the deadline
         was taken away, or nothing runs.
Source   docs/decisions/0045-machine-leases.md; the watchdog timer of embedded systems.
"""

from collections.abc import Callable
from threading import Event
from typing import Final

from omega.clock import Clock
from omega.nodes.agent.machine_lease import Deadline
from omega.nodes.agent.task_driver import TaskDriver

LOOK_S: Final = 0.2


class Watchdog:
    """Watches one agent's folder."""

    def __init__(
        self,
        deadline: Deadline,
        clock: Clock,
        *,
        drivers: Callable[[], list[TaskDriver]],
        is_alone: Callable[[], bool],
    ) -> None:
        """`drivers` are made only when there is something to kill: while the agent works, it alone
        uses the folder. `is_alone` tells whether the agent has ended."""
        self._deadline = deadline
        self._clock = clock
        self._drivers = drivers
        self._is_alone = is_alone

    def watch(self, stop: Event) -> int:
        """Watch until there is nothing to watch; return how many tasks were killed."""
        killed = 0
        while not stop.is_set():
            # First: the agent takes a deadline that it has put off before it passed for kept.
            now_s = self._clock.now()
            deadline_s = self._deadline.read()
            if deadline_s is None:
                # The agent may not have had its first answer from the database yet.
                if self._is_alone():
                    break
            elif now_s >= deadline_s:
                here = self._kill()
                killed += here
                if not here and self._is_alone():
                    break
            self._clock.sleep(LOOK_S)
        return killed

    def _kill(self) -> int:
        """Kill all that runs; return how many tasks did."""
        killed = 0
        for driver in self._drivers():
            running = [key for key, ended in driver.look().items() if ended is None]
            for key in running:
                driver.signal(key, "KILL")
            killed += len(running)
        return killed
