"""Small files in folders that a program may write to as well.

Goal     Keep what an agent must know after it was killed.
Promise  No function blocks, whatever lies at the path: a fifo, a link, a folder, a huge file. What
         is written is whole or not there.
Source   open(2), rename(2).
"""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Final

BYTES_MAX: Final = 8192


def read_small(path: Path, bytes_max: int = BYTES_MAX) -> str | None:
    """Return the text of a small regular file, and None for whatever else lies there."""
    try:
        descriptor = open_regular(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        content = os.read(descriptor, bytes_max + 1)
        return content.decode("utf-8") if len(content) <= bytes_max else None
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)


def write_small(path: Path, text: str) -> None:
    """Write a small file, or replace it as a whole. Raises OSError."""
    aside = path.with_name(f"{path.name}.new")
    try:
        create_small(aside, text)
    except FileExistsError:  # whoever wrote it was killed
        aside.unlink()
        create_small(aside, text)
    aside.rename(path)


def create_small(path: Path, text: str) -> None:
    """Write a small file that must not be there yet. Raises OSError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    try:
        rest = memoryview(text.encode("utf-8"))
        while rest:  # a disk that is almost full takes a part
            rest = rest[os.write(descriptor, rest) :]
    finally:
        os.close(descriptor)


def remove_small(path: Path, names: Sequence[str]) -> bool:
    """Delete a small file, or a folder with nothing but small files of these names.

    Returns False, and deletes less or nothing, if it is anything else: that may take long.
    """
    try:
        entry = path.lstat()
        if entry.st_size > BYTES_MAX:
            return False  # also a folder that had many entries: all of its blocks would be read
        if not stat.S_ISDIR(entry.st_mode):
            path.unlink()
            return True
        for name in names:
            remove_small(path / name, ())
        path.rmdir()
    except OSError:
        return False
    return True


def open_regular(path: Path, flags: int) -> int:
    """Return the descriptor of a regular file. Raises OSError for anything else."""
    safe = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    descriptor = os.open(path, flags | safe, 0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "is no regular file", str(path))
    return descriptor
