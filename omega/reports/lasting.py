"""What schedulers have counted, over the restarts of their processes.

Goal     Export counters that do not fall when a scheduler is killed and started again.
Promise  A replica's counts are those of all its processes that were seen here: of one that has
         ended the last report counts. Replicas are bounded in number, and one that has been silent
         for LISTED_MS is forgotten.
Source   Prometheus' rules for counters; JobReader.reports.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from omega.metrics.facts import merge, number_in
from omega.metrics.prometheus import Reported
from omega.reports.processes import LISTED_MS, NOT_SCHEDULERS, is_alive
from omega.store.status import ProcessReport

REPLICAS_MAX: Final = 1_000
"""Replicas of which counts are kept; later ones are left out."""
PROCESSES_MAX: Final = 4
"""Processes of a replica that are told apart; the counts of older ones are added up."""
NAMES_MAX: Final = 1_000
"""Names of a group of counts of ended processes that are kept."""
LASTING: Final = ("process_s", "totals", "waits", "view_ages")
"""What of a process's facts remains true after its end."""

Facts = Mapping[str, Any]


@dataclass(frozen=True)
class ReplicaCounts:
    """What a replica that lives has counted: facts to be merged, those of ended processes first."""

    kind: str
    replica: str
    facts: Sequence[Facts]


@dataclass(frozen=True)
class Counted:
    """What all schedulers that live have counted."""

    replicas: Sequence[ReplicaCounts] = ()
    left_out: int = 0
    """Replicas that live and are beyond REPLICAS_MAX."""

    def reported(self) -> list[Reported]:
        """Return it in the form that OmegaCollector takes."""
        return [(it.kind, it.replica, merge(*it.facts)) for it in self.replicas]


NOTHING_COUNTED: Final = Counted()


@dataclass
class _Replica:
    """The processes of one replica: two may share its name, and a new one may replace the old."""

    seen_s: float
    past: Facts = field(default_factory=dict)
    processes: dict[tuple[int, int], Facts] = field(default_factory=dict)
    """By process id and start, the last one that was new at the end."""

    def note(self, report: ProcessReport, now_s: float) -> None:
        self.seen_s = now_s
        process = report.pid, report.started_ms
        before = self.processes.get(process, {})
        # In a container every process has the same id, and the start that is reported changes only
        # with the id. A new process has counted for a shorter time, or something less often.
        if _elapsed_s(report.facts) < _elapsed_s(before) or _has_fallen(before, report.facts):
            self._end(before)
        self.processes[process] = report.facts
        while len(self.processes) > PROCESSES_MAX:
            self._end(self.processes.pop(next(iter(self.processes))))

    def facts(self, live: set[tuple[int, int]]) -> tuple[Facts, ...]:
        ended = (_lasting(it) for process, it in self.processes.items() if process not in live)
        return (self.past, *ended, *(self.processes[it] for it in live if it in self.processes))

    def _end(self, facts: Facts) -> None:
        self.past = _bounded(_lasting(merge(self.past, facts)))


class LastingCounts:
    """Keeps the counts of each replica, look by look."""

    def __init__(self) -> None:
        self._replicas: dict[tuple[str, str], _Replica] = {}

    def note(self, reports: Sequence[ProcessReport], now_s: float) -> Counted:
        """Take the reports of now; return what the replicas that live have counted so far."""
        live: dict[tuple[str, str], set[tuple[int, int]]] = {}
        left_out: set[tuple[str, str]] = set()
        for report in reports:
            if report.kind in NOT_SCHEDULERS or not is_alive(report):
                continue
            name = report.kind, report.replica
            if name not in self._replicas and len(self._replicas) >= REPLICAS_MAX:
                left_out.add(name)
                continue
            self._replicas.setdefault(name, _Replica(now_s)).note(report, now_s)
            live.setdefault(name, set()).add((report.pid, report.started_ms))
        for name, replica in list(self._replicas.items()):
            if now_s - replica.seen_s >= LISTED_MS / 1_000:
                del self._replicas[name]
        counts = [
            ReplicaCounts(*name, self._replicas[name].facts(processes))
            for name, processes in live.items()
        ]
        return Counted(counts, len(left_out))


def _elapsed_s(facts: Facts) -> float:
    """Return for how long a process has counted."""
    return number_in(facts, "elapsed_s") or 0.0


def _has_fallen(before: Facts, now: Facts) -> bool:
    """Return whether a total is less than it was."""
    totals, earlier = now.get("totals"), before.get("totals")
    if not isinstance(totals, Mapping) or not isinstance(earlier, Mapping):
        return False
    return any((number_in(totals, it) or 0.0) < (number_in(earlier, it) or 0.0) for it in earlier)


def _bounded(facts: Facts) -> Facts:
    """Return facts with the first NAMES_MAX names of each group: a login may report any."""
    return {
        name: _bounded(dict(islice(part.items(), NAMES_MAX))) if isinstance(part, Mapping) else part
        for name, part in facts.items()
    }


def _lasting(facts: Facts) -> Facts:
    return {name: facts[name] for name in LASTING if name in facts}
