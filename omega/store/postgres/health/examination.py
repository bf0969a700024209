"""One examination of the server that a cell is on.

Goal     All findings, worst first.
Promise  The examination changes nothing, and any role's login may do it.
Source   omega.store.postgres.health.server_state, settings, state, survival, logins.
"""

from contextlib import closing
from typing import Final

from omega.clock import Clock
from omega.store.postgres.access import Access, catalogue_connection, read_access
from omega.store.postgres.connection import Link
from omega.store.postgres.health import logins, settings, state, survival
from omega.store.postgres.health.findings import Finding, Severity
from omega.store.postgres.health.server_state import ServerState, read_server_state

STATEMENT_TIMEOUT_MS: Final = 30_000


def examine(url: str, clock: Clock, *, open_for_s: float) -> list[Finding]:
    """Examine the server of the URL; transactions open for more than `open_for_s` are reported."""
    link = Link(url, application_name="omega doctor", statement_timeout_ms=STATEMENT_TIMEOUT_MS)
    with closing(link):
        server = read_server_state(link, clock, url)
    # Not with the link, whose own timeouts hide those of the database.
    with catalogue_connection(url) as connection:
        access = read_access(connection)
    return diagnose(server, access, open_for_s=open_for_s)


def diagnose(server: ServerState, access: Access, *, open_for_s: float) -> list[Finding]:
    """Return all findings, worst first, otherwise in the order of the lists."""
    findings = [
        state.cell(server),
        *(judge(server) for judge in settings.SETTINGS),
        state.vacuuming(server),
        state.dead_rows(server),
        state.heap_only(server),
        state.size_of_machine(server),
        state.history(server),
        state.sessions(server, open_for_s),
        state.prepared(server, open_for_s),
        state.replication_slots(server),
        survival.synchronous_standbys(server),
        survival.archive(server),
        survival.hosts(server),
        state.round_trip(server),
        state.commit(server),
        *(judge(access) for judge in logins.LOGINS),
    ]
    order = list(Severity)
    return sorted(findings, key=lambda finding: order.index(finding.severity))
