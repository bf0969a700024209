"""How old what a standby shows is.

Goal     Whoever reads from a standby knows how far it may be behind.
Promise  The age is of the last commit that the standby has repeated: on a cell at work that is how
         far it is behind, on an idle one it may be up to date.
Source   PostgreSQL's manual, "Recovery Information Functions".
"""

from contextlib import closing
from typing import Final

from omega.store.postgres.connection import Link

STATE: Final = """
    SELECT pg_is_in_recovery(),
           extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8,
           coalesce(pg_last_wal_receive_lsn() - pg_last_wal_replay_lsn(), 0)::bigint
"""


def state_of_standby(url: str, *, statement_timeout_ms: int) -> str:
    """Return, as a sentence, how old the state of the server is. Raises as Link.call does."""
    link = Link(url, application_name="omega reader", statement_timeout_ms=statement_timeout_ms)
    with closing(link):
        ((is_standby, age_s, waiting_bytes),) = link.call(STATE)
    if not is_standby:
        return "read from a server that is no standby"
    seconds = None if age_s is None else f"{max(0.0, age_s):,.1f}"
    age = f"commits up to {seconds} s ago" if seconds else "no commit since it was started"
    behind = f", and {waiting_bytes:,} bytes wait to be repeated" if waiting_bytes > 0 else ""
    return f"read from a standby that has repeated {age}{behind}"
