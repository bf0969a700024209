"""The reports of processes, and sums over the cell.

Goal     A screen can be drawn from the database alone.
Promise  Reads never wait for commits. A report replaces the one before.
Source   docs/decisions/0005-events.md.
"""

from collections.abc import Mapping

from psycopg.types.json import Jsonb

from omega.lifecycle.states import ParkReason, State
from omega.model.machines import DEAD, MachineState
from omega.model.resources import COLUMNS
from omega.store.postgres.connection import Link
from omega.store.postgres.json_text import an_object
from omega.store.status import CellUse, ProcessReport


class PostgresRegistry:
    """Reports of processes, and sums over the cell."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def report(self, kind: str, replica: str, *, pid: int, facts: Mapping[str, object]) -> None:
        """Replace the report of this process."""
        self._link.call(
            "SELECT omega.report_process(%s, %s, %s, %s)", (kind, replica, pid, Jsonb(facts))
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
        return [
            ProcessReport(kind, replica, pid, started_ms, seen_ms_ago, an_object(facts))
            for kind, replica, pid, started_ms, seen_ms_ago, facts in rows
        ]

    def own_report(self, kind: str, replica: str) -> ProcessReport | None:
        """Return the last report of this process under the caller's login, None without any."""
        rows = self._link.call("SELECT * FROM omega.read_report(%s, %s)", (kind, replica))
        for pid, started_ms, seen_ms_ago, facts in rows:
            return ProcessReport(kind, replica, pid, started_ms, seen_ms_ago, an_object(facts))
        return None

    def forget(self, kind: str, replica: str) -> None:
        """Remove the report of a process that has ended cleanly."""
        self._link.call("SELECT omega.forget_process(%s, %s)", (kind, replica))

    def use(self) -> CellUse:
        """Sum up the cell and its queue."""
        columns = [f"{kind}_{what}" for what in ("capacity", "used") for kind in COLUMNS]
        in_use = " OR ".join(f"{kind}_used > 0" for kind in COLUMNS)
        by_state = self._link.call(
            f"SELECT state, count(*), count(*) FILTER (WHERE {in_use}),"
            f" {', '.join(f'sum({column})::bigint' for column in columns)}"
            " FROM omega.machine GROUP BY state"
        )
        here = [row[3:] for row in by_state if row[0] != MachineState.GONE]
        amounts = [sum(its) for its in zip(*here, strict=True)] or [0] * len(columns)
        states = self._link.call(
            "SELECT state, count(*) FROM omega.job WHERE parent IS NULL GROUP BY state"
        )
        reasons = self._link.call(
            "SELECT park_reason, count(*) FROM omega.job"
            " WHERE state = 'parked' GROUP BY park_reason"
        )
        ((live,),) = self._link.call("SELECT count(*) FROM omega.allocation")
        return CellUse(
            machines_by_state={MachineState(state): number for state, number, *_ in by_state},
            stranded=sum(used for state, _, used, *_ in by_state if state in DEAD),
            capacity=dict(zip(COLUMNS, amounts[: len(COLUMNS)], strict=True)),
            used=dict(zip(COLUMNS, amounts[len(COLUMNS) :], strict=True)),
            jobs_by_state={State(state): count for state, count in states},
            parked_by_reason={ParkReason(reason): count for reason, count in reasons},
            live_allocations=live,
        )
