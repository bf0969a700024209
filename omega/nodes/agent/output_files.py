"""The files that a task's program writes its outputs to.

Goal     Keep outputs on the machine, of bounded length, and know how much was written in all.
Promise  A file that is too long is emptied while its program writes on; the end of it is kept
         beside. What is written in that moment may be lost and is then not counted. No file there
         is followed to another place.
Source   copytruncate of logrotate(8).
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from omega.nodes.agent.task_driver import Stream

OUTPUT_BYTES_MAX: Final = 64 * 2**20
"""Each output takes up to one and a half times as much."""
COPY_BYTES: Final = 2**20
NUMBER_BYTES_MAX: Final = 30


class OutputFiles:
    """The outputs of one task, in its folder."""

    def __init__(self, folder: Path, bytes_max: int = OUTPUT_BYTES_MAX) -> None:
        self._folder = folder
        self._bytes_max = bytes_max

    def open(self, stream: Stream) -> int:
        """Return a descriptor to which a program appends."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK
        return os.open(self._path(stream), flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def tail(self, stream: Stream, bytes_max: int) -> tuple[int, bytes]:
        """Return how many bytes were written in all, and the last of them."""
        size, said = _end_of(self._path(stream), bytes_max)
        if len(said) < bytes_max:
            said = _end_of(self._path(stream, ".1"), bytes_max - len(said))[1] + said
        return self._dropped(stream) + size, said

    def shorten(self) -> None:
        """Empty the files that are too long, and keep half of what they may hold."""
        for stream in Stream:
            path = self._path(stream)
            with suppress(OSError), _regular(path, os.O_RDWR) as descriptor:
                size = os.fstat(descriptor).st_size
                if size > self._bytes_max:
                    self._set_aside(stream, descriptor, size)

    def _set_aside(self, stream: Stream, descriptor: int, size: int) -> None:
        dropped = self._dropped(stream) + size
        with suppress(OSError), _replaced(self._path(stream, ".1")) as beside:
            at = size - self._bytes_max // 2
            while at < size:
                at += os.write(beside, os.pread(descriptor, min(COPY_BYTES, size - at), at))
        os.ftruncate(descriptor, 0)  # also if the disk is full, for then nothing else helps
        write_small(self._path(stream, ".dropped"), str(dropped))

    def _dropped(self, stream: Stream) -> int:
        _, said = _end_of(self._path(stream, ".dropped"), NUMBER_BYTES_MAX)
        return int(said) if said.isdigit() else 0

    def _path(self, stream: Stream, suffix: str = "") -> Path:
        return self._folder / f"{stream.value}{suffix}"


@contextmanager
def _regular(path: Path, flags: int) -> Iterator[int]:
    """Open a file during the block; raise OSError if it is a link or anything but a file."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path} is no file")
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _replaced(path: Path) -> Iterator[int]:
    """Open a new, empty file in place of another during the block."""
    path.unlink(missing_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def write_small(path: Path, text: str) -> None:
    """Replace a small file; what a program put there is not followed. Errors are passed over."""
    with suppress(OSError), _replaced(path) as descriptor:
        os.write(descriptor, text.encode())


def _end_of(path: Path, bytes_max: int) -> tuple[int, bytes]:
    """Return the length of a file and its last bytes; nothing of what cannot be read."""
    with suppress(OSError), _regular(path, os.O_RDONLY) as descriptor:
        size = os.fstat(descriptor).st_size
        length = min(size, bytes_max)
        return size, os.pread(descriptor, length, size - length)
    return 0, b""


def small_text(path: Path, bytes_max: int) -> str:
    """Return the text of a small file; empty if it is longer, or no file, or not text."""
    size, said = _end_of(path, bytes_max)
    with suppress(UnicodeDecodeError):
        return said.decode("ascii") if size <= bytes_max else ""
    return ""
