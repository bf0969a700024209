"""The ends of tasks' outputs, on their way from the machine to the store.

Goal     Let users read what their tasks say, wherever they run.
Promise  The end of each output is sent again when it has grown, at most once an interval, and once
         more before the task's exit is reported. What is unchanged costs no call.
Source   docs/decisions/0044-programs-and-agents.md.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from omega.clock import Clock
from omega.framework.effects import Effects
from omega.framework.timer import Timer
from omega.limits import LIMITS
from omega.model.exits import TaskOutput
from omega.nodes.agent.agent_task import AgentTask
from omega.nodes.agent.task_driver import Stream, TaskDriver, TaskKey
from omega.nodes.calling import called
from omega.store.protocols import NodeStore

INTERVAL_MS: Final = 250
OUTPUTS_PER_CALL: Final = 64
"""Each of them takes up to `LIMITS.output_bytes_kept`: together 4 MiB."""


class OutputReporter:
    """Reports outputs, and knows how much of each was reported."""

    def __init__(self, clock: Clock) -> None:
        self._timer = Timer(clock, INTERVAL_MS)
        self._reported: dict[tuple[TaskKey, Stream], int] = {}

    def report(
        self, tasks: Iterable[AgentTask], drivers: Iterable[TaskDriver], *, at_once: bool
    ) -> Effects[None]:
        """Report the outputs that have grown, if that is due or is to be done at once."""
        if not (self._timer.due() or at_once):
            return
        grown = [
            output
            for task in tasks
            for driver in drivers
            for stream in Stream
            if (output := self._grown(driver, task.key, stream)) is not None
        ]
        for first in range(0, len(grown), OUTPUTS_PER_CALL):
            part = grown[first : first + OUTPUTS_PER_CALL]
            yield from called("outputs", _reporting(part))
            for it in part:
                key = TaskKey(it.job, it.task, it.started_ms)
                self._reported[key, Stream(it.stream)] = it.bytes_total

    def forget(self, key: TaskKey) -> None:
        """Forget what was reported of a task."""
        for stream in Stream:
            self._reported.pop((key, stream), None)

    def _grown(self, driver: TaskDriver, key: TaskKey, stream: Stream) -> TaskOutput | None:
        bytes_total, _ = driver.output(key, stream, 0)
        if bytes_total <= self._reported.get((key, stream), 0):
            return None
        bytes_total, tail = driver.output(key, stream, LIMITS.output_bytes_kept)
        return TaskOutput(key.job, key.task, key.started_ms, stream.value, bytes_total, tail)


def _reporting(outputs: Sequence[TaskOutput]) -> Callable[[NodeStore], None]:
    return lambda store: store.report_outputs(outputs)
