"""Whether a server has refused a login for good, and why.

Goal     Tell a login that will never be let in from a server that is away, starting or full.
Promise  The SQLSTATE decides, in whatever language the server speaks. libpq has none for a
         connection that has failed: a second try is made whose messages are traced to memory,
         never to a disk, since they may hold a password. Where that cannot be done, the server's
         English words decide, and another language is taken for an outage.
Source   docs/decisions/0009-errors-and-retries.md; PostgreSQL's manual, PQtrace and appendix A.
"""

import os
import re
from contextlib import suppress
from select import select
from typing import Final

import psycopg
from psycopg import errors, pq
from psycopg.conninfo import conninfo_to_dict

TRY_S: Final = 5.0
"""How long the second try waits for each message of the server."""
TRACE_BYTES_MAX: Final = 64 * 2**10
CODE: Final = re.compile(rb'ErrorResponse\t S "[^"]*" (?:V "[^"]*" )?C "([0-9A-Z]{5})"')

PASSWORD, DATABASE, RIGHT, LOGIN = "28P01", "3D000", "42501", "28000"
POOLERS: Final = "08P01"
"""What pgbouncer says of every refusal: its words decide."""
REFUSED: Final = frozenset({PASSWORD, DATABASE, RIGHT, LOGIN})
"""Waiting helps against none of them; 57P03 (starting up) and 53300 (full) are waited for."""
WORDS: Final = {
    "password authentication failed": PASSWORD,
    "SASL authentication failed": PASSWORD,
    "no pg_hba.conf entry": LOGIN,
    "is not permitted to log in": LOGIN,
    "permission denied for database": RIGHT,
}


def refusal(url: str, failure: psycopg.OperationalError) -> str | None:
    """Return the sentence about a login that is refused; None if trying again may help."""
    if isinstance(failure, errors.ConnectionTimeout):
        return None
    conn = failure.pgconn
    if conn is not None and conn.needs_password:
        return _sentence(url, "it asks for a password, and OMEGA_DATABASE_URL has none")
    codes = codes_of_a_try(url)
    if codes is None or POOLERS in codes:
        codes = [code for words, code in WORDS.items() if words in str(failure)]
    if not codes or not REFUSED.issuperset(codes):
        return None
    why = {
        PASSWORD: "it refuses the password of OMEGA_DATABASE_URL",
        DATABASE: f"it has no database {_name(url, 'dbname')}",
        RIGHT: f"the login may not connect to the database {_name(url, 'dbname')}",
    }
    return _sentence(url, why.get(codes[-1], _last_line(failure)))


def codes_of_a_try(url: str) -> list[str] | None:
    """Try to connect; return the SQLSTATEs with which servers refused, None if none can be seen."""
    if pq.PGconn.ping(url.encode()) != pq.Ping.OK:  # away or starting: the usual case of an outage
        return []
    if not hasattr(os, "memfd_create"):
        return None
    trace = os.memfd_create("omega-trace")
    try:
        conn = pq.PGconn.connect_start(url.encode())
        try:
            conn.trace(trace)
            _poll(conn)
            conn.untrace()  # which writes what libpq has kept back
        except psycopg.NotSupportedError:  # a libpq from before version 14
            return None
        finally:
            conn.finish()
        return [code.decode() for code in CODE.findall(os.pread(trace, TRACE_BYTES_MAX, 0))]
    finally:
        os.close(trace)


def _poll(conn: pq.abc.PGconn) -> None:
    """Go on connecting until it has succeeded or failed, or the server is silent."""
    step: int = pq.PollingStatus.WRITING
    with suppress(psycopg.OperationalError):  # a connection that failed has no socket
        while step in {pq.PollingStatus.READING, pq.PollingStatus.WRITING}:
            reads = [conn.socket] if step == pq.PollingStatus.READING else []
            writes = [] if reads else [conn.socket]
            if not any(select(reads, writes, [], TRY_S)):
                return
            step = conn.connect_poll()


def _sentence(url: str, why: str) -> str:
    return f"the server does not let {_name(url, 'user')} in: {why}"


def _name(url: str, part: str) -> str:
    """Return the user or the database; a login without names of its own has the system's."""
    named = conninfo_to_dict(url)
    return str(named.get(part) or named.get("user") or "the login")


def _last_line(failure: psycopg.OperationalError) -> str:
    """Return what the server said, without where it is and how grave it takes it to be."""
    lines = str(failure).strip().splitlines() or [type(failure).__name__]
    return lines[-1].rpartition("FATAL:")[2].strip()
