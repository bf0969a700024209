"""One connection, opened when needed; it translates errors and repeats calls after collisions.

Goal     A call of a function is one line of code.
Promise  Every database error is raised as one of omega.errors, chosen by its SQLSTATE. Calls that
         end in deadlocks, serialization failures or lock timeouts are repeated here and counted. A
         broken connection is replaced at the next call, also one whose server is silent for longer
         than its statement may take. No message has the URL's password.
         An *incarnation* of the database lasts until a restart, promotion or restore of its server.
         By the latter two, commits that somebody has seen may be lost; a restart cannot be told
         from them. The server then refuses calls until a client has begun a new incarnation: a call
         here that is refused for this begins one and is sent again. Views of an earlier one are
         read anew.
Source   docs/decisions/0009-errors-and-retries.md; docs/decisions/0049-incarnations.md.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from threading import Event
from typing import Any, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow, tuple_row

from omega.errors import (
    BadInput,
    InvariantBroken,
    NotAllowed,
    SchemaMismatch,
    StoreBusy,
    StoreUnavailable,
)
from omega.store.postgres import json_text, packing
from omega.store.postgres.answered import AnsweredConnection
from omega.store.postgres.connecting import SILENCE_S, connect, with_settings
from omega.store.postgres.incarnations import INCARNATION_UNKNOWN
from omega.store.postgres.waits import cause_of_wait

COLLISIONS_MAX = 5
"""How often one call is repeated after a deadlock, serialization failure or lock timeout."""
LONG_MS = 3_600_000
"""How long one statement may take that reads or writes a whole cell."""
READ_ONLY = (
    "the server takes no writes: it is a standby, or set to read only; name the primary in"
    " OMEGA_DATABASE_URL, or all servers and target_session_attrs=read-write"
)

_COLLISIONS = (errors.DeadlockDetected, errors.SerializationFailure, errors.LockNotAvailable)
_SCHEMA = (
    errors.UndefinedFunction,
    errors.UndefinedTable,
    errors.UndefinedColumn,
    errors.InvalidSchemaName,
)
_REFUSED = (
    errors.IntegrityError,
    errors.DataError,
    errors.ProgramLimitExceeded,
    errors.NotSupportedError,
)
_T = TypeVar("_T")
Cursor = psycopg.Cursor[TupleRow]
"""What several statements of one transaction are run on."""


class Link:
    """A connection to one database, for one thread."""

    def __init__(
        self,
        url: str,
        *,
        application_name: str,
        statement_timeout_ms: int,
        stop: Event | None = None,
    ) -> None:
        """While `stop` is set, a server that says nothing is soon given up."""
        self._url = url
        self._stop = stop
        self._application_name = application_name
        self._statement_timeout_ms = statement_timeout_ms
        self._connection: AnsweredConnection | None = None
        self.counts: Counter[str] = Counter()
        """How often a call was repeated after a collision, a commit was answered from the record of
        an earlier try, or a connection was replaced, by cause."""

    def __repr__(self) -> str:
        known = conninfo_to_dict(self._url)
        return f"Link({known.get('host')}/{known.get('dbname')})"

    def call(
        self,
        query: str,
        parameters: Sequence[Any] | Mapping[str, Any] = (),
        *,
        repeats_lock_timeouts: bool = True,
    ) -> list[TupleRow]:
        """Run one statement in a transaction of its own; return its rows.

        Without `repeats_lock_timeouts` it fails at the first lock that it does not get.

        Raises StoreUnavailable if no answer came, so that the effect is unknown; also if the server
        takes no writes, and then nothing was done. Raises StoreBusy if the call still collided
        after COLLISIONS_MAX repeats; nothing was done. Raises SchemaMismatch, NotAllowed, BadInput
        if the database refuses an argument, and InvariantBroken if a CHECK failed.
        """
        return self._translating(
            lambda: self._call_in_incarnation(query, parameters),
            repeats_lock_timeouts=repeats_lock_timeouts,
        )

    def together(self, work: Callable[[Cursor], _T], *, reads_only: bool = False) -> _T:
        """Run several statements, all or none, each in LONG_MS at most; return the result.

        With `reads_only` all of them see the cell at one moment, and none may write. Work that
        collides is repeated from its beginning. Raises as `call` does.
        """
        return self._translating(lambda: self._together(work, reads_only=reads_only))

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _call_in_incarnation(
        self, query: str, parameters: Sequence[Any] | Mapping[str, Any]
    ) -> list[TupleRow]:
        """Call; if an incarnation has to be begun first, begin it and call again."""
        try:
            return self._call(query, parameters)
        except psycopg.Error as refusal:
            if refusal.sqlstate != INCARNATION_UNKNOWN:
                raise
        self.counts["incarnations"] += 1
        self._call("SELECT omega.begin_incarnation()", ())
        return self._call(query, parameters)

    def _call(self, query: str, parameters: Sequence[Any] | Mapping[str, Any]) -> list[TupleRow]:
        connection = self._open()
        if not connection.keeps_settings:
            return self._call_with_settings(connection, query, parameters)
        with connection.cursor(row_factory=tuple_row, binary=True) as cursor:
            cursor.execute(query, parameters, prepare=True)
            return cursor.fetchall() if cursor.description else []

    def _call_with_settings(
        self,
        connection: AnsweredConnection,
        query: str,
        parameters: Sequence[Any] | Mapping[str, Any],
    ) -> list[TupleRow]:
        """Call in a transaction that begins with our settings; all of it is sent together.

        A pooler may give each transaction another connection to the server, so that neither
        settings nor prepared statements outlast one.
        """
        with connection.pipeline() as pipeline, connection.transaction():
            connection.execute(with_settings(self._statement_timeout_ms).encode(), prepare=False)
            with connection.cursor(row_factory=tuple_row, binary=True) as cursor:
                cursor.execute(query, parameters, prepare=False)
                pipeline.sync()
                return cursor.fetchall() if cursor.description else []

    def _together(self, work: Callable[[Cursor], _T], *, reads_only: bool) -> _T:
        connection = self._open()
        with (
            connection.transaction(),
            connection.cursor(row_factory=tuple_row, binary=True) as cursor,
        ):
            if reads_only:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            if not connection.keeps_settings:
                cursor.execute(with_settings(self._statement_timeout_ms).encode(), prepare=False)
            cursor.execute(f"SET LOCAL statement_timeout = {LONG_MS}".encode())
            silence_s_max = connection.silence_s_max
            connection.silence_s_max = LONG_MS / 1_000 + SILENCE_S
            try:
                return work(cursor)
            finally:
                connection.silence_s_max = silence_s_max

    def _open(self) -> AnsweredConnection:
        if self._connection is None or self._connection.closed:
            if self._connection is not None:
                self.counts["reconnects"] += 1
            self._connection = self._connect()
            packing.register(self._connection)
            json_text.register(self._connection)
        return self._connection

    def _connect(self) -> AnsweredConnection:
        connection = connect(
            self._url,
            application_name=self._application_name,
            statement_timeout_ms=self._statement_timeout_ms,
        )
        connection.stop = self._stop
        return connection

    def _translating(self, work: Callable[[], _T], *, repeats_lock_timeouts: bool = True) -> _T:
        collisions = 0
        while True:
            try:
                return work()
            except _COLLISIONS as collision:
                self.counts[type(collision).__name__] += 1
                collisions += 1
                is_lock_timeout = isinstance(collision, errors.LockNotAvailable)
                is_repeated = repeats_lock_timeouts or not is_lock_timeout
                if collisions > COLLISIONS_MAX or not is_repeated:
                    raise StoreBusy(_sentence(collision)) from collision
            except _SCHEMA as mismatch:
                raise SchemaMismatch(self._explained(mismatch)) from mismatch
            except errors.InsufficientPrivilege as denied:
                raise NotAllowed(self._denied(denied)) from denied
            except errors.CheckViolation as broken:
                raise InvariantBroken(_sentence(broken)) from broken
            except _REFUSED as refused:
                raise BadInput(_sentence(refused)) from refused
            except UnicodeError as refused:  # a lone surrogate, which a command line may contain
                raise BadInput(f"a text cannot be written as UTF-8: {refused}") from refused
            except psycopg.Error as silence:
                # Mostly QueryCanceled, AdminShutdown or a lost connection: the effect is unknown.
                raise StoreUnavailable(self._silence(silence)) from silence

    def _silence(self, failure: psycopg.Error) -> str:
        """Return why no answer came; for a server that was silent, what it waits for."""
        if isinstance(failure, errors.ReadOnlySqlTransaction):
            self.close()  # of several hosts, another may be the primary by now
            return READ_ONLY
        silent = self._connection
        if silent is None or silent.gave_up_on is None:
            return _sentence(failure)
        why = cause_of_wait(self._url, silent.gave_up_on)
        silent.gave_up_on = None  # or a later failure would be explained by this wait
        return _sentence(failure) if why is None else f"{_sentence(failure)}: {why}"

    def _denied(self, denied: psycopg.Error) -> str:
        assert self._connection is not None, "who is not connected has not been asked"
        return f"{self._connection.info.user} may not do this: {_sentence(denied)}"

    def _explained(self, mismatch: psycopg.Error) -> str:
        # Imported here because Alembic loads slowly, and nothing else in this module needs it.
        from omega.store.postgres import revision  # noqa: PLC0415

        at_fault = f"{_sentence(mismatch)}; run: omega db migrate"
        return revision.mismatch(self._url) or at_fault


def _sentence(error: psycopg.Error) -> str:
    primary = error.diag.message_primary or str(error) or type(error).__name__
    return " ".join(primary.split())
