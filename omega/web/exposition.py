"""The answer to Prometheus.

Goal     Export what the page shows, from the same values.
Promise  A scrape reads nothing from the database: it has what the watcher saw last.
Source   omega/reports/exposition.py; Prometheus' text format.
"""

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client import CollectorRegistry, generate_latest

from omega.reports.conflicts import ConflictTally
from omega.reports.exposition import CellCollector, scheduler_collector
from omega.web.watcher import Seen

__all__ = ["CONTENT_TYPE", "exposition"]


def exposition(seen: Seen, tally: ConflictTally, *, streams: int) -> bytes:
    """Return all metrics as text."""
    registry = CollectorRegistry()
    registry.register(
        CellCollector(seen.report, seen.queue, tally, is_up=seen.is_up, streams=streams)
    )
    registry.register(scheduler_collector(() if seen.report is None else seen.report.reports))
    return generate_latest(registry)
