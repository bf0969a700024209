"""Usage in Postgres: what tenants, kinds of schedulers or jobs used over a time.

Goal     Pass the answer of the function on; nothing is decided here.
Promise  One call is one statement on one snapshot. It reads the whole history of ended tasks, and
         all jobs, and locks nothing.
Source   functions/usage.sql; docs/decisions/0056-usage-and-dashboards.md.
"""

from omega.store.holdings import RESOURCES
from omega.store.postgres.connection import Link
from omega.store.usage import Consumer, Usage, UsageBy, Used


class PostgresUsage:
    """What was used, as accounting sees it."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def usage(self, over_ms: int, by: UsageBy) -> Usage:
        """Return what was used in the last so many milliseconds, the largest shares first."""
        rows = self._link.call(
            "SELECT since_ms, until_ms, unknown, oldest_ms, consumers, name, job, tenant,"
            " scheduler, runs, held_us, evicted, lost, attempted, waited_us, waited_longest_us,"
            " unattempted FROM omega.read_usage(%s, %s)",
            (over_ms, by.value),
        )
        since_ms, until_ms, unknown, oldest_ms, consumers, *_ = rows[0]
        used = [
            Used(
                runs=runs,
                held_us=tuple(int(held_us[resource]) for resource in RESOURCES),
                evicted=evicted,
                lost=lost,
                attempted=attempted,
                waited_us=waited_us,
                waited_longest_us=longest_us,
                unattempted=unattempted,
            )
            for *_, runs, held_us, evicted, lost, attempted, waited_us, longest_us, unattempted in (
                rows
            )
        ]
        consumers_of = (Consumer(*row[5:9]) for row in rows[1:])
        return Usage(
            by=by,
            since_ms=since_ms,
            until_ms=until_ms,
            rows=tuple(zip(consumers_of, used[1:], strict=True)),
            total=used[0],
            left_out=consumers - (len(rows) - 1),
            unknown=unknown,
            oldest_ms=oldest_ms,
        )
