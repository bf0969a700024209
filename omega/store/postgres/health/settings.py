"""What a server's settings mean for a cell.

Goal     Report the settings that cost safety or speed, and no others.
Promise  Each check is a pure function of the server's state, for one setting. The statement to run
         undoes the setting where it was made: for the server, the database or the role.
Source   PostgreSQL's manual, chapter "Server Configuration"; omega/store/packaged_postgres.py has
         the same settings.
"""

from collections.abc import Callable
from typing import Final

from psycopg import sql

from omega.store.postgres.health.findings import Finding, Severity, good
from omega.store.postgres.health.server_state import ServerState

OLDEST: Final = 150_000
"""The oldest version that the functions are tested on."""
HOT: Final = ("machine", "job", "quota_shard", "allocation")
"""Tables that commits read and write."""
MIB: Final = 2**20
MAX_WAL_MIB: Final = 1_024
CHECKPOINT_S: Final = 300
NAPTIME_S: Final = 60
REQUESTED_MIN: Final = 20
FREE_MIN: Final = 10
RELOAD: Final = "SELECT pg_reload_conf()"
IN_OUR_WAY: Final = frozenset(
    {
        "default_transaction_read_only",
        "enable_hashjoin",
        "enable_indexscan",
        "enable_nestloop",
        "idle_session_timeout",
        "plan_cache_mode",
        "synchronous_commit",
        "transaction_timeout",
    }
)
"""Settings of roles and databases that Omega's connections do not set for themselves."""


def version(server: ServerState) -> Finding:
    """The functions are written for Postgres 15 to 18."""
    said = server.setting("server_version").value
    if server.setting("server_version_num").number >= OLDEST:
        return good("version", said)
    return Finding(
        "version",
        Severity.UNSAFE,
        said,
        "the functions need Postgres 15 or newer, and are tested on no older one",
        "pg_upgrade, or a newer server in OMEGA_DATABASE_URL",
    )


def encoding(server: ServerState) -> Finding:
    """Only UTF8 keeps names and jobs as they were written."""
    said = server.setting("server_encoding").value
    if said == "UTF8":
        return good("encoding", said)
    return Finding(
        "encoding",
        Severity.UNSAFE,
        said,
        "names and jobs cannot be kept as they were written; a cell is refused here",
        "CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0",
    )


def fsync(server: ServerState) -> Finding:
    """Without fsync a commit may not be on the disk when it is reported."""
    return _on(
        server,
        "fsync",
        Severity.UNSAFE,
        "after a power failure the tables can be garbage, not only old: machines oversold, "
        "claims lost that were granted",
    )


def full_page_writes(server: ServerState) -> Finding:
    """Without full_page_writes a page that is half written in a crash stays so."""
    return _on(
        server,
        "full_page_writes",
        Severity.UNSAFE,
        "a page that is half written when the power fails stays torn, and its machines with it",
    )


def synchronous_commit(server: ServerState) -> Finding:
    """Off is a valid choice; the finding says what it gains and what it risks."""
    return _on(
        server,
        "synchronous_commit",
        Severity.LOOK,
        "a choice: small commits no longer wait for the disk, but a crash of the server forgets"
        " those of the last moments, which schedulers and nodes believe granted. What is left is a"
        " sound cell",
    )


def shared_buffers(server: ServerState) -> Finding:
    """The tables that commits read and write should fit into shared_buffers."""
    has = server.setting("shared_buffers").number
    hot = sum(server.tables[name].bytes for name in HOT if name in server.tables)
    found = f"{has / MIB:,.0f} MiB, for {hot / MIB:,.0f} MiB that commits touch"
    if hot <= 0.75 * has:
        return good("shared_buffers", found)
    wanted = 128
    while wanted * MIB < 2 * hot:
        wanted *= 2
    return Finding(
        "shared_buffers",
        Severity.SLOW,
        found,
        f"the tables {', '.join(HOT)} do not stay in memory: commits read them again and again",
        f"ALTER SYSTEM SET shared_buffers = '{wanted}MB', then restart the server",
    )


def max_connections(server: ServerState) -> Finding:
    """Each scheduler has two connections; while all start again, there are twice as many."""
    reserved = ("superuser_reserved_connections", "reserved_connections")
    most = int(server.setting("max_connections").number)
    free = most - int(sum(server.setting(name).number for name in reserved)) - server.connections
    found = f"{most}; {server.connections} in use, {server.ours} of them omega's, {free} free"
    if free >= max(FREE_MIN, server.ours):
        return good("max_connections", found)
    return Finding(
        "max_connections",
        Severity.LOOK,
        found,
        "a scheduler holds two connections; one that finds none waits, its leases run out, and"
        " others plan its jobs again",
        f"ALTER SYSTEM SET max_connections = {max(100, 2 * most)}, then restart the server",
    )


def max_wal_size(server: ServerState) -> Finding:
    """Checkpoints should come by time, not because the log is full."""
    return _at_least(server, "max_wal_size", MAX_WAL_MIB * MIB, "2GB", MIB, "MiB")


def checkpoint_timeout(server: ServerState) -> Finding:
    """After each checkpoint every page that changes is written to the log as a whole."""
    return _at_least(server, "checkpoint_timeout", CHECKPOINT_S, "15min", 1, "s")


def checkpoints(server: ServerState) -> Finding:
    """Compare the checkpoints that came by time with those that were requested."""
    timed, requested = server.checkpoints_timed, server.checkpoints_requested
    found = f"{timed:,} by the clock, {requested:,} asked for"
    if requested <= max(timed, REQUESTED_MIN):
        return good("checkpoints", found)
    return Finding(
        "checkpoints",
        Severity.LOOK,
        found,
        "most came because the log was full (or a database was dropped), and after each of them"
        " commits write whole pages to the log",
        f"ALTER SYSTEM SET max_wal_size = '4GB'; {RELOAD}",
    )


def jit(server: ServerState) -> Finding:
    """Omega's connections switch jit off; a pooler between may drop that option."""
    if not server.setting("jit").on:
        return good("jit", "off, on our connections")
    return Finding(
        "jit",
        Severity.SLOW,
        "on, although our connections ask for it to be off: a pooler may drop what they ask for",
        "calls take milliseconds; compiling them takes longer than that",
        f"ALTER SYSTEM SET jit = off; {RELOAD}",
    )


def autovacuum(server: ServerState) -> Finding:
    """Only autovacuum removes dead rows."""
    for name in ("autovacuum", "track_counts"):
        if not server.setting(name).on:
            return _on(
                server,
                name,
                Severity.SLOW,
                "dead rows of machine and job stay: every delta and every lease reads past them",
            )
    return good("autovacuum", "on")


def autovacuum_naptime(server: ServerState) -> Finding:
    """How often autovacuum runs."""
    seconds = server.setting("autovacuum_naptime").number
    if seconds <= NAPTIME_S:
        return good("autovacuum_naptime", f"{seconds:,.0f} s")
    return Finding(
        "autovacuum_naptime",
        Severity.LOOK,
        f"{seconds:,.0f} s",
        "machine and job are swept at most that often, and thousands of rows die in a second",
        f"ALTER SYSTEM SET autovacuum_naptime = '5s'; {RELOAD}",
    )


def role_settings(server: ServerState) -> Finding:
    """Omega's connections set timeouts, isolation, jit, search_path; other role settings apply."""
    ours = [one for one in server.role_settings if one.name in IN_OUR_WAY]
    if not ours:
        return good("settings of roles", "none that concern a cell")
    said = [f"{one.entry} for {one.role or 'all'} in {one.database or 'all'}" for one in ours]
    first = ours[0]
    whose = (
        f"ROLE {_named(first.role) if first.role else 'ALL'}"
        f"{f' IN DATABASE {_named(first.database)}' if first.database else ''}"
        if first.role or not first.database
        else f"DATABASE {_named(first.database)}"
    )
    return Finding(
        "settings of roles",
        Severity.LOOK,
        "; ".join(said),
        "whoever logs in so commits under other rules than the rest: slower, less safely, not at"
        " all, or is cut off while idle",
        f"ALTER {whose} RESET {first.name}",
    )


SETTINGS: Final[tuple[Callable[[ServerState], Finding], ...]] = (
    version,
    encoding,
    fsync,
    full_page_writes,
    synchronous_commit,
    shared_buffers,
    max_connections,
    max_wal_size,
    checkpoint_timeout,
    checkpoints,
    jit,
    autovacuum,
    autovacuum_naptime,
    role_settings,
)
"""In the order in which they are shown."""


def _on(server: ServerState, name: str, severity: Severity, why: str) -> Finding:
    setting = server.setting(name)
    if setting.on:
        return good(name, setting.value)
    return Finding(name, severity, setting.value, why, _set(server, name, "on"))


def _at_least(
    server: ServerState, name: str, least: float, better: str, unit: float, letters: str
) -> Finding:
    number = server.setting(name).number
    found = f"{number / unit:,.0f} {letters}"
    if number >= least:
        return good(name, found)
    return Finding(
        name,
        Severity.SLOW,
        found,
        "checkpoints come often, and after each of them commits write whole pages to the log",
        _set(server, name, f"'{better}'"),
    )


def _set(server: ServerState, name: str, value: str) -> str:
    """Return the statement that undoes a setting where it was made."""
    database, role = _named(server.database), _named(server.login)
    match server.setting(name).source:
        case "database":
            return f"ALTER DATABASE {database} RESET {name}"
        case "user":
            return f"ALTER ROLE {role} RESET {name}"
        case "database user":
            return f"ALTER ROLE {role} IN DATABASE {database} RESET {name}"
        case _:
            return f"ALTER SYSTEM SET {name} = {value}; {RELOAD}"


def _named(name: str) -> str:
    return sql.Identifier(name).as_string(None)
