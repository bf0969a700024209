"""How a process learns that it is to end: by a signal, or because its parent has ended.

Goal     End every process cleanly, whoever asks for it.
Promise  Ctrl-C, SIGTERM and a closed terminal set one event, whatever the process is at; a second
         Ctrl-C ends at once. A process that was started with `--end-with-parent` never outlives
         its parent for long.
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
"""Exit code of one that took longer."""


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """Inside the block, have the signals set the event that is returned.

    Raises KeyboardInterrupt instead of StoreUnavailable after a Ctrl-C: it reaches the terminal's
    other processes too, and a server that was on its way up ends with it.
    """
    stop = threading.Event()
    asked: list[int] = []

    def ask(number: int, _frame: FrameType | None) -> None:
        if asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        asked.append(number)
        # Not here: what the signal came in between may hold the event's own lock, as every sleep
        # does for a moment, and could then never let go of it.
        start_new_thread(stop.set, ())

    before = {number: signal.signal(number, ask) for number in SIGNALS}
    try:
        yield stop
    except StoreUnavailable as error:
        if signal.SIGINT in asked:
            raise KeyboardInterrupt from error
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stop_with_parent(stop: threading.Event) -> None:
    """Set the event when standard input ends, and see to it that the process then does too."""

    def watch() -> None:
        while os.read(descriptor, 4_096):
            pass
        stop.set()
        last_resort = threading.Timer(ORPHAN_GRACE_S, os._exit, [ORPHANED])
        last_resort.daemon = True
        last_resort.start()

    descriptor = sys.stdin.fileno()
    threading.Thread(target=watch, name="parent", daemon=True).start()
