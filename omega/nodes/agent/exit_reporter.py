"""Reports of how tasks ended.

Goal     Report exits in few calls, although a transaction that somebody leaves open may have locked
         one of the jobs.
Promise  A locked job holds up no exits of other jobs. After a second, a step tries no more jobs
         alone. A job that was locked is tried alone, after a pause that doubles, and
         at once when another that was locked is not any more.
Source   docs/decisions/0044-programs-and-agents.md.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from omega.clock import Clock
from omega.errors import StoreBusy
from omega.events import Sink, StoreCallFailed
from omega.framework.effects import Effects
from omega.nodes.agent.agent_task import AgentTask
from omega.nodes.agent.placements import Placements
from omega.nodes.agent.store_calls import to_record
from omega.nodes.calling import called, parts_for_calls

PAUSE_S_MIN: Final = 2.0
PAUSE_S_MAX: Final = 16.0
STEP_S_MAX: Final = 1.0
"""After this time a step tries no more jobs alone; the lease is renewed between steps."""


@dataclass
class _Pause:
    """When a job is tried next, alone, and how long the pause before that was."""

    due_s: float
    pause_s: float = 0.0


class ExitReporter:
    """Reports the exits of tasks on one machine."""

    def __init__(self, placements: Placements, clock: Clock, sink: Sink) -> None:
        self._placements = placements
        self._clock = clock
        self._sink = sink
        self._apart: dict[int, _Pause] = {}
        """Jobs of which one may be locked."""

    def report(
        self, ended: Sequence[AgentTask], done: Callable[[AgentTask], None]
    ) -> Effects[bool]:
        """Report exits; give each task to `done` whose exit the store has.

        Returns whether there were any. Raises StoreUnavailable if the store does not answer.
        """
        jobs = {task.key.job for task in ended}
        self._apart = {job: pause for job, pause in self._apart.items() if job in jobs}
        together = [task for task in ended if task.key.job not in self._apart]
        some = False
        for part in parts_for_calls(len(together)):
            tasks = together[part]
            try:
                yield from self._send(tasks, done)
            except StoreBusy as error:
                now_s = self._clock.now()
                self._apart.update((task.key.job, _Pause(now_s)) for task in tasks)
                if len({task.key.job for task in tasks}) == 1:
                    self._put_off(tasks[0].key.job, error)
                return some
            some = True
        return (yield from self._send_apart(ended, done)) or some

    def _send_apart(
        self, ended: Sequence[AgentTask], done: Callable[[AgentTask], None]
    ) -> Effects[bool]:
        """Report the exits of the jobs that are due to be tried alone, for a second or so."""
        began_s, some = self._clock.now(), False
        due = [job for job, pause in self._apart.items() if pause.due_s <= began_s]
        due.sort(key=lambda job: (self._apart[job].due_s, job))
        for job in due:
            if self._clock.now() > began_s + STEP_S_MAX:
                break
            tasks = [task for task in ended if task.key.job == job]
            try:
                for part in parts_for_calls(len(tasks)):
                    yield from self._send(tasks[part], done)
                    some = True
            except StoreBusy as error:
                self._put_off(job, error)
                continue
            if self._apart.pop(job).pause_s:
                self.hurry()
        return some

    def hurry(self) -> None:
        """Let the next step try all jobs that are tried alone."""
        for pause in self._apart.values():
            pause.due_s = self._clock.now()

    def _send(self, tasks: Sequence[AgentTask], done: Callable[[AgentTask], None]) -> Effects[None]:
        exits = [task.exit_to_report for task in tasks]
        if (yield from called("exits", to_record(exits))):
            self._placements.reported(tasks)
        for task in tasks:
            done(task)

    def _put_off(self, job: int, error: StoreBusy) -> None:
        pause_s = min(PAUSE_S_MAX, max(PAUSE_S_MIN, 2 * self._apart[job].pause_s))
        self._apart[job] = _Pause(self._clock.now() + pause_s, pause_s)
        self._sink(StoreCallFailed(f"exits of job {job}", str(error)))
