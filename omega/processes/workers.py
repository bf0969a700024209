"""The workers that simulate the runs of a sweep: local processes, or a Dask cluster.

Goal     Use every local core, or a cluster that is running already, through one interface.
Promise  Local processes end with this one, however it ends, and at once when an exception leaves
         the block; a cluster's workers go on. A cluster that does not answer is BadInput before
         anything is simulated.
Source   concurrent.futures; docs/decisions/0023-sweeps-and-audits.md.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from omega.errors import BadInput, SettingsError
from omega.reports.wording import things
from omega.terminal.terminal import escape_standard_streams

CONNECT_S: Final = 10
SUBMITTED_MIN: Final = 64
"""Least number of runs that a cluster is given at a time: it may add workers meanwhile."""


@dataclass(frozen=True)
class Workers:
    """An executor, with the number of runs to submit to it at a time, and its description."""

    executor: Executor
    at_once: int
    """Runs to submit at a time: enough to keep all workers busy, few enough to stop soon."""
    said: str
    """The workers in words."""


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def processes(number: int) -> Iterator[Workers]:
    """Yield so many local processes; they are ended when the block is left by an exception."""
    others = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(
        number, mp_context=multiprocessing.get_context("spawn"), initializer=_begin
    )
    try:
        yield Workers(executor, 2 * number, things(number, "worker"))
    except BaseException:
        for process in set(multiprocessing.active_children()) - others:
            process.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


@contextmanager
def cluster(address: str) -> Iterator[Workers]:
    """Yield the Dask cluster at this address. Raises BadInput if none answers, SettingsError."""
    try:
        from distributed import Client  # noqa: PLC0415 - an optional extra
        from distributed.comm.addressing import resolve_address  # noqa: PLC0415 - likewise
    except ModuleNotFoundError as error:
        raise SettingsError(["--dask needs omega-scheduler[dask] to be installed"]) from error
    try:
        resolve: Any = resolve_address  # it has no type hints, nor has Client
        connect: Any = Client
        resolve(address)  # it refuses a malformed address at once; Client would retry for long
        client = connect(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise BadInput(f"no Dask scheduler answers at {address}", field="--dask") from error
    with client:
        threads = sum(client.nthreads().values())
        at_once = max(SUBMITTED_MIN, 2 * threads)
        # With pure=True, calls with the same argument would share one result, and one failure.
        yield Workers(
            client.get_executor(pure=False), at_once, things(threads, "thread") + " of Dask"
        )


def _begin() -> None:
    """Make this worker ignore Ctrl-C, end with its parent, and print only printable text."""
    escape_standard_streams()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, name="parent", daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
