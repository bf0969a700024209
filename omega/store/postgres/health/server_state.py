"""What a server shows of itself to anybody, read once.

Goal     All that a diagnosis needs, in one value, so that it can be a pure function.
Promise  Reads catalogues and statistics alone, which every login may; what it may not see is
         counted, and what it may not time is left out. Nothing is left behind: the commits that are
         timed write to the log alone.
Source   PostgreSQL's manual: "System Catalogs", "The Cumulative Statistics System", and
         pg_logical_emit_message, whose message nobody but the log's readers ever meets.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from omega.clock import Clock
from omega.errors import NotAllowed
from omega.store.postgres.connection import Link

SETTINGS: Final = (
    "autovacuum",
    "autovacuum_naptime",
    "checkpoint_timeout",
    "fsync",
    "full_page_writes",
    "jit",
    "max_connections",
    "max_wal_size",
    "reserved_connections",
    "server_encoding",
    "server_version",
    "server_version_num",
    "shared_buffers",
    "superuser_reserved_connections",
    "synchronous_commit",
    "track_counts",
)
UNITS: Final = {"8kB": 8_192, "kB": 2**10, "MB": 2**20, "min": 60, "s": 1, "ms": 0.001, "B": 1}
"""Of settings: bytes and seconds."""
ROUND_TRIPS: Final = 30
COMMITS: Final = 10

TABLES: Final = """
    SELECT c.relname::text AS name,
           coalesce(s.n_live_tup, 0)::bigint AS live, coalesce(s.n_dead_tup, 0)::bigint AS dead,
           coalesce(s.n_tup_upd, 0)::bigint AS updated,
           coalesce(s.n_tup_hot_upd, 0)::bigint AS hot,
           greatest(c.reltuples, 0)::bigint AS estimate,
           pg_table_size(c.oid)::bigint AS heap_bytes,
           pg_total_relation_size(c.oid)::bigint AS bytes,
           coalesce(c.reloptions, '{}')::text[] AS options
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
     WHERE n.nspname = 'omega' AND c.relkind = 'r'
"""
SESSIONS: Final = """
    SELECT pid, coalesce(usename::text, '') AS login, coalesce(application_name, '') AS program,
           coalesce(state, '') AS state, backend_xid IS NOT NULL AS writes,
           (extract(epoch FROM clock_timestamp() - xact_start))::float8 AS open_s
      FROM pg_stat_activity
     WHERE pid <> pg_backend_pid() AND xact_start IS NOT NULL
       AND (backend_xid IS NOT NULL
            OR backend_xmin IS NOT NULL AND datname = current_database())
       AND backend_type NOT IN ('autovacuum worker', 'walsender')
     ORDER BY xact_start
"""
CENSUS: Final = """
    SELECT count(*) FILTER (WHERE query = '<insufficient privilege>') AS hidden,
           count(*) FILTER (WHERE starts_with(application_name, 'omega')) AS ours,
           (SELECT sum(numbackends) FROM pg_stat_database)::bigint AS everybody
      FROM pg_stat_activity
"""
HORIZON: Final = """
    SELECT pg_snapshot_xmax(s)::text::bigint - pg_snapshot_xmin(s)::text::bigint
      FROM pg_current_snapshot() AS s
"""
PREPARED: Final = """
    SELECT gid::text AS name, (extract(epoch FROM clock_timestamp() - prepared))::float8 AS open_s
      FROM pg_prepared_xacts ORDER BY prepared
"""
SLOTS: Final = "SELECT slot_name::text FROM pg_replication_slots WHERE NOT active ORDER BY 1"
ROLE_SETTINGS: Final = """
    SELECT coalesce(r.rolname::text, '') AS role, coalesce(d.datname::text, '') AS database, c.entry
      FROM pg_db_role_setting s LEFT JOIN pg_roles r ON r.oid = s.setrole
      LEFT JOIN pg_database d ON d.oid = s.setdatabase, unnest(s.setconfig) AS c (entry)
     WHERE s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
     ORDER BY 1, 2, 3
"""
CHECKPOINTS: Final = "SELECT num_timed, num_requested FROM pg_stat_checkpointer"
CHECKPOINTS_BEFORE_17: Final = "SELECT checkpoints_timed, checkpoints_req FROM pg_stat_bgwriter"
DURABLE_COMMIT: Final = """
    SELECT set_config('synchronous_commit', 'on', true),
           pg_logical_emit_message(true, 'omega', '')::text
"""
"""Waits for the disk as a commit does, whatever the server's default is."""
SEVENTEEN: Final = 170_000


@dataclass(frozen=True)
class Setting:
    """A setting as our own connections see it."""

    value: str
    unit: str = ""
    source: str = "default"

    @property
    def number(self) -> float:
        """Its value in bytes or seconds, or what is counted."""
        return float(self.value) * UNITS.get(self.unit, 1)

    @property
    def on(self) -> bool:
        """Whether it is switched on."""
        return self.value != "off"


@dataclass(frozen=True)
class TableState:
    """One of our tables."""

    name: str
    live: int
    dead: int
    updated: int
    hot: int
    """Updates that touched no index, of all."""
    estimate: int
    heap_bytes: int
    bytes: int
    options: Sequence[str]

    @property
    def rows(self) -> int:
        """Rows that live, as far as the statistics know."""
        return max(self.live, self.estimate)


@dataclass(frozen=True)
class Session:
    """A transaction of somebody else that is open and holds something back."""

    pid: int
    login: str
    program: str
    state: str
    writes: bool
    open_s: float


@dataclass(frozen=True)
class RoleSetting:
    """A setting that a role or a database brings along."""

    role: str
    database: str
    entry: str

    @property
    def name(self) -> str:
        """Name of the setting."""
        return self.entry.partition("=")[0]


@dataclass(frozen=True)
class ServerState:
    """All of it."""

    login: str
    database: str
    is_standby: bool
    settings: Mapping[str, Setting]
    tables: Mapping[str, TableState]
    sessions: tuple[Session, ...]
    hidden: int
    """Sessions of which this login sees no more than that they are there."""
    ours: int
    """Connections of omega's own processes."""
    connections: int
    behind: int
    """Transactions begun since the oldest that is still open began."""
    prepared: tuple[tuple[str, float], ...]
    """Name of each prepared transaction, and for how many seconds it has been so."""
    idle_slots: tuple[str, ...]
    role_settings: tuple[RoleSetting, ...]
    checkpoints_timed: int
    checkpoints_requested: int
    round_trips_s: tuple[float, ...]
    commits_s: tuple[float, ...]
    """None on a standby, nor for a login that may not write to the log."""

    def setting(self, name: str) -> Setting:
        """Return a setting; an older server may lack one of the few that count from nothing."""
        return self.settings.get(name, Setting("0"))


def read_server_state(link: Link, clock: Clock) -> ServerState:
    """Look at everything once."""
    ((login, database, is_standby),) = link.call(
        "SELECT current_user::text, current_database()::text, pg_is_in_recovery()"
    )
    settings = {
        name: Setting(value, unit, source)
        for name, value, unit, source in link.call(
            "SELECT name, setting, coalesce(unit, ''), source FROM pg_settings"
            " WHERE name = ANY (%s)",
            (list(SETTINGS),),
        )
    }
    ((hidden, ours, everybody),) = link.call(CENSUS)
    new = settings["server_version_num"].number >= SEVENTEEN
    ((timed, requested),) = link.call(CHECKPOINTS if new else CHECKPOINTS_BEFORE_17)
    ((behind,),) = link.call(HORIZON)
    tables = [TableState(*row) for row in link.call(TABLES)]
    return ServerState(
        login=login,
        database=database,
        is_standby=is_standby,
        settings=settings,
        tables={table.name: table for table in tables},
        sessions=tuple(Session(*row) for row in link.call(SESSIONS)),
        hidden=hidden,
        ours=ours,
        connections=everybody,
        behind=behind,
        prepared=tuple((name, open_s) for name, open_s in link.call(PREPARED)),
        idle_slots=tuple(name for (name,) in link.call(SLOTS)),
        role_settings=tuple(RoleSetting(*row) for row in link.call(ROLE_SETTINGS)),
        checkpoints_timed=timed,
        checkpoints_requested=requested,
        round_trips_s=_times(link, clock, "SELECT 1", ROUND_TRIPS),
        commits_s=() if is_standby else _commits(link, clock),
    )


def _commits(link: Link, clock: Clock) -> tuple[float, ...]:
    try:
        return _times(link, clock, DURABLE_COMMIT, COMMITS)
    except NotAllowed:  # omega.store.postgres.restrictions leaves this function to the cell's owner
        return ()


def _times(link: Link, clock: Clock, query: str, number: int) -> tuple[float, ...]:
    link.call(query)  # once for the plan
    times = []
    for _ in range(number):
        began = clock.now()
        link.call(query)
        times.append(clock.now() - began)
    return tuple(times)
