"""Locks in an agent's folder: one agent, and one watchdog, at a time.

Goal     Keep a second agent from starting the same tasks again.
Promise  The kernel drops a lock when its process ends, however it ends.
Source   flock(2).
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from omega.errors import BadInput

AGENT_LOCK: Final = "lock"
WATCHDOG_LOCK: Final = "watchdog-lock"


@contextmanager
def alone_in(folder: Path, name: str = AGENT_LOCK) -> Iterator[None]:
    """Hold a lock of a folder during the block. Raises BadInput if another process holds it."""
    folder.mkdir(mode=0o711, parents=True, exist_ok=True)
    descriptor = _opened(folder, name)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(f"another agent runs with {folder}", field="--state-dir") from None
        yield
    finally:
        os.close(descriptor)


def is_locked(folder: Path, name: str) -> bool:
    """Return whether another process holds a lock of a folder."""
    try:
        descriptor = os.open(folder / name, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:  # who only asks makes no file, in a folder that may be on its way out
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _opened(folder: Path, name: str) -> int:
    """Open a lock's file; programs that are started do not inherit the descriptor."""
    return os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
