"""Sessions that are stepped by hand: each call of one of them goes on until it is done or waits.

A session's call runs in a thread of its own. `Stage.settle` returns once every call that was begun
is over or waits for a lock, as Postgres tells it: so a test may say what happens while somebody
waits, and nothing depends on how fast anything is.
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
"""No test depends on this: it only turns a hang into a failure."""
HANG = "SET statement_timeout = '30s'; SET jit = off"
DEADLOCK_TIMEOUT = "20ms"
"""Those who step on each other's toes are told soon."""
Login = Callable[..., str]
"""Gives the URL of a login that has some roles."""
Rows = list[tuple[Any, ...]]


def wait_until(fact: Callable[[], object], what: str) -> None:
    """Look until it is so."""
    pause = Event()
    for _ in range(POLLS_MAX):
        if fact():
            return
        pause.wait(POLL_S)
    raise AssertionError(f"waited in vain for {what}")


@dataclass(frozen=True)
class Answer:
    """What came of one statement: rows, or the SQLSTATE of a refusal and its first line."""

    rows: Rows
    sqlstate: str = ""
    said: str = ""
    detail: str = ""

    @property
    def value(self) -> Any:  # noqa: ANN401 - whatever SQL has
        """The only value of the only row."""
        assert not self.sqlstate, f"{self.sqlstate}: {self.said}"
        ((value,),) = self.rows
        return value


class Refused(AssertionError):
    """A statement that was to be answered was refused."""


@dataclass(eq=False)
class Session:
    """One connection; between BEGIN and COMMIT it holds what it has locked."""

    name: str
    connection: psycopg.Connection[tuple[Any, ...]]
    _pool: ThreadPoolExecutor
    _call: "Future[Answer] | None" = field(default=None)

    @property
    def pid(self) -> int:
        return self.connection.info.backend_pid

    @property
    def is_done(self) -> bool:
        """Whether its last call is over."""
        return self._call is None or self._call.done()

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open, now that its last call is over."""
        return self.connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE

    @property
    def has_failed(self) -> bool:
        """Whether its transaction can only be rolled back."""
        return self.connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR

    def start(self, statement: str, parameters: Sequence[object] = ()) -> None:
        """Send a statement; `answer` has what comes of it."""
        assert self.is_done, f"{self.name} still waits"
        self._call = self._pool.submit(self._run, statement, parameters)

    @property
    def answer(self) -> Answer:
        """What came of the last call, which is waited for."""
        assert self._call is not None
        return self._call.result()

    def ask(self, statement: str, parameters: Sequence[object] = ()) -> Answer:
        """Run a statement to its end, whatever that is."""
        self.start(statement, parameters)
        return self.answer

    def do(self, statement: str, parameters: Sequence[object] = ()) -> Rows:
        """Run a statement that is to be answered."""
        answer = self.ask(statement, parameters)
        if answer.sqlstate:
            raise Refused(f"{self.name}: {answer.sqlstate}: {answer.said}")
        return answer.rows

    def _run(self, statement: str, parameters: Sequence[object]) -> Answer:
        try:
            cursor = self.connection.execute(statement.encode(), parameters or None)
            return Answer(cursor.fetchall() if cursor.description else [])
        except psycopg.Error as refusal:
            said = refusal.diag.message_primary or str(refusal)
            detail = refusal.diag.message_detail or ""
            return Answer([], refusal.sqlstate or "", said or "?", detail)

    def stop(self) -> bool:
        """Take back what is open, and all settings; say whether it can be used again."""
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
        """End it."""
        self._pool.shutdown(wait=True)
        self.connection.close()


Kept = dict[tuple[str, str], Session]
"""Sessions of earlier tests, by URL and name, for later ones: what they have planned is kept."""


class Stage:
    """A database, its sessions by name, and an onlooker who is never in anybody's way."""

    def __init__(self, url: str, login: Login, kept: Kept) -> None:
        self.url = url
        self._login = login
        self._kept = kept
        self.sessions: dict[str, Session] = {}
        self._onlooker = self._opened("onlooker", url)

    @property
    def onlooker(self) -> psycopg.Connection[tuple[Any, ...]]:
        """The connection of one who only looks, a superuser."""
        return self._onlooker.connection

    def owner(self, name: str = "owner") -> Session:
        """Open a session of the cell's owner."""
        return self._open(name, self.url)

    def session(self, name: str, *roles: str) -> Session:
        """Open a session of the login that has these roles: the same for all who have them."""
        words = ["attack", *(role.removeprefix("omega_") for role in roles)]
        return self.session_of(name, "_".join(words), *roles)

    def session_of(self, name: str, login: str, *roles: str) -> Session:
        """Open a session of a login of its own."""
        return self._open(name, self._login(login, *roles))

    def _open(self, name: str, url: str) -> Session:
        assert name not in self.sessions, f"{name} is there already"
        self.sessions[name] = self._opened(name, url)
        return self.sessions[name]

    def _opened(self, name: str, url: str) -> Session:
        if (url, name) not in self._kept:
            connection = psycopg.connect(url, autocommit=True)
            self._kept[url, name] = Session(name, connection, ThreadPoolExecutor(1))
        session = self._kept[url, name]
        session.connection.execute(HANG)
        if url == self.url:
            session.connection.execute(f"SET deadlock_timeout = '{DEADLOCK_TIMEOUT}'".encode())
        else:
            self._be_told_soon(session)
        return session

    def _be_told_soon(self, session: Session) -> None:
        """Have a login's sessions look for deadlocks at once; only a superuser may set that."""
        timeout = "SELECT set_config('deadlock_timeout', %s, false)"
        try:
            session.connection.execute(timeout, [DEADLOCK_TIMEOUT])
        except psycopg.errors.InsufficientPrivilege:
            grant = sql.SQL("GRANT SET ON PARAMETER deadlock_timeout TO {}")
            self.onlooker.execute(grant.format(sql.Identifier(session.connection.info.user)))
            session.connection.execute(timeout, [DEADLOCK_TIMEOUT])

    def see(self, query: str, parameters: Sequence[object] = ()) -> Rows:
        """Read what is committed, as a superuser."""
        return self.onlooker.execute(query.encode(), parameters or None).fetchall()

    def settle(self, *sessions: Session) -> None:
        """Wait until the calls of these, or of all, are done or wait for somebody's lock."""
        of = sessions or tuple(self.sessions.values())
        wait_until(lambda: self._are_settled(of), "a call to be done or to wait for a lock")

    def _are_settled(self, sessions: Sequence[Session]) -> bool:
        # In this order: whoever was done before we looked at locks lets nobody go after it.
        at_work = [session for session in sessions if not session.is_done]
        if not at_work:
            return True
        blocked = self.see(
            "SELECT pid FROM unnest(%s::int[]) AS pid WHERE cardinality(pg_blocking_pids(pid)) > 0",
            [[session.pid for session in at_work]],
        )
        return {session.pid for session in at_work} == {pid for (pid,) in blocked}

    def waiting(self) -> dict[str, str]:
        """Return who waits at this moment, and for what kinds of locks."""
        names = {session.pid: session.name for session in self.sessions.values()}
        found = self.see(
            "SELECT pid, string_agg(DISTINCT locktype, ', ') FROM pg_locks"
            " WHERE NOT granted AND pid = ANY (%s::int[]) GROUP BY pid",
            [list(names)],
        )
        return {names[pid]: kind for pid, kind in found}

    def step(self, session: Session, statement: str, parameters: Sequence[object] = ()) -> bool:
        """Let one session go on until it is done or waits; say whether it is done."""
        session.start(statement, parameters)
        self.settle(session)
        return session.is_done

    def close(self) -> None:
        """Take back whatever is open; keep the sessions for the next test."""
        for session in self.sessions.values():
            if not session.is_done:
                session.connection.cancel_safe()
        for key, session in list(self._kept.items()):
            if session in self.sessions.values() and not session.stop():
                del self._kept[key]
                session.close()
