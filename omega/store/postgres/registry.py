"""What processes say of themselves, and the cell in sums.

Goal     Let a screen be drawn from the database alone.
Promise  Reads never wait for commits; a report replaces the one before.
Source   docs/decisions/0005-events.md.
"""

from collections.abc import Mapping

from psycopg.types.json import Jsonb

from omega.lifecycle.states import ParkReason, State
from omega.model.resources import COLUMNS
from omega.store.base import CellUse, ProcessReport
from omega.store.postgres.connection import Link


class PostgresRegistry:
    """The Registry part of the store on Postgres."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def report(self, kind: str, replica: str, *, pid: int, facts: Mapping[str, object]) -> None:
        """Replace what this process said of itself."""
        self._link.call(
            """
            INSERT INTO omega.process (kind, replica, pid, facts) VALUES (%s, %s, %s, %s)
                ON CONFLICT (kind, replica) DO UPDATE
               SET facts = excluded.facts, seen_at = clock_timestamp(), pid = excluded.pid,
                   started_at = CASE WHEN process.pid = excluded.pid THEN process.started_at
                                     ELSE clock_timestamp() END
            """,
            (kind, replica, pid, Jsonb(facts)),
        )

    def reports(self) -> list[ProcessReport]:
        """Return the last report of each process, oldest start first."""
        rows = self._link.call(
            """
            SELECT kind, replica, pid, (extract(epoch FROM started_at) * 1000)::bigint,
                   (extract(epoch FROM clock_timestamp() - seen_at) * 1000)::bigint, facts
              FROM omega.process ORDER BY started_at, kind, replica
            """
        )
        return [ProcessReport(*row) for row in rows]

    def forget(self, kind: str, replica: str) -> None:
        """Remove a process that has ended cleanly."""
        self._link.call(
            "DELETE FROM omega.process WHERE kind = %s AND replica = %s", (kind, replica)
        )

    def use(self) -> CellUse:
        """Sum up the cell and its queue."""
        sums = ", ".join(
            f"coalesce(sum({kind}_{what}), 0)::bigint"
            for what in ("capacity", "used")
            for kind in COLUMNS
        )
        ((machines, opened, *amounts),) = self._link.call(
            f"SELECT count(*), count(*) FILTER (WHERE state = 0), {sums}"
            " FROM omega.machine WHERE state <> 3"
        )
        states = self._link.call("SELECT state, count(*) FROM omega.job GROUP BY state")
        reasons = self._link.call(
            "SELECT park_reason, count(*) FROM omega.job"
            " WHERE state = 'parked' GROUP BY park_reason"
        )
        ((live,),) = self._link.call("SELECT count(*) FROM omega.allocation")
        return CellUse(
            machines=machines,
            open=opened,
            capacity=dict(zip(COLUMNS, amounts[: len(COLUMNS)], strict=True)),
            used=dict(zip(COLUMNS, amounts[len(COLUMNS) :], strict=True)),
            jobs_by_state={State(state): count for state, count in states},
            parked_by_reason={ParkReason(reason): count for reason, count in reasons},
            live_allocations=live,
        )
