"""Holdings in Postgres: what jobs held over a time, and which hold room idly.

Goal     Pass the answers of the functions on; nothing is decided here.
Promise  One call is one statement on one snapshot. It reads the whole history of ended tasks, and
         locks nothing.
Source   functions/holdings.sql; docs/decisions/0041-audits.md.
"""

from operator import itemgetter

from omega.model.quotas import QuotaScope
from omega.store.holdings import RESOURCES, Holding, Holdings, IdleCause, IdleJob
from omega.store.postgres.connection import Link


class PostgresHoldings:
    """What jobs hold, as audits see it."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def holdings(self, over_ms: int) -> Holdings:
        """Return what jobs held in the last so many milliseconds, by tenant and kind."""
        rows = self._link.call(
            "SELECT since_ms, until_ms, capacity, unknown, scope, name, holders, runs, held_us"
            " FROM omega.read_holdings(%s)",
            (over_ms,),
        )
        since_ms, until_ms, capacity, unknown, *_ = rows[0]
        held = [row[4:] for row in rows if row[4] is not None]
        by = {scope: [row for row in held if row[0] == scope.value] for scope in QuotaScope}
        return Holdings(
            since_ms=since_ms,
            until_ms=until_ms,
            capacity=tuple(int(capacity[resource]) for resource in RESOURCES),
            by=[
                Holding(scope, name, runs, tuple(int(held_us[it]) for it in RESOURCES))
                for scope, its in by.items()
                for _, name, _, runs, held_us in sorted(its, key=itemgetter(1))
            ],
            left_out={
                scope: rows[0][2] - len(rows)
                for scope, rows in by.items()
                if rows and rows[0][2] > len(rows)
            },
            unknown=unknown,
        )

    def idle_jobs(self, idle_ms: int) -> list[IdleJob]:
        """Return jobs that have held room for so long without getting on, the longest first."""
        rows = self._link.call(
            "SELECT job, name, tenant, scheduler, cause, running, unplaced, since_ms, held"
            " FROM omega.read_idle_jobs(%s)",
            (idle_ms,),
        )
        return [
            IdleJob(
                job=job,
                name=name,
                tenant=tenant,
                scheduler=scheduler,
                cause=IdleCause(cause),
                running=running,
                unplaced=unplaced,
                since_ms=since_ms,
                held=tuple(int(held[it]) for it in RESOURCES),
            )
            for job, name, tenant, scheduler, cause, running, unplaced, since_ms, held in rows
        ]
