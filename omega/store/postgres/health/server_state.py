"""The state of a server as far as any login can read it, read once.

Goal     Collect all that a diagnosis needs in one value, so that the diagnosis is a pure function.
Promise  Only catalogues and statistics are read, which every login may read. Sessions that the
         login may not see are counted, and what it may not time is left out. Nothing is left in the
         tables: the commits that are timed write only to the log.
Source   PostgreSQL's manual: "System Catalogs", "The Cumulative Statistics System", and
         pg_logical_emit_message, whose messages only readers of the log see.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from omega.clock import Clock
from omega.errors import NotAllowed
from omega.store.postgres.connection import Link
from omega.store.postgres.health.copies import Copies, read_copies, required

SETTINGS: Final = (
    "archive_mode",
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
    "synchronous_standby_names",
    "track_counts",
)
UNITS: Final = {"8kB": 8_192, "kB": 2**10, "MB": 2**20, "min": 60, "s": 1, "ms": 0.001, "B": 1}
"""The factor from a setting's unit to bytes or seconds."""
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
    """A setting as Omega's own connections see it."""

    value: str
    unit: str = ""
    source: str = "default"

    @property
    def number(self) -> float:
        """The value in bytes or seconds, or a plain count."""
        return float(self.value) * UNITS.get(self.unit, 1)

    @property
    def on(self) -> bool:
        """Whether the setting is switched on."""
        return self.value != "off"


@dataclass(frozen=True)
class TableState:
    """The statistics of one of Omega's tables."""

    name: str
    live: int
    dead: int
    updated: int
    hot: int
    """How many of the updates touched no index."""
    estimate: int
    heap_bytes: int
    bytes: int
    options: Sequence[str]

    @property
    def rows(self) -> int:
        """The number of rows, as far as the statistics know it."""
        return max(self.live, self.estimate)


@dataclass(frozen=True)
class Session:
    """Another session with an open transaction that holds back marks or vacuum."""

    pid: int
    login: str
    program: str
    state: str
    writes: bool
    open_s: float


@dataclass(frozen=True)
class RoleSetting:
    """A setting that belongs to a role or a database."""

    role: str
    database: str
    entry: str

    @property
    def name(self) -> str:
        """The name of the setting."""
        return self.entry.partition("=")[0]


@dataclass(frozen=True)
class ServerState:
    """All that the checks of a server read."""

    login: str
    database: str
    is_standby: bool
    settings: Mapping[str, Setting]
    tables: Mapping[str, TableState]
    sessions: tuple[Session, ...]
    hidden: int
    """Other sessions of which this login sees nothing but that they exist."""
    ours: int
    """Connections of Omega's own processes."""
    connections: int
    behind: int
    """How many transactions began after the oldest one that is still open."""
    prepared: tuple[tuple[str, float], ...]
    """The name of each prepared transaction, and the seconds since it was prepared."""
    idle_slots: tuple[str, ...]
    role_settings: tuple[RoleSetting, ...]
    checkpoints_timed: int
    checkpoints_requested: int
    round_trips_s: tuple[float, ...]
    commits_s: tuple[float, ...]
    """Empty on a standby, without a synchronous standby that is asked for, and for a login that may
    not write to the log."""
    copies: Copies

    @property
    def waits_for_standbys(self) -> bool:
        """Whether commits wait for standbys that are not there."""
        return waits_for_standbys(self.settings, self.copies)

    def setting(self, name: str) -> Setting:
        """Return a setting; "0" if an older server lacks it."""
        return self.settings.get(name, Setting("0"))


def waits_for_standbys(settings: Mapping[str, Setting], copies: Copies) -> bool:
    """Return whether commits wait for standbys of which some are not there."""
    names = settings["synchronous_standby_names"].value
    there = sum(one.is_synchronous or one.sync_state is None for one in copies.standbys)
    return there < required(names)


def read_server_state(link: Link, clock: Clock, url: str) -> ServerState:
    """Read everything once. `url` is that of the link."""
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
    copies = read_copies(link, url)
    commits = not is_standby and not waits_for_standbys(settings, copies)
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
        commits_s=_commits(link, clock) if commits else (),
        copies=copies,
    )


def _commits(link: Link, clock: Clock) -> tuple[float, ...]:
    try:
        return _times(link, clock, DURABLE_COMMIT, COMMITS)
    except NotAllowed:  # omega.store.postgres.restrictions reserves it for the cell's owner
        return ()


def _times(link: Link, clock: Clock, query: str, number: int) -> tuple[float, ...]:
    link.call(query)  # once, so that it is planned
    times = []
    for _ in range(number):
        began = clock.now()
        link.call(query)
        times.append(clock.now() - began)
    return tuple(times)
