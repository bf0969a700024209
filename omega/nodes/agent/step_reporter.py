"""The steps of jobs that train, on their way from their programs to the store.

Goal     Have schedulers know how far a job has come and how fast it really is.
Promise  Reported once an interval and once before the exit, by the agent of the job's first task.
         The time of a job counts only while that task runs here.
Source   docs/decisions/0048-steps-of-programs.md; Gavel, section 6 (throughput estimation).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from omega.clock import Clock
from omega.framework.effects import Effects
from omega.framework.timer import Timer
from omega.model.arrays import integers
from omega.nodes.agent.agent_task import AgentTask
from omega.nodes.agent.own_machine import TaskDrivers
from omega.nodes.calling import called, parts_for_calls
from omega.store.protocols import NodeStore

INTERVAL_MS: Final = 2_000
REPORTER: Final = 0
"""The task that speaks for its job."""


@dataclass(frozen=True)
class _Progress:
    job: int
    steps: int
    run_ms: int


class StepReporter:
    """Reports the steps of jobs whose first task runs here."""

    def __init__(self, clock: Clock, drivers: TaskDrivers) -> None:
        self._clock = clock
        self._drivers = drivers
        self._timer = Timer(clock, INTERVAL_MS)

    def report(self, tasks: Iterable[AgentTask], *, at_once: bool) -> Effects[None]:
        """Report what these tasks have made, if that is due or is to be done at once."""
        if not (self._timer.due() or at_once):
            return
        made = [it for task in tasks if (it := self._progress(task)) is not None]
        for part in parts_for_calls(len(made)):
            yield from called("progress", _reporting(made[part]))

    def _progress(self, task: AgentTask) -> _Progress | None:
        if task.spec is None or task.spec.work is None or task.key.task != REPORTER:
            return None
        driver = self._drivers.of(task)
        steps = None if driver is None else driver.steps(task.key)
        if steps is None:
            return None
        return _Progress(task.key.job, steps, task.run_ms_at(self._clock.now()))


def _reporting(made: list[_Progress]) -> Callable[[NodeStore], None]:
    job = integers([it.job for it in made])
    steps = integers([it.steps for it in made])
    run_ms = integers([it.run_ms for it in made])
    return lambda store: store.report_progress(job, steps, run_ms)
