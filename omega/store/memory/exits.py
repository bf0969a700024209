"""How programs ended and what they wrote, kept in memory.

Goal     The tables task_exit and task_output of a memory store.
Promise  The first exit of a task's start counts. Of an output, the latest start and the most bytes.
Source   docs/decisions/0044-programs-and-agents.md.
"""

from collections import defaultdict
from dataclasses import replace

from omega.model.exits import PastExit, TaskOutput


class ExitTable:
    """Exits by job, and outputs by job, task and stream."""

    def __init__(self) -> None:
        self._exits: dict[int, dict[tuple[int, int], PastExit]] = defaultdict(dict)
        """By job, then by task and start."""
        self._outputs: dict[tuple[int, int, str], TaskOutput] = {}

    def add(self, exit_: PastExit) -> None:
        """Record the exit of a task."""
        self._exits[exit_.job].setdefault((exit_.task, exit_.started_ms), exit_)

    def has(self, job: int, task: int, started_ms: int) -> bool:
        """Return whether the exit of a task that began then is on record."""
        return (task, started_ms) in self._exits.get(job, {})

    def of(self, job: int) -> list[PastExit]:
        """Return the exits of a job: failed ones first, then the newest first."""
        its = self._exits.get(job, {}).values()
        return sorted(its, key=lambda it: (it.exit.is_success, -it.ended_ms, -it.task))

    def failures(self, job: int) -> int:
        """Return how many exits of a job are no successes."""
        return sum(not it.exit.is_success for it in self._exits.get(job, {}).values())

    def keep(self, output: TaskOutput) -> None:
        """Keep the end of an output, unless what is kept is of a later start or longer."""
        key = output.job, output.task, output.stream
        known = self._outputs.get(key)
        if known is None or _age(known) < _age(output):
            self._outputs[key] = output

    def output(self, job: int, task: int, stream: str) -> TaskOutput | None:
        """Return the end of an output, if one was kept."""
        return self._outputs.get((job, task, stream))

    def output_sizes(self, job: int) -> list[TaskOutput]:
        """Return all outputs of a job without their tails, by task and stream."""
        return [
            replace(output, tail=b"")
            for key, output in sorted(self._outputs.items())
            if key[0] == job
        ]


def _age(output: TaskOutput) -> tuple[int, int]:
    return output.started_ms, output.bytes_total
