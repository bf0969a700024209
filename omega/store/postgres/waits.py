"""What a server waits for that says nothing.

Goal     Tell an operator why nothing moves, where the server itself can be asked.
Promise  A look takes ASK_S at most, and never raises. A login sees the waits of its own sessions.
Source   PostgreSQL's manual, "Wait Events of Type IPC" and "Lock".
"""

from contextlib import closing
from typing import Final

import psycopg
from psycopg.conninfo import make_conninfo

ASK_S: Final = 2
"""Seconds; also the least that libpq waits for a connection."""
WAIT: Final = "SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE pid = %s"
CAUSES: Final = {
    "SyncRep": "it waits for its synchronous standby, and commits nothing until that is back",
    "Lock": "it waits for a lock that another transaction holds",
    "IO": "it waits for its disk",
}


def cause_of_wait(url: str, pid: int) -> str | None:
    """Return what a process of the server waits for; None if it cannot be asked or does not wait.

    `pid` is of a session of the same login.
    """
    asking = make_conninfo(url, connect_timeout=ASK_S, tcp_user_timeout=ASK_S * 1_000)
    try:
        with closing(psycopg.connect(asking, autocommit=True)) as other:
            events = other.execute(WAIT, (pid,), prepare=False).fetchone() or ()
    except psycopg.Error:
        return None
    return next((CAUSES[name] for name in reversed(events) if name in CAUSES), None)
