"""One examination of the server that a cell lies on.

Goal     Everything that can be said, worst first.
Promise  Takes no more than a login of any role has; changes nothing.
Source   omega.store.postgres.health.signs, of_settings, of_state.
"""

from contextlib import closing
from typing import Final

from omega.clock import Clock
from omega.store.postgres.connection import Link
from omega.store.postgres.health import of_settings, of_state
from omega.store.postgres.health.findings import Finding, Severity
from omega.store.postgres.health.signs import Signs, read_signs

STATEMENT_TIMEOUT_MS: Final = 30_000


def examine(url: str, clock: Clock, *, open_for_s: float) -> list[Finding]:
    """Look at the server of the URL; `open_for_s` is for how long a transaction may be open."""
    link = Link(url, application_name="omega doctor", statement_timeout_ms=STATEMENT_TIMEOUT_MS)
    with closing(link):
        return diagnose(read_signs(link, clock), open_for_s=open_for_s)


def diagnose(signs: Signs, *, open_for_s: float) -> list[Finding]:
    """Return what the signs mean, worst first, else in the order of the lists."""
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
    ]
    order = list(Severity)
    return sorted(findings, key=lambda finding: order.index(finding.severity))
