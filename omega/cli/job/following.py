"""Follows the outputs of a job's tasks while they grow.

Goal     Print what tasks write, once, in order for each task.
Promise  What was written between two reads beyond the end that the store keeps is counted and said,
         never skipped in silence. A task that is placed anew begins anew.
Source   docs/decisions/0044-programs-and-agents.md.
"""

import codecs
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from omega.errors import StoreUnavailable
from omega.reports.wording import things
from omega.store.protocols import JobReader
from omega.terminal.program_output import ProgramOutput, utf8_decoder

AWAY_S: Final = 1.0
"""The pause before the next look while the store does not answer."""


@dataclass
class _Read:
    """How far an output was printed."""

    started_ms: int
    bytes_total: int = 0
    decoder: codecs.IncrementalDecoder = field(default_factory=utf8_decoder)


class Outage:
    """Says that the store does not answer, once until it answers again."""

    def __init__(self, job: int, warn: Callable[[str], None]) -> None:
        self._job = job
        self._warn = warn
        self._is_said = False

    def begin(self, error: StoreUnavailable) -> None:
        """Say why a call failed, unless that was said."""
        if not self._is_said:
            self._warn(f"job {self._job} is asked for again until the database answers: {error}")
        self._is_said = True

    def end(self) -> None:
        """Note that the store has answered."""
        self._is_said = False


class OutputFollower:
    """Prints the outputs of one job; `task` limits it to one of its tasks."""

    def __init__(
        self,
        store: JobReader,
        job: int,
        outputs: Mapping[str, ProgramOutput],
        warn: Callable[[str], None],
        *,
        task: int | None = None,
    ) -> None:
        """`outputs` are where to print, by stream; streams that are not in it are left out."""
        self._store = store
        self._job = job
        self._outputs = outputs
        self._warn = warn
        self._task = task
        self._read: dict[tuple[int, str], _Read] = {}

    def follow(self) -> int:
        """Print what is new; return how many bytes that was."""
        printed = 0
        for it in self._store.output_sizes(self._job):
            if it.stream not in self._outputs or self._task not in (None, it.task):
                continue
            read = self._read.get((it.task, it.stream))
            if read is None or read.started_ms != it.started_ms:
                read = self._read[it.task, it.stream] = _Read(it.started_ms)
            if it.bytes_total > read.bytes_total:
                printed += self._print(it.task, it.stream, read)
        return printed

    def _print(self, task: int, stream: str, read: _Read) -> int:
        output = self._store.output(self._job, task, stream)
        if output is None or output.started_ms != read.started_ms:
            return 0  # it was placed anew in this moment
        new = output.bytes_total - read.bytes_total
        if (missing := new - len(output.tail)) > 0:
            self._warn(f"task {task}: {things(missing, 'byte')} of {stream} are not kept")
        said = output.tail[-new:] if new else b""
        self._outputs[stream].write(said, read.decoder)
        read.bytes_total = output.bytes_total
        return len(said)
