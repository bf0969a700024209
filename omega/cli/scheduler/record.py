"""`omega scheduler run --record FILE`: a scheduler's transactions, kept in a file.

Goal     Keep them for `omega replay`, at no cost to schedulers that do not record.
Promise  A file that cannot be written any more ends the recording, with one line in the log, and
         not the scheduler.
Source   docs/decisions/0057-replay.md.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

import typer

from omega.clock import Clock
from omega.events import RecordingStopped, Sink
from omega.framework.recording import Recording
from omega.store.protocols import Store
from omega.store.saved.recorded import RecordedCommit
from omega.store.saved.recordings import RecordingFile

RecordTo = Annotated[
    Path | None,
    typer.Option(
        "--record",
        metavar="FILE",
        help="Write each transaction, with what it met, into a new file for omega replay.",
    ),
]


@contextmanager
def recorded(
    store: Store, path: Path | None, name: tuple[str, str], clock: Clock, sink: Sink
) -> Iterator[Store]:
    """Yield the store, or one that records what is committed. `name` is kind and replica.

    Raises BadInput if the file is there, or cannot be made.
    """
    if path is None:
        yield store
        return

    def now_ms() -> int:
        return int(clock.wall().timestamp() * 1_000)

    kind, replica = name
    file: RecordingFile | None = RecordingFile(path, kind=kind, replica=replica, began_ms=now_ms())

    def keep(commit: RecordedCommit) -> None:
        nonlocal file
        if file is None:
            return
        try:
            file.write(commit)
        except OSError as error:
            sink(RecordingStopped(error.strerror or str(error)))
            stopped, file = file, None
            with suppress(OSError):
                stopped.abandon()

    try:
        yield Recording(store, now_ms, keep).store
    finally:
        if file is not None:
            try:
                file.close()
            except OSError as error:
                sink(RecordingStopped(error.strerror or str(error)))
