"""The watchdog of an agent: kills its tasks when the lease on the machine is about to run out.

Goal     Hold an agent's promise when the agent itself is stopped, killed, or waits for a network.
Promise  A process of its own, which does nothing but read a deadline. It kills until nothing runs,
         also what is started after the deadline. It ends when the agent is gone and the deadline
         was taken away, or nothing runs. Where it cannot know what runs, it asks again and does
         not end. Processes and containers do not wait for each other.
Source   docs/decisions/0045-machine-leases.md; the watchdog timer of embedded systems.
"""

from collections.abc import Callable, Sequence, Set
from threading import Event, Thread
from typing import Final

from omega.clock import Clock
from omega.nodes.agent.machine_lease import Deadline
from omega.nodes.agent.task_driver import TaskDriver, TaskKey

LOOK_S: Final = 0.2


class Watchdog:
    """Watches the tasks of one kind, processes or containers, of one agent's folder."""

    def __init__(
        self,
        deadline: Deadline,
        clock: Clock,
        *,
        kill: Callable[[], Set[TaskKey]],
        is_alone: Callable[[], bool],
        warn: Callable[[str], None],
    ) -> None:
        """Begin with nothing killed.

        Args:
            deadline: when nothing may run any more.
            clock: counts as the agent's does.
            kill: kills what runs and returns it; raises if it cannot know what runs. It is called
                only past the deadline: while the agent works, it alone uses the folder.
            is_alone: tells whether the agent has ended.
            warn: receives a line for the operator when `kill` begins to fail.
        """
        self._deadline = deadline
        self._clock = clock
        self._kill = kill
        self._is_alone = is_alone
        self._warn = warn
        self._has_warned = False
        self.killed: set[TaskKey] = set()
        self.is_over = False
        """Whether there was nothing to watch at the last look."""

    def watch(self, stop: Event) -> None:
        """Look until the stop event is set."""
        while not stop.is_set():
            self.look()
            self._clock.sleep(LOOK_S)

    def look(self) -> None:
        """Kill what runs if the deadline has passed."""
        self.is_over = False
        try:
            self.is_over = self._sees_nothing_to_watch()
        except Exception as error:  # whatever it is: the next look may know
            if not self._has_warned:
                self._warn(f"the watchdog cannot see what runs: {error}")
            self._has_warned = True
        else:
            self._has_warned = False

    def _sees_nothing_to_watch(self) -> bool:
        # First: the agent takes a deadline that it has put off before it passed for kept.
        now_s = self._clock.now()
        deadline_s = self._deadline.read()
        if deadline_s is not None and now_s < deadline_s:
            return False
        # Asked before the kill, which then sees all that the agent started before it ended.
        # Without a deadline, an agent may not have had its first answer from the database yet.
        is_alone = self._is_alone()
        if deadline_s is None:
            return is_alone
        running = self._kill()
        self.killed = self.killed | running  # another thread may read the set before
        return is_alone and not running


def watch_all(
    here: Watchdog, in_threads: Sequence[Watchdog], clock: Clock, stop: Event
) -> set[TaskKey]:
    """Watch until there is nothing to watch; return the tasks that were killed.

    None waits for another, and none ends before the others: a new agent may start tasks of any
    kind, and takes a watchdog that is at work for its own. The stop event is set at the end.
    """
    for each in in_threads:
        # The process ends also while one waits for a container engine.
        Thread(target=each.watch, args=[stop], name="watchdog", daemon=True).start()
    while not stop.is_set():
        here.look()
        if here.is_over and all(each.is_over for each in in_threads):
            stop.set()
        clock.sleep(LOOK_S)
    return here.killed.union(*(each.killed for each in in_threads))


def kill_running(driver: TaskDriver) -> set[TaskKey]:
    """Kill all tasks of a driver that run; return them."""
    running = {key for key, ended in driver.look().items() if ended is None}
    for key in running:
        driver.signal(key, "KILL")
    return running
