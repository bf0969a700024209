"""How a process learns that it is to end."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from omega.errors import StoreUnavailable
from omega.processes.stopping import SIGNALS, interrupted_by_signals, stop_on_signals


@pytest.fixture(autouse=True)
def _not_by_nohup() -> Iterator[None]:
    """Whoever runs the tests with `nohup` has them ignore closed terminals."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_sets_the_event(number: signal.Signals) -> None:
    with stop_on_signals() as stop:
        os.kill(os.getpid(), number)

        assert stop.wait(10)


INTERRUPTED_IN_A_SLEEP = """
import signal
from omega.processes.stopping import stop_on_signals

with stop_on_signals() as stop:
    with stop._cond:  # as `wait` holds it, before it falls asleep and after
        signal.raise_signal(signal.SIGTERM)
    stop.wait()
"""


def test_a_signal_in_the_middle_of_a_sleep_does_not_hang() -> None:
    # In a process of its own, so that a hang is a failure.
    ended = subprocess.run([sys.executable, "-c", INTERRUPTED_IN_A_SLEEP], timeout=60, check=False)

    assert 0 == ended.returncode


def test_a_second_interrupt_ends_at_once() -> None:
    with stop_on_signals() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.wait(10)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_a_second_sigterm_changes_nothing() -> None:
    with stop_on_signals() as stop:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(10)
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize(
    ("number", "raised"),
    [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, StoreUnavailable)],
)
def test_a_server_that_an_interrupt_ended_is_an_interrupt(
    number: signal.Signals, raised: type[BaseException]
) -> None:
    def work() -> None:
        with stop_on_signals() as stop:
            os.kill(os.getpid(), number)
            assert stop.wait(10)
            raise StoreUnavailable("no data directory can be made")

    with pytest.raises(raised):
        work()


def test_the_handlers_are_given_back() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with stop_on_signals():
        pass

    assert before == [signal.getsignal(number) for number in SIGNALS]


def test_the_end_of_standard_input_sets_the_event() -> None:
    script = """
import threading
from omega.processes.stopping import stop_with_parent
stop = threading.Event()
stop_with_parent(stop)
print("up", flush=True)
stop.wait()
print("ended by it")
"""
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "up\n" == process.stdout.readline()
        out, _ = process.communicate()

    assert ("ended by it\n", 0) == (out, process.returncode)


@pytest.mark.parametrize("handling", [stop_on_signals, interrupted_by_signals])
def test_who_ignores_a_closed_terminal_goes_on(
    handling: Callable[[], AbstractContextManager[object]],
) -> None:
    """As with `nohup`."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    with handling():
        assert signal.SIG_IGN is signal.getsignal(signal.SIGHUP)
        assert signal.SIG_IGN is not signal.getsignal(signal.SIGTERM)
    assert signal.SIG_IGN is signal.getsignal(signal.SIGHUP)
