"""What the copies of a server mean for a cell: whether it survives its server.

Goal     Report a standby, an archive or a promotion that would lose commits, or stops them.
Promise  Each check is a pure function of the server's state.
Source   PostgreSQL's manual, "High Availability" and "Continuous Archiving";
         docs/decisions/0049-incarnations.md.
"""

from typing import Final

from omega.store.postgres.health.copies import Host, required
from omega.store.postgres.health.findings import Finding, Severity, good
from omega.store.postgres.health.server_state import ServerState
from omega.store.postgres.health.settings import RELOAD

WHAT: Final = "synchronous standbys"


def synchronous_standbys(server: ServerState) -> Finding:
    """Commits wait for as many standbys as are asked for."""
    standbys = server.copies.standbys
    wanted = required(server.setting("synchronous_standby_names").value)
    if server.is_standby or wanted == 0:
        return good(WHAT, f"none asked for, {len(standbys)} standbys connected")
    there = sum(one.is_synchronous for one in standbys)
    unknown = sum(one.sync_state is None for one in standbys)
    if there >= wanted:
        return good(WHAT, f"{there} connected, {wanted} asked for")
    if there + unknown >= wanted:
        return Finding(
            WHAT,
            Severity.HIDDEN,
            f"{len(standbys)} standbys connected, {wanted} asked for; {server.login} may not see"
            " which are synchronous",
            "if one is missing, nothing is committed",
            f"GRANT pg_read_all_stats TO {server.login}",
        )
    return Finding(
        WHAT,
        Severity.UNSAFE,
        f"{there} connected, {wanted} asked for",
        "every commit waits for them, whatever its timeout: nothing is committed until they are"
        " back",
        "start the standby; or, if a failover may lose commits: ALTER SYSTEM SET"
        f" synchronous_standby_names = ''; {RELOAD}",
    )


def archive(server: ServerState) -> Finding:
    """The log that restores to a point in time need."""
    state = server.copies.archive
    if not server.setting("archive_mode").on:
        return good("archive", "off: restores are to the time of a base backup")
    if not state.is_failing:
        ago = state.archived_s_ago
        return good("archive", "empty" if ago is None else f"last file {ago:,.0f} s ago")
    return Finding(
        "archive",
        Severity.UNSAFE,
        f"{state.failed_file} could not be archived; {state.failed:,} tries have failed",
        "a restore ends before that file, and the log is kept until the disk is full and nothing"
        " commits",
        "read the server's log for what archive_command said; afterwards: SELECT pg_switch_wal()",
    )


def hosts(server: ServerState) -> Finding:
    """Of several hosts one takes writes, and the others repeat what it does."""
    named = server.copies.hosts
    if len(named) < 2:  # noqa: PLR2004 - one host has no other
        return good("hosts of the URL", "one")
    heard = [(host, host.state) for host in named if host.state is not None]
    primaries = [host for host, state in heard if not state.is_standby]
    if len({state.system for _, state in heard}) > 1:
        return Finding(
            "hosts of the URL",
            Severity.UNSAFE,
            _told(named),
            "they are no copies of each other: processes that reach the one and processes that"
            " reach the other work on different cells",
            "leave all but the copies of one server out of OMEGA_DATABASE_URL",
        )
    if len(primaries) > 1:
        return Finding(
            "hosts of the URL",
            Severity.UNSAFE,
            _told(named),
            "split brain: each grants room that the other has given away, and what the one"
            " acknowledges is lost when it is rejoined to the other",
            "stop the one that is to go, as a rule that of the lower timeline:"
            " pg_ctl -m immediate stop; then pg_rewind, and start it as a standby of the other",
        )
    return _quiet(named, primaries)


def _quiet(named: tuple[Host, ...], primaries: list[Host]) -> Finding:
    """Return what is to be said of hosts of which one at most takes writes."""
    away = [host.name for host in named if host.state is None]
    alone = [host.name for host in named if host.state is not None and _receives_nothing(host)]
    if primaries and not away and not alone:
        return good("hosts of the URL", _told(named))
    return Finding(
        "hosts of the URL",
        Severity.LOOK,
        _told(named),
        "no commit is taken" if not primaries else "a failover would find no standby there",
        "promote one, when the primary is sure to be gone: SELECT pg_promote()"
        if not primaries
        else f"look at {', '.join(away or alone)}",
    )


def _receives_nothing(host: Host) -> bool:
    return host.state is not None and host.state.is_standby and host.state.receivers == 0


def _told(named: tuple[Host, ...]) -> str:
    return ", ".join(f"{host.name} {_what(host)}" for host in named)


def _what(host: Host) -> str:
    if host.state is None:
        return "does not answer"
    if not host.state.is_standby:
        return f"takes writes (timeline {host.state.timeline})"
    return "is a standby that receives nothing" if _receives_nothing(host) else "is a standby"
