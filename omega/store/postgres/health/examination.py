"""One examination of the server that a cell lies on.

Goal     Everything that can be said, worst first.
Promise  Takes no more than a login of any role has; changes nothing.
Source   omega.store.postgres.health.signs, of_settings, of_state, of_logins.
"""

from contextlib import closing
from typing import Final

from omega.clock import Clock
from omega.store.postgres.access import Access, catalogue_connection, read_access
from omega.store.postgres.connection import Link
from omega.store.postgres.health import of_logins, of_settings, of_state
from omega.store.postgres.health.findings import Finding, Severity
from omega.store.postgres.health.signs import Signs, read_signs

STATEMENT_TIMEOUT_MS: Final = 30_000


def examine(url: str, clock: Clock, *, open_for_s: float) -> list[Finding]:
    """Look at the server of the URL; `open_for_s` is for how long a transaction may be open."""
    link = Link(url, application_name="omega doctor", statement_timeout_ms=STATEMENT_TIMEOUT_MS)
    with closing(link):
        signs = read_signs(link, clock)
    # Not by the link, which has timeouts of its own and cannot see those of the database.
    with catalogue_connection(url) as connection:
        access = read_access(connection)
    return diagnose(signs, access, open_for_s=open_for_s)


def diagnose(signs: Signs, access: Access, *, open_for_s: float) -> list[Finding]:
    """Return what it all means, worst first, else in the order of the lists."""
    findings = [
        of_state.cell(signs),
        *(judge(signs) for judge in of_settings.SETTINGS),
        of_state.vacuuming(signs),
        of_state.dead_rows(signs),
        of_state.heap_only(signs),
        of_state.size_of_machine(signs),
        of_state.history(signs),
        of_state.sessions(signs, open_for_s),
        of_state.prepared(signs, open_for_s),
        of_state.replication_slots(signs),
        of_state.round_trip(signs),
        of_state.commit(signs),
        *(judge(access) for judge in of_logins.LOGINS),
    ]
    order = list(Severity)
    return sorted(findings, key=lambda finding: order.index(finding.severity))
