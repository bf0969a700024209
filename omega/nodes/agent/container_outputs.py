"""What containers wrote that are gone: the end of each output, in files of the agent's folder.

Goal     Keep the outputs of a task over its restarts, and of the last tasks that ended.
Promise  The output of a container is added once, also if the agent is killed meanwhile and saves it
         again. Of tasks that were forgotten, the outputs of the last `outputs_max` are kept, those
         of earlier agents of this folder included.
Source   rename(2): a file says which container was saved last, beside its output.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from omega.nodes.agent.container_engine import Engine, EngineError
from omega.nodes.agent.container_spec import RUNNING
from omega.nodes.agent.output_file import OutputFile
from omega.nodes.agent.task_driver import Stream, TaskKey

OUTPUT_BYTES_MAX: Final = 2**20
"""How much of each output is kept once a container is gone."""
HEADER_BYTES_MAX: Final = 200


class ContainerOutputs:
    """The outputs in one folder. Threads may save those of different tasks at once."""

    def __init__(self, folder: Path, outputs_max: int, warn: Callable[[str], None]) -> None:
        """Find what earlier agents kept: all tasks are forgotten but those that `hold` names."""
        self._folder = folder
        self._warn = warn
        self._late: set[str] = set()
        """Containers whose output an engine that answered too late did not give once."""
        self._outputs_max = outputs_max
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found: list[tuple[float, TaskKey]] = []
        for path in self._folder.iterdir():
            try:
                found.append((path.lstat().st_mtime, TaskKey.of_text(path.name)))
            except ValueError:
                continue
        self._forgotten = dict.fromkeys(key for _, key in sorted(found))

    def hold(self, key: TaskKey) -> None:
        """Keep the output of a task until it is forgotten."""
        self._forgotten.pop(key, None)

    def forget(self, key: TaskKey) -> None:
        """Count a task among those that were forgotten; delete the oldest that are too many."""
        if not (self._folder / str(key)).exists():
            return
        self._forgotten[key] = None
        while len(self._forgotten) > self._outputs_max:
            oldest = next(iter(self._forgotten))
            del self._forgotten[oldest]
            # What cannot be deleted is found again by the next agent.
            shutil.rmtree(self._folder / str(oldest), ignore_errors=True)

    def read(self, key: TaskKey, stream: Stream, bytes_max: int) -> tuple[str, int, bytes]:
        """Return the container that was saved last, how many bytes all wrote, and the last."""
        path = self._path(key, stream)
        if _counted_aside(path).exists():  # an agent of an earlier version saved it
            return "", *OutputFile(path).read(bytes_max)
        try:
            with path.open("rb") as file:
                container, total = file.readline(HEADER_BYTES_MAX).decode("ascii").split()
                begin, end = file.tell(), file.seek(0, os.SEEK_END)
                file.seek(max(begin, end - bytes_max))
                return container, int(total), file.read(bytes_max)
        except (OSError, ValueError):
            return "", 0, b""

    def save(self, client: Engine, key: TaskKey, container: str) -> None:
        """Keep the output of a container. Raises EngineError and OSError."""
        for stream in Stream:
            saved, total, content = self.read(key, stream, OUTPUT_BYTES_MAX)
            if saved == container:
                continue
            more, tail = client.logs(
                container, is_stdout=stream is Stream.STDOUT, bytes_max=OUTPUT_BYTES_MAX
            )
            path = self._path(key, stream)
            path.parent.mkdir(mode=0o700, exist_ok=True)
            # In one file that is replaced as a whole, so that no crash comes between the two.
            aside = path.with_name(f"{path.name}.new")
            header = f"{container} {total + more}\n".encode("ascii")
            aside.write_bytes(header + (content + tail)[-OUTPUT_BYTES_MAX:])
            # First: a file with the new header is never read as one of an earlier version.
            _counted_aside(path).unlink(missing_ok=True)
            aside.rename(path)

    def save_and_remove(self, client: Engine, key: TaskKey, container: str) -> None:
        """Remove a container and keep its output; harmless if it is gone.

        Raises EngineError and OSError. An output that the engine refuses, or twice does not give,
        is lost, with a warning: its container would hold up the task's next start, or stay for
        ever.
        """
        lost: EngineError | None = None
        try:
            self.save(client, key, container)
        except EngineError as error:
            if not error.is_refusal and container not in self._late:
                self._late.add(container)
                raise
            lost = None if error.is_missing else error
        client.remove(container)
        self._late.discard(container)
        if lost is not None:
            self._warn(f"the output of a container of task {key} could not be kept: {lost}")

    def end_and_remove(self, client: Engine, key: TaskKey, entry: Mapping[str, Any]) -> None:
        """Remove a container that was listed and is not to run; else as `save_and_remove`."""
        if entry["State"] in RUNNING:
            with suppress(EngineError):  # it may have ended by now; its removal ends it, too
                client.kill(entry["Id"], "SIGKILL")
        self.save_and_remove(client, key, entry["Id"])

    def _path(self, key: TaskKey, stream: Stream) -> Path:
        return self._folder / str(key) / stream.value


def _counted_aside(path: Path) -> Path:
    """Return where earlier versions kept the count of bytes before those in a file."""
    return path.with_name(f"{path.name}.dropped")
