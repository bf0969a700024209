"""Database sessions that a test steps: a step ends when the call returns or waits for a lock.

Each call runs in a thread of its session. `Database.settle` returns when each call has returned or,
according to pg_blocking_pids, waits for a lock. A test can then act while a session waits, and no
test depends on speed.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event
from typing import Any

import psycopg
from psycopg import sql

POLL_S = 0.002
POLLS_MAX = 60_000
"""Together the longest wait: it turns a hang into a failure."""
SESSION_SETTINGS = "SET statement_timeout = '30s'; SET jit = off"
DEADLOCK_TIMEOUT = "20ms"
"""Postgres looks for deadlocks after this time."""
Login = Callable[..., str]
"""Returns the URL of a login with the given name and roles."""
Rows = list[tuple[Any, ...]]


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Poll until the condition is true."""
    pause = Event()
    for _ in range(POLLS_MAX):
        if condition():
            return
        pause.wait(POLL_S)
    raise AssertionError(f"timed out waiting for {what}")


@dataclass(frozen=True)
class Answer:
    """The result of one statement: rows, or the SQLSTATE and message of an error."""

    rows: Rows
    sqlstate: str = ""
    message: str = ""
    detail: str = ""


class UnexpectedError(AssertionError):
    """A statement that must succeed has failed."""


@dataclass(eq=False)
class Session:
    """One connection, and the call that it is executing."""

    name: str
    connection: psycopg.Connection[tuple[Any, ...]]
    _pool: ThreadPoolExecutor
    _call: "Future[Answer] | None" = field(default=None)

    @property
    def pid(self) -> int:
        return self.connection.info.backend_pid

    @property
    def is_done(self) -> bool:
        """Whether the last call has returned."""
        return self._call is None or self._call.done()

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open; valid when no call is running."""
        return self.connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE

    @property
    def has_failed(self) -> bool:
        """Whether the open transaction has failed, so that it can only be rolled back."""
        return self.connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR

    def start(self, statement: str, parameters: Sequence[object] = ()) -> None:
        """Send a statement without waiting; `answer` returns its result."""
        assert self.is_done, f"a call of {self.name} is still running"
        self._call = self._pool.submit(self._run, statement, parameters)

    @property
    def answer(self) -> Answer:
        """The result of the last call; waits until it returns."""
        assert self._call is not None
        return self._call.result()

    def try_execute(self, statement: str, parameters: Sequence[object] = ()) -> Answer:
        """Execute a statement; return its rows or its error."""
        self.start(statement, parameters)
        return self.answer

    def execute(self, statement: str, parameters: Sequence[object] = ()) -> Rows:
        """Execute a statement that must succeed; return its rows."""
        answer = self.try_execute(statement, parameters)
        if answer.sqlstate:
            raise UnexpectedError(f"{self.name}: {answer.sqlstate}: {answer.message}")
        return answer.rows

    def _run(self, statement: str, parameters: Sequence[object]) -> Answer:
        try:
            cursor = self.connection.execute(statement.encode(), parameters or None)
            return Answer(cursor.fetchall() if cursor.description else [])
        except psycopg.Error as error:
            message = error.diag.message_primary or str(error)
            detail = error.diag.message_detail or ""
            return Answer([], error.sqlstate or "", message or "?", detail)

    def reset(self) -> bool:
        """Roll back, and reset all settings; say whether the connection can be used again."""
        if self._call is not None:
            self._call.result()
            self._call = None
        try:
            self.connection.rollback()
            self.connection.execute("RESET ALL")
            self.connection.execute("SELECT pg_advisory_unlock_all()")
        except psycopg.Error:
            return False
        return True

    def close(self) -> None:
        """Close the connection."""
        self._pool.shutdown(wait=True)
        self.connection.close()


SessionCache = dict[tuple[str, str], Session]
"""Open sessions by URL and name; later tests reuse them with their cached plans."""


class Database:
    """A database, its sessions by name, and an observer: a session that only reads."""

    def __init__(self, url: str, login: Login, session_cache: SessionCache) -> None:
        self.url = url
        self._login = login
        self._session_cache = session_cache
        self.sessions: dict[str, Session] = {}
        self._observer = self._connect("observer", url)

    @property
    def observer(self) -> psycopg.Connection[tuple[Any, ...]]:
        """The observer's connection, as a superuser."""
        return self._observer.connection

    def owner(self, name: str = "owner") -> Session:
        """Open a session of the schema's owner."""
        return self._open(name, self.url)

    def session(self, name: str, *roles: str) -> Session:
        """Open a session of the login for these roles; it is shared by all sessions with them."""
        words = ["attack", *(role.removeprefix("omega_") for role in roles)]
        return self.session_of(name, "_".join(words), *roles)

    def session_of(self, name: str, login: str, *roles: str) -> Session:
        """Open a session of the login of this name."""
        return self._open(name, self._login(login, *roles))

    def _open(self, name: str, url: str) -> Session:
        assert name not in self.sessions, f"session {name} is open already"
        self.sessions[name] = self._connect(name, url)
        return self.sessions[name]

    def _connect(self, name: str, url: str) -> Session:
        if (url, name) not in self._session_cache:
            connection = psycopg.connect(url, autocommit=True)
            self._session_cache[url, name] = Session(name, connection, ThreadPoolExecutor(1))
        session = self._session_cache[url, name]
        session.connection.execute(SESSION_SETTINGS)
        if url == self.url:
            session.connection.execute(f"SET deadlock_timeout = '{DEADLOCK_TIMEOUT}'".encode())
        else:
            self._shorten_deadlock_timeout(session)
        return session

    def _shorten_deadlock_timeout(self, session: Session) -> None:
        """Set deadlock_timeout; a login needs a privilege for that."""
        timeout = "SELECT set_config('deadlock_timeout', %s, false)"
        try:
            session.connection.execute(timeout, [DEADLOCK_TIMEOUT])
        except psycopg.errors.InsufficientPrivilege:
            grant = sql.SQL("GRANT SET ON PARAMETER deadlock_timeout TO {}")
            with self.observer.transaction():
                # All databases of the server share the row that is changed: two grants at a time
                # fail, and other processes run these tests on it too.
                self.observer.execute("LOCK TABLE pg_parameter_acl IN EXCLUSIVE MODE")
                self.observer.execute(grant.format(sql.Identifier(session.connection.info.user)))
            session.connection.execute(timeout, [DEADLOCK_TIMEOUT])

    def query(self, query: str, parameters: Sequence[object] = ()) -> Rows:
        """Execute a query as the observer: it sees committed rows only."""
        return self.observer.execute(query.encode(), parameters or None).fetchall()

    def settle(self, *sessions: Session) -> None:
        """Wait until each call of these sessions, or of all, has returned or waits for a lock."""
        chosen = sessions or tuple(self.sessions.values())
        wait_until(lambda: self._are_settled(chosen), "a call to return or to wait for a lock")

    def _are_settled(self, sessions: Sequence[Session]) -> bool:
        # `is_done` is read before the locks: a session that is done then releases none afterwards.
        running = [session for session in sessions if not session.is_done]
        if not running:
            return True
        blocked = self.query(
            "SELECT pid FROM unnest(%s::int[]) AS pid WHERE cardinality(pg_blocking_pids(pid)) > 0",
            [[session.pid for session in running]],
        )
        return {session.pid for session in running} == {pid for (pid,) in blocked}

    def waiting(self) -> dict[str, str]:
        """Return the sessions that wait for a lock now, with the types of the locks."""
        names = {session.pid: session.name for session in self.sessions.values()}
        rows = self.query(
            "SELECT pid, string_agg(DISTINCT locktype, ', ') FROM pg_locks"
            " WHERE NOT granted AND pid = ANY (%s::int[]) GROUP BY pid",
            [list(names)],
        )
        return {names[pid]: kind for pid, kind in rows}

    def step(self, session: Session, statement: str, parameters: Sequence[object] = ()) -> bool:
        """Start a call and settle; say whether the call has returned."""
        session.start(statement, parameters)
        self.settle(session)
        return session.is_done

    def close(self) -> None:
        """Cancel running calls and reset the sessions; keep them for the next test."""
        for session in self.sessions.values():
            if not session.is_done:
                session.connection.cancel_safe()
        for key, session in list(self._session_cache.items()):
            if session in self.sessions.values() and not session.reset():
                del self._session_cache[key]
                session.close()
