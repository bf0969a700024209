"""What the state of tables and sessions, and the time of a call, mean for a cell.

Goal     Report what has gone wrong since the settings were made.
Promise  Each check is a pure function of the server's state. A finding says what the login may not
         see, and what it sees instead.
Source   docs/decisions/0006-tables.md, 0011-low-water-marks.md.
"""

from collections.abc import Sequence
from statistics import median
from typing import Final

from omega.store.postgres.column_types import SCHEMA
from omega.store.postgres.health.findings import Finding, Severity, good
from omega.store.postgres.health.server_state import ServerState, Session
from omega.store.postgres.health.settings import HOT, MIB
from omega.store.postgres.tables import metadata

HEAP_ONLY: Final = ("machine", "quota_shard")
"""Tables whose updates should touch no index."""
HISTORY: Final = ("transaction", "ended_task")
DEAD_MIN: Final = 1_000
UPDATES_MIN: Final = 1_000
HOT_SHARE_MIN: Final = 0.8
BYTES_A_MACHINE_MAX: Final = 4_000
"""A new row takes six hundred bytes; half of them are room for updates on its page."""
HEAP_MIN: Final = 4 * MIB
HISTORY_MAX: Final = 10_000_000
BEHIND_MAX: Final = 1_000
NAMED_MAX: Final = 3
"""How many sessions or objects a finding names."""
ROUND_TRIP_LOOK_S: Final = 0.001
ROUND_TRIP_S: Final = 0.005
COMMIT_S: Final = 0.010


def cell(server: ServerState) -> Finding:
    """Check that the database has a cell, and that the server takes writes."""
    if server.is_standby:
        return Finding(
            "server",
            Severity.LOOK,
            "a standby",
            "nothing can be committed on it",
            "name the primary in OMEGA_DATABASE_URL, or pg_promote()",
        )
    if "machine" not in server.tables:
        return Finding(
            "cell",
            Severity.LOOK,
            "none in this database",
            "its tables cannot be looked at, nor what their size asks of the settings",
            "omega db init",
        )
    machines, live = server.tables["machine"].rows, server.tables["allocation"].rows
    return good("cell", f"some {machines:,} machines, {live:,} allocations")


def vacuuming(server: ServerState) -> Finding:
    """Check that the tables have the settings that the migrations gave them."""
    wrong = {
        name: missing
        for name in HOT
        if name in server.tables
        and (missing := sorted(declared(name) - set(server.tables[name].options)))
    }
    off = [
        name
        for name in HOT
        if name in server.tables
        and {"autovacuum_enabled=false", "autovacuum_enabled=off"}
        & set(server.tables[name].options)
    ]
    if off:
        return Finding(
            "autovacuum of tables",
            Severity.SLOW,
            f"off for {', '.join(off)}",
            "dead rows stay: every delta and every lease reads past them",
            f"ALTER TABLE {SCHEMA}.{off[0]} RESET (autovacuum_enabled)",
        )
    if wrong:
        name, missing = next(iter(wrong.items()))
        return Finding(
            "autovacuum of tables",
            Severity.LOOK,
            f"not as migrated for {', '.join(wrong)}",
            "they are swept too late, or leave rows no room to change on their page",
            f"ALTER TABLE {SCHEMA}.{name} SET ({', '.join(missing)})",
        )
    return good("autovacuum of tables", "as migrated")


def declared(name: str) -> set[str]:
    """Return a table's storage options as declared in the schema."""
    given = metadata.tables[f"{SCHEMA}.{name}"].dialect_options["postgresql"]["with"] or {}
    return {f"{option}={value}" for option, value in given.items()}


def dead_rows(server: ServerState) -> Finding:
    """Dead rows, which every scan reads past."""
    tables = [server.tables[name] for name in HOT if name in server.tables]
    bad = [one for one in tables if one.dead >= DEAD_MIN and one.dead > one.live]
    found = ", ".join(
        f"{one.name} {one.dead:,} of {one.live + one.dead:,}" for one in bad or tables
    )
    if not bad:
        return good("dead rows", found or "no tables")
    return Finding(
        "dead rows",
        Severity.SLOW,
        found,
        "every delta scans machine, every lease walks job. If they stay after that, some session or"
        " prepared transaction still needs them",
        "; ".join(f"VACUUM {SCHEMA}.{one.name}" for one in bad),
    )


def heap_only(server: ServerState) -> Finding:
    """Updates that touch no index should be most of all."""
    tables = [server.tables[name] for name in HEAP_ONLY if name in server.tables]
    shares = {one.name: one.hot / one.updated for one in tables if one.updated >= UPDATES_MIN}
    found = ", ".join(f"{name} {share:.0%}" for name, share in shares.items())
    bad = [name for name, share in shares.items() if share < HOT_SHARE_MIN]
    if not bad:
        return good("heap-only updates", found or "too few updates to tell")
    return Finding(
        "heap-only updates",
        Severity.SLOW,
        found,
        "each commit writes indexes, too: somebody made an index on a column that changes, or pages"
        " have no room left",
        f"look for such an index: \\d {SCHEMA}.{bad[0]}; then VACUUM FULL {SCHEMA}.{bad[0]}",
    )


def size_of_machine(server: ServerState) -> Finding:
    """A delta may scan the whole table, including its dead space."""
    table = server.tables.get("machine")
    if table is None:
        return good("size of machine", "no table")
    each = table.heap_bytes / max(1, table.rows)
    found = f"{table.heap_bytes / MIB:,.1f} MiB, {each:,.0f} bytes a machine"
    if table.heap_bytes < HEAP_MIN or each <= BYTES_A_MACHINE_MAX:
        return good("size of machine", found)
    return Finding(
        "size of machine",
        Severity.SLOW,
        found,
        "every delta scans the whole table, and most of it is empty by now",
        f"VACUUM FULL {SCHEMA}.machine (commits wait for a second or two)",
    )


def history(server: ServerState) -> Finding:
    """Records that are kept of commits and of ended tasks."""
    tables = [server.tables[name] for name in HISTORY if name in server.tables]
    found = ", ".join(f"{one.name} {one.rows:,} rows" for one in tables)
    if sum(one.rows for one in tables) < HISTORY_MAX:
        return good("history", found or "no tables")
    return Finding(
        "history",
        Severity.LOOK,
        found,
        "it is kept until somebody says otherwise; backups and omega db verify read all of it",
        "omega db prune --older-than 30d",
    )


def sessions(server: ServerState, open_for_s: float) -> Finding:
    """An open transaction holds back the marks of deltas, and the rows that vacuum may remove."""
    long = [one for one in server.sessions if one.open_s >= open_for_s]
    if long:
        return Finding(
            "open transactions",
            Severity.SLOW,
            "; ".join([*map(_described, long[:NAMED_MAX]), *_more(long)]),
            "until they end, deltas repeat every row that has changed since they began to write,"
            " and no vacuum removes what has died since",
            f"SELECT pg_terminate_backend({long[0].pid}); ALTER ROLE ... SET"
            " idle_in_transaction_session_timeout = '10s'",
        )
    if server.behind > BEHIND_MAX:
        return Finding(
            "open transactions",
            Severity.SLOW,
            f"one has been open while {server.behind:,} others began",
            "until it ends, deltas repeat every row that has changed since it began",
            f"have a superuser, or one with pg_read_all_stats, look: omega db doctor; this login is"
            f" {server.login}",
        )
    found = f"the oldest that writes is {server.behind:,} behind the newest"
    if server.hidden:
        return Finding(
            "open transactions",
            Severity.HIDDEN,
            f"{found}; {server.hidden} sessions are others', and this login may not look at them",
            "one that only reads can keep dead rows from being removed, unseen",
            f"GRANT pg_read_all_stats TO {server.login}",
        )
    return good("open transactions", found)


def prepared(server: ServerState, open_for_s: float) -> Finding:
    """Prepared transactions outlive their sessions, and keep their locks."""
    long = [name for name, open_s in server.prepared if open_s >= open_for_s]
    if not long:
        return good("prepared transactions", f"{len(server.prepared)}")
    return Finding(
        "prepared transactions",
        Severity.SLOW,
        ", ".join(long[:NAMED_MAX]),
        "nobody ends them by themselves: they keep locks, hold back the marks of deltas, and keep"
        " dead rows",
        f"ROLLBACK PREPARED '{long[0].replace(chr(39), 2 * chr(39))}'",
    )


def replication_slots(server: ServerState) -> Finding:
    """An unused slot keeps the log until the disk is full."""
    if not server.idle_slots:
        return good("replication slots", "none unused")
    return Finding(
        "replication slots",
        Severity.LOOK,
        f"unused: {', '.join(server.idle_slots[:NAMED_MAX])}",
        "the log is kept for whoever should read it, until the disk is full and nothing commits",
        f"SELECT pg_drop_replication_slot('{server.idle_slots[0]}')",
    )


def round_trip(server: ServerState) -> Finding:
    """Every commit and every refresh takes one round trip."""
    best, found = _fastest(server.round_trips_s)
    if best <= ROUND_TRIP_LOOK_S:
        return good("round trip", found)
    return Finding(
        "round trip",
        Severity.SLOW if best > ROUND_TRIP_S else Severity.LOOK,
        f"{found}; on one machine it is about 0.1 ms",
        "each commit and each refresh is one round trip, during which views age",
        "run the schedulers nearer to the server, without a proxy between them",
    )


def commit(server: ServerState) -> Finding:
    """How long the disk takes to make a commit durable."""
    if server.is_standby:
        return good("durable commit", "not tried on a standby")
    if server.waits_for_standbys:
        return good("durable commit", "not tried: it would wait for a standby")
    if not server.commits_s:
        return Finding(
            "durable commit",
            Severity.HIDDEN,
            f"{server.login} may not write to the log of the server",
            "how long a commit waits for the disk was not tried",
            "have the cell's owner look: omega db doctor",
        )
    _, found = _fastest(server.commits_s)
    as_a_rule = median(server.commits_s)
    if as_a_rule <= COMMIT_S:
        return good("durable commit", found)
    return Finding(
        "durable commit",
        Severity.SLOW,
        found,
        f"one client commits {1 / as_a_rule:,.0f} times a second at most, and locks rows so long",
        "put pg_wal on a disk with a write cache that survives power failures; or let schedulers"
        " commit more claims together",
    )


def _fastest(times_s: Sequence[float]) -> tuple[float, str]:
    best, middle = min(times_s), median(times_s)
    return best, f"{best * 1_000:.2f} ms at best, {middle * 1_000:.2f} ms as a rule"


def _more(long: Sequence[Session]) -> Sequence[str]:
    return [f"{len(long) - NAMED_MAX} more"] if len(long) > NAMED_MAX else []


def _described(session: Session) -> str:
    whose = " ".join(filter(None, (session.login, session.program)))
    what = "writes" if session.writes else "reads"
    return f"{session.pid} ({whose}) {session.state}, {what}, open for {session.open_s:,.0f} s"
