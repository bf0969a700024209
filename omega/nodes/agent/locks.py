"""One agent for each folder of tasks.

Goal     Keep a second agent from starting the same tasks again.
Promise  The kernel drops the lock when the process ends, however it ends.
Source   flock(2).
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from omega.errors import BadInput


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder during the block. Raises BadInput if another process holds it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Programs that are started do not inherit the descriptor.
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(f"another agent runs with {folder}", field="--state-dir") from None
        yield
    finally:
        os.close(descriptor)
