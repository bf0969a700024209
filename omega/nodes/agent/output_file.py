"""Output files: what a program wrote, cut from time to time while it goes on writing.

Goal     Keep a program that talks without end from filling the disk.
Promise  The count of bytes never goes back. A cut keeps the last half of the limit in `NAME.1`.
         What a program writes in the moment of a cut may be lost; the program notices nothing.
Source   logrotate's copytruncate: the program has the file open to append, so that it writes at
         the new end after a cut.
"""

import os
from pathlib import Path

from omega.nodes.agent.small_files import open_regular, read_small, write_small

PART_BYTES = 2**20


class OutputFile:
    """The file of one stream of a task."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before = path.with_name(f"{path.name}.1")
        self._dropped = path.with_name(f"{path.name}.dropped")

    def open(self) -> int:
        """Return a descriptor that appends. Raises OSError."""
        return open_regular(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def read(self, bytes_max: int) -> tuple[int, bytes]:
        """Return how many bytes were written in all, and the last of them."""
        size, content = _tail(self._path, bytes_max)
        dropped = self._count()
        if dropped and len(content) < bytes_max:
            content = _tail(self._before, bytes_max - len(content))[1] + content
        return dropped + size, content

    def replace(self, total: int, content: bytes) -> None:
        """Keep the last bytes of so many. Raises OSError."""
        write_small(self._dropped, f"{total - len(content)}\n")
        aside = self._path.with_name(f"{self._path.name}.new")
        aside.write_bytes(content)
        aside.rename(self._path)

    def cut(self, bytes_max: int) -> None:
        """Cut the file if it is longer. Raises OSError."""
        if not self._path.exists() or self._path.lstat().st_size <= bytes_max:
            return
        source = open_regular(self._path, os.O_RDWR)
        try:
            size = os.fstat(source).st_size
            aside = self._before.with_name(f"{self._before.name}.new")
            aside.unlink(missing_ok=True)
            kept = open_regular(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            try:
                _copy(source, kept, size - min(size, bytes_max // 2), size)
            finally:
                os.close(kept)
            aside.rename(self._before)
            size = os.fstat(source).st_size  # it may have grown
            # Counted first: an agent that is killed here shows too high a count, never one that
            # goes back.
            write_small(self._dropped, f"{self._count() + size}\n")
            os.ftruncate(source, 0)
        finally:
            os.close(source)

    def _count(self) -> int:
        try:
            return max(0, int(read_small(self._dropped) or 0))
        except ValueError:
            return 0


def _tail(path: Path, bytes_max: int) -> tuple[int, bytes]:
    try:
        descriptor = open_regular(path, os.O_RDONLY)
    except OSError:
        return 0, b""
    try:
        size = os.fstat(descriptor).st_size
        # No more than was counted: the program may be writing.
        return size, os.pread(descriptor, min(size, bytes_max), max(0, size - bytes_max))
    except OSError:
        return 0, b""
    finally:
        os.close(descriptor)


def _copy(source: int, target: int, begin: int, end: int) -> None:
    while begin < end:
        part = os.pread(source, min(PART_BYTES, end - begin), begin)
        if not part:
            return
        begin += os.write(target, part)
