"""Trash: folders that a task filled are deleted aside.

Goal     Delete what may hold a million files, without the agent waiting for it.
Promise  What is thrown away is out of its place at once, and gone some time later, also if the
         agent is killed in between, and if a program has made its folders read-only. What cannot be
         deleted all the same is tried once by each agent.
Source   rename(2), rm(1), find(1).
"""

import errno
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

from omega.nodes.agent.shell_script import SHELL

AT_ONCE_MAX: Final = 2_000
"""How many paths one process deletes. Their names are short, so that they fit its command line."""
DELETE: Final = """\
rm -rf -- "$@" && exit
find "$@" -type d ! -perm -700 -exec chmod u+rwx {} \\;
exec rm -rf -- "$@"
"""
"""The paths are arguments. `find` changes a folder before it enters it, and follows no links."""


class Trash:
    """One folder whose content a process deletes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._thrown = 0
        self._is_empty = False
        self._pid: int | None = None
        self._begun: set[Path] = set()
        """What the process deletes."""
        self._left: set[Path] = set()
        """What could not be deleted."""

    def throw(self, path: Path) -> None:
        """Put a file or folder of the same disk into the trash. Raises OSError."""
        while os.path.lexists(target := self._folder / str(self._thrown)):
            self._thrown += 1
        self._thrown += 1
        self._is_empty = False
        try:
            path.rename(target)
        except PermissionError:  # only who may write to a folder may move it elsewhere
            if path.is_symlink() or not path.is_dir():
                raise
            path.chmod(0o700)
            path.rename(target)

    def tidy(self) -> None:
        """See to it that what was thrown away is being deleted.

        Raises OSError, also once if something could not be deleted.
        """
        if self._is_at_work() or self._is_empty:
            return
        there = set(self._folder.iterdir())
        stays = self._begun & there
        self._left = (self._left & there) | stays
        paths = sorted(there - self._left)[:AT_ONCE_MAX]
        self._begun = set()
        self._is_empty = not paths
        if paths:
            process = subprocess.Popen(
                [SHELL, "-c", DELETE, "omega-trash", *(f"./{path.name}" for path in paths)],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={"PATH": "/usr/bin:/bin"},
                start_new_session=True,
            )
            self._pid, process.returncode = process.pid, 0  # it may outlive us
            self._begun = set(paths)
        if stays:
            raise OSError(errno.EPERM, f"some stay in {str(self._folder)!r}")

    def _is_at_work(self) -> bool:
        """Return whether the process still deletes."""
        if self._pid is None:
            return False
        with suppress(ChildProcessError):
            if os.waitpid(self._pid, os.WNOHANG)[0] == 0:
                return True
        self._pid = None
        return False
