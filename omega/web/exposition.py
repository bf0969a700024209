"""The answer to Prometheus.

Goal     Export what the page shows, from the same values.
Promise  A scrape reads nothing from the database: it has what the watcher saw last.
Source   omega/reports/exposition.py; Prometheus' text format.
"""

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4 as CONTENT_TYPE
from prometheus_client import CollectorRegistry, generate_latest

from omega.reports.exposition import CellCollector, Exported, scheduler_collector

__all__ = ["CONTENT_TYPE", "exposition"]


def exposition(exported: Exported) -> bytes:
    """Return all metrics as text."""
    registry = CollectorRegistry()
    registry.register(CellCollector(exported))
    registry.register(scheduler_collector(exported.counted))
    return generate_latest(registry)
