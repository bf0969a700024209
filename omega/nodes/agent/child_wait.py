"""Waits that end when a child process has ended.

Goal     Let an agent see the end of a program at once, without looking often.
Promise  A child that ends between two waits ends the next one. Signals with handlers of their own
         end a wait too. What was set before is set again at the end.
Source   the self-pipe trick (D. J. Bernstein), as `signal.set_wakeup_fd`.
"""

import os
import select
import signal
from contextlib import suppress
from types import TracebackType
from typing import Self


class ChildWait:
    """Waits of the main thread. Enter it there, and call `wait`."""

    def __enter__(self) -> Self:
        """Have each signal, SIGCHLD too, end a wait."""
        self._pipe, self._end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        # A signal for which the pipe is full has already ended the wait.
        self._before = signal.set_wakeup_fd(self._end, warn_on_full_buffer=False)
        self._handler = signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Set what was set before."""
        signal.signal(signal.SIGCHLD, self._handler)
        signal.set_wakeup_fd(self._before)
        os.close(self._end)
        os.close(self._pipe)

    def wait(self, seconds: float) -> None:
        """Wait until a child ends or a signal is handled, at most that long."""
        select.select([self._pipe], [], [], max(0.0, seconds))
        with suppress(BlockingIOError):
            os.read(self._pipe, 4_096)
