"""Stops a process on a signal, or when its parent has ended.

Goal     End every process cleanly, whatever stops it.
Promise  Ctrl-C, SIGTERM and a closed terminal set one event, whatever the process is doing; a
         second Ctrl-C raises KeyboardInterrupt at once. Of a command that ends by itself, each of
         them undoes what it has begun. A process that was started with `nohup` ignores the end of
         its terminal. One that was started with `--end-with-parent` ends at most ORPHAN_GRACE_S
         after its parent.
Source   The pipe to standard input: the kernel closes it however the parent ends.
"""

import os
import signal
import sys
import threading
from _thread import start_new_thread
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from omega.errors import StoreUnavailable

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ORPHAN_GRACE_S: Final = 20.0
"""How long a process may take to end cleanly once its parent is gone."""
ORPHANED: Final = 1
"""Exit code of a process that took longer."""


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """Yield an event that SIGNALS set while the block runs.

    After a Ctrl-C, raises KeyboardInterrupt instead of StoreUnavailable: the terminal sends the
    signal to all its processes, so that a server that is starting ends, too.
    """
    stop = threading.Event()
    asked: list[int] = []

    def ask(number: int, _frame: FrameType | None) -> None:
        if asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.append(number)
        # In a thread of its own: the interrupted code may hold the event's lock, as every sleep
        # does for a moment. Setting the event in the handler would then deadlock.
        start_new_thread(stop.set, ())

    before = {number: signal.signal(number, ask) for number in _heard()}
    try:
        yield stop
    except StoreUnavailable as error:
        if signal.SIGINT in asked:
            raise KeyboardInterrupt from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Have SIGTERM and a closed terminal interrupt the block once, as Ctrl-C does.

    For commands that end by themselves: what they have begun is undone on the way out.
    """

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)  # or a second one would interrupt the undoing
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in _heard()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _heard() -> list[signal.Signals]:
    """Return the signals to handle: not the one of a closed terminal if it is ignored (nohup).

    SIGINT is handled all the same: shells ignore it for whatever they start in the background.
    """
    is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [number for number in SIGNALS if number is not signal.SIGHUP or not is_ignored]


def stop_with_parent(stop: threading.Event) -> None:
    """Set the event when standard input ends; exit ORPHAN_GRACE_S later if still running."""

    def watch() -> None:
        while os.read(descriptor, 4_096):
            pass
        stop.set()
        last_resort = threading.Timer(ORPHAN_GRACE_S, os._exit, [ORPHANED])
        last_resort.daemon = True
        last_resort.start()

    descriptor = sys.stdin.fileno()
    threading.Thread(target=watch, name="parent", daemon=True).start()
