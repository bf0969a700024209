"""Waits that end with a child process, with real processes and signals."""

import os
import signal
import subprocess
import sys

from omega.clock import RealClock
from omega.nodes.agent.child_wait import ChildWait

LONG_S = 20.0
"""No wait here lasts so long if it works."""


def ended_by(action: str) -> bool:
    """Return whether what a child does ends a wait; it may read until then."""
    clock = RealClock()
    command, pipe = [sys.executable, "-c", action], subprocess.PIPE
    with ChildWait() as children, subprocess.Popen(command, stdin=pipe):
        began_s = clock.now()
        children.wait(LONG_S)
        return clock.now() - began_s < LONG_S / 2


def test_the_end_of_a_child_ends_a_wait() -> None:
    assert ended_by("pass")


def test_a_child_that_has_ended_before_a_wait_ends_it() -> None:
    clock = RealClock()
    with ChildWait() as children:
        subprocess.run(["true"], check=True)
        began_s = clock.now()
        children.wait(LONG_S)

        assert clock.now() - began_s < LONG_S / 2


def test_a_signal_with_a_handler_ends_a_wait() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, _frame: seen.append(number))
    try:
        action = f"import os, signal; os.kill({os.getpid()}, signal.SIGUSR1); open(0).read()"
        assert ended_by(action)
        assert [signal.SIGUSR1] == seen
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_each_end_ends_one_wait() -> None:
    with ChildWait() as children:
        for _ in range(10):
            subprocess.run(["true"], check=True)
        children.wait(LONG_S)
        clock = RealClock()
        began_s = clock.now()
        children.wait(0.05)

        assert clock.now() - began_s >= 0.05


def test_what_was_set_before_is_set_again() -> None:
    before = signal.getsignal(signal.SIGCHLD)
    with ChildWait():
        assert before != signal.getsignal(signal.SIGCHLD)

    assert before == signal.getsignal(signal.SIGCHLD)
    assert -1 == signal.set_wakeup_fd(-1)
