"""The reports of processes, kept in memory.

Goal     The registry of a memory store.
Promise  One report is kept for each process, the last one. A new process id is a new start.
Source   ARCHITECTURE.md, the way of a job.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from omega.clock import Clock
from omega.limits import LIMITS
from omega.store.readable import readable_text
from omega.store.status import ProcessReport


@dataclass(frozen=True)
class _Said:
    pid: int
    started_s: float
    seen_s: float
    facts: Mapping[str, object]


class MemoryRegistry:
    """The last report of each process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said: dict[tuple[str, str], _Said] = {}

    def report(self, kind: str, replica: str, *, pid: int, facts: Mapping[str, object]) -> None:
        """Replace the report of this process."""
        told = json.loads(readable_text(facts, bytes_max=LIMITS.facts_bytes_max))
        now_s = self._clock.now()
        before = self._said.get((kind, replica))
        started_s = before.started_s if before is not None and before.pid == pid else now_s
        self._said[kind, replica] = _Said(pid, started_s, now_s, told)

    def reports(self) -> list[ProcessReport]:
        """Return the last report of each process, oldest start first."""
        now_s = self._clock.now()
        by_start = sorted(self._said.items(), key=lambda item: (item[1].started_s, item[0]))
        return [
            ProcessReport(
                kind=kind,
                replica=replica,
                pid=said.pid,
                started_ms=round(said.started_s * 1_000),
                seen_ms_ago=round((now_s - said.seen_s) * 1_000),
                facts=said.facts,
            )
            for (kind, replica), said in by_start
        ]

    def own_report(self, kind: str, replica: str) -> ProcessReport | None:
        """Return the last report of this process, None without any; there are no logins here."""
        named = (each for each in self.reports() if (each.kind, each.replica) == (kind, replica))
        return next(named, None)

    def forget(self, kind: str, replica: str) -> None:
        """Remove the report of a process that has ended cleanly."""
        self._said.pop((kind, replica), None)
