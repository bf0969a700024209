"""The copies of a server as far as any login can see them: standbys, the archive, its other hosts.

Goal     Collect what tells whether a cell survives its server, and whether two servers take writes.
Promise  Each host of the URL is asked for itself, with the login of the URL, and for HOST_S at most
         to connect. Nothing is changed.
Source   PostgreSQL's manual: pg_stat_replication, pg_stat_archiver, "System Information Functions".
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import class_row

from omega.store.postgres.connection import Link

HOST_S: Final = 2
"""The least that libpq waits for a connection."""
REQUIRED: Final = re.compile(r"(?:FIRST|ANY)?\s*(\d+)\s*\(", re.IGNORECASE)
STANDBYS: Final = """
    SELECT coalesce(application_name, '') AS name, sync_state FROM pg_stat_replication ORDER BY 1
"""
ARCHIVER: Final = """
    SELECT failed_count::bigint, coalesce(last_failed_wal, ''),
           coalesce(last_failed_time > last_archived_time, last_failed_time IS NOT NULL),
           (extract(epoch FROM clock_timestamp() - last_archived_time))::float8
      FROM pg_stat_archiver
"""
HOST: Final = """
    SELECT pg_is_in_recovery() AS is_standby, s.system_identifier::text AS system,
           CASE WHEN NOT pg_is_in_recovery()
                THEN ('x' || left(pg_walfile_name(pg_current_wal_insert_lsn()), 8))::bit(32)::int
           END AS timeline,
           (SELECT count(*) FROM pg_stat_wal_receiver)::int AS receivers
      FROM pg_control_system() AS s
"""


@dataclass(frozen=True)
class Standby:
    """A connected standby."""

    name: str
    sync_state: str | None
    """None if this login may not see it."""

    @property
    def is_synchronous(self) -> bool:
        """Whether commits wait for it."""
        return self.sync_state in {"sync", "quorum"}


@dataclass(frozen=True)
class Archive:
    """What became of the log that is kept for restores."""

    failed: int = 0
    failed_file: str = ""
    is_failing: bool = False
    """Whether the last try failed."""
    archived_s_ago: float | None = None


@dataclass(frozen=True)
class HostState:
    """One server of those that the URL names."""

    is_standby: bool
    system: str
    """Copies of one server have the same."""
    timeline: int | None
    """A promotion begins a new one; None for a standby."""
    receivers: int
    """How many connections to a primary a standby has: one or none."""


@dataclass(frozen=True)
class Host:
    """One host of the URL."""

    name: str
    state: HostState | None
    """None if it does not answer."""


@dataclass(frozen=True)
class Copies:
    """All that is known of a server's copies."""

    standbys: tuple[Standby, ...] = ()
    archive: Archive = Archive()
    hosts: tuple[Host, ...] = ()
    """In the order of the URL; one if it names only one."""


def required(synchronous_standby_names: str) -> int:
    """Return for how many standbys a commit waits."""
    if not synchronous_standby_names.strip():
        return 0
    number = REQUIRED.match(synchronous_standby_names.strip())
    return int(number.group(1)) if number else 1


def read_copies(link: Link, url: str) -> Copies:
    """Read everything once. Raises as Link.call does."""
    (archive,) = link.call(ARCHIVER)
    return Copies(
        tuple(Standby(*row) for row in link.call(STANDBYS)),
        Archive(*archive),
        read_hosts(url),
    )


def read_hosts(url: str) -> tuple[Host, ...]:
    """Ask each host of a URL what it is; nobody is asked if it names only one."""
    known = conninfo_to_dict(url)
    names = str(known.get("host") or known.get("hostaddr") or "").split(",")
    if len(names) == 1:
        return (Host(names[0], None),)
    return tuple(
        Host(name, _state(_of_one(url, known, at)))
        for at, name in enumerate(_distinct(names, str(known.get("port") or "").split(",")))
    )


def split_brain(hosts: Sequence[Host]) -> str | None:
    """Return, as a sentence, which of these hosts take writes; None if at most one does."""
    rivals = [one.name for one in hosts if one.state is not None and not one.state.is_standby]
    if len(rivals) < 2:  # noqa: PLR2004 - one has no rival
        return None
    return f"split brain: {', '.join(rivals)} take writes; see: omega db doctor"


def _distinct(names: Sequence[str], ports: Sequence[str]) -> list[str]:
    """Return the names, with their ports if several hosts have the same name."""
    if len(set(names)) == len(names) or len(ports) != len(names):
        return list(names)
    return [f"{name}:{port}" for name, port in zip(names, ports, strict=True)]


def _of_one(url: str, known: Mapping[str, object], at: int) -> str:
    """Return the URL of one of several hosts."""
    each = {
        name: parts[at] if len(parts) > 1 else parts[0]
        for name in ("host", "hostaddr", "port")
        if known.get(name) and (parts := str(known[name]).split(","))
    }
    return make_conninfo(url, **each, target_session_attrs="any", connect_timeout=HOST_S)


def _state(url: str) -> HostState | None:
    try:
        with (
            closing(psycopg.connect(url, autocommit=True, tcp_user_timeout=HOST_S * 1_000)) as link,
            link.cursor(row_factory=class_row(HostState)) as cursor,
        ):
            return cursor.execute(HOST.encode()).fetchone()
    except psycopg.Error:
        return None
