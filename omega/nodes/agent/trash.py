"""Trash: folders that a task filled are deleted aside.

Goal     Delete what may hold a million files, without the agent waiting for it.
Promise  What is thrown away is out of its place at once, and gone some time later, also if the
         agent is killed in between.
Source   rename(2), rm(1).
"""

import os
import subprocess
from pathlib import Path
from typing import Final

AT_ONCE_MAX: Final = 200


class Trash:
    """One folder whose content a process deletes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._thrown = 0
        self._is_empty = False
        self._pid: int | None = None

    def throw(self, path: Path) -> None:
        """Put a file or folder of the same disk into the trash. Raises OSError."""
        while (target := self._folder / str(self._thrown)).exists():
            self._thrown += 1
        self._thrown += 1
        self._is_empty = False
        path.rename(target)

    def tidy(self) -> None:
        """See to it that what was thrown away is being deleted. Raises OSError."""
        if self._pid is not None:
            try:
                if os.waitpid(self._pid, os.WNOHANG)[0] == 0:
                    return
            except ChildProcessError:
                pass
            self._pid = None
        if self._is_empty:
            return
        paths = list(self._folder.iterdir())[:AT_ONCE_MAX]
        self._is_empty = not paths
        if paths:
            process = subprocess.Popen(
                ["/bin/rm", "-rf", "--", *paths],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                start_new_session=True,
            )
            self._pid, process.returncode = process.pid, 0  # it may outlive us
