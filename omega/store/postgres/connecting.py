"""How connections are opened: what the server is told, and what poolers keep from it.

Goal     One way to a server for all processes, directly or through a pooler.
Promise  What the URL says of connecting wins over what is said here. Where the server does not get
         the settings of a connection, as behind pgbouncer, they have to come with each transaction.
Source   PostgreSQL's manual, "Database Connection Control Functions"; pgbouncer's manual,
         `pool_mode` and `ignore_startup_parameters`; docs/decisions/0050-poolers.md.
"""

from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

import psycopg
from psycopg import IsolationLevel
from psycopg.conninfo import conninfo_to_dict

from omega.errors import NotAllowed
from omega.limits import LIMITS
from omega.store.postgres import refusals
from omega.store.postgres.answered import AnsweredConnection

SEARCH_PATH: Final = "omega,pg_temp"
"""With pg_temp named last, temporary tables, which any login may create, hide none of Omega's."""
SILENCE_S: Final = 5.0
"""How long after the end of its statement's time a server that says nothing counts as gone."""
DEFAULTS: Final = {
    "connect_timeout": 10,
    # A server that answers no packet is given up before its statement's time is over.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
CLIENT_GONE: Final = {
    # By its own defaults a server keeps the session of a client that a network has cut off for two
    # hours, and some dozen cuts later it takes no more connections.
    "tcp_keepalives_idle": 10,
    "tcp_keepalives_interval": 5,
    "tcp_keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""How soon the server is to give up a client that answers no packet; without effect on a socket
file, and behind a pooler, whose clients are the pooler's to watch."""
NO_SETTINGS: Final = "unsupported startup parameter"
"""What pgbouncer says of settings that it cannot pass on, in English only."""
TOKEN: Final = "omega.connection"
"""A setting without effect: a server that has its value has the others of this connection."""


def settings_of(statement_timeout_ms: int) -> dict[str, str]:
    """Return what the server is to apply to our statements."""
    return {
        "statement_timeout": str(statement_timeout_ms),
        "lock_timeout": str(LIMITS.lock_wait_ms_max),
        "jit": "off",
        "max_parallel_workers_per_gather": "0",
        "timezone": "UTC",
        # After waiting for a row a function must see its newest version (0003).
        "default_transaction_isolation": "read committed",
        "search_path": SEARCH_PATH,
    }


def connect(url: str, *, application_name: str, statement_timeout_ms: int) -> AnsweredConnection:
    """Connect; say in the connection whether the server keeps the settings.

    Raises NotAllowed if the server refuses the login, whenever it tries, and psycopg's errors.
    """
    try:
        connection = _connect(url, application_name, settings_of(statement_timeout_ms))
    except psycopg.OperationalError as failure:
        refusal = refusals.refusal(url, failure)
        if refusal is None:
            raise
        raise NotAllowed(refusal) from failure
    if statement_timeout_ms > 0:
        connection.silence_s_max = statement_timeout_ms / 1_000 + SILENCE_S
    if not connection.keeps_settings:
        # The next transaction may be another server's, which has not prepared our statements.
        connection.prepare_threshold = None
        connection.isolation_level = IsolationLevel.READ_COMMITTED
    return connection


def with_settings(statement_timeout_ms: int) -> str:
    """Return the statement that applies the settings to the transaction that it is in."""
    each = (
        f"set_config('{name}', '{value}', true)"
        for name, value in settings_of(statement_timeout_ms).items()
        if name != "default_transaction_isolation"  # which is of the next transaction
    )
    return f"SELECT {', '.join(each)}"


def _connect(url: str, application_name: str, settings: Mapping[str, str]) -> AnsweredConnection:
    known = conninfo_to_dict(url)
    ways: dict[str, Any] = {
        "autocommit": True,
        "application_name": application_name,
        **{name: value for name, value in DEFAULTS.items() if not known.get(name)},
    }
    token = uuid4().hex
    options = " ".join(
        f"-c {name}={value}".replace("read ", r"read\ ")
        for name, value in {**settings, **CLIENT_GONE, TOKEN: token}.items()
    )
    try:
        connection = AnsweredConnection.connect(url, options=options, **ways)
    except psycopg.OperationalError as failure:
        if NO_SETTINGS not in str(failure):
            raise
        # An empty one, because the URL or the environment may have options of its own.
        connection = AnsweredConnection.connect(url, options="", **ways)
        connection.keeps_settings = False
        return connection
    asked = f"SELECT current_setting('{TOKEN}', true)".encode()
    ((has,),) = connection.execute(asked, prepare=False).fetchall()
    connection.keeps_settings = has == token
    return connection
