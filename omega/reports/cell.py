"""The cell in sums, and the report of its state.

Goal     Describe a cell's state by values that a screen, a page or a script can show.
Promise  All device slots count as one resource, named gpu.
Source   ReaderStore.reports, use, notices and quotas.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from omega.metrics.facts import merge
from omega.model.quotas import QuotaUse
from omega.model.resources import Kind
from omega.reports.machines import notices_summary, states_of
from omega.reports.processes import NOT_SCHEDULERS, conflicts_of, is_alive
from omega.reports.quotas import row_of, used_up
from omega.reports.rounds import round_row
from omega.store.protocols import ReaderStore
from omega.store.rounds import LastRound
from omega.store.status import CellUse, Notice, ProcessReport

GPU: Final = "gpu"
"""The name of all device slots together."""


@dataclass(frozen=True)
class Share:
    """How much of one resource is taken."""

    capacity: int
    used: int

    @property
    def part(self) -> float | None:
        """Used amounts divided by capacity; None without capacity."""
        return self.used / self.capacity if self.capacity else None


def shares(use: CellUse) -> dict[str, Share]:
    """Return the use of each resource, with all device slots as one, named gpu."""
    devices = [kind for kind in Kind if kind.is_device]
    plain = {kind.column: _share(use, kind) for kind in Kind if not kind.is_device}
    return {**plain, GPU: _share(use, *devices)}


def allocated(use: CellUse) -> dict[str, float]:
    """Return the share of each kind in use, and `gpu` over all slots; 0 without capacity."""
    each = {kind.column: _share(use, kind) for kind in Kind}
    return {name: round(one.part or 0.0, 6) for name, one in {**each, **shares(use)}.items()}


def _share(use: CellUse, *kinds: Kind) -> Share:
    return Share(
        sum(use.capacity.get(kind.column, 0) for kind in kinds),
        sum(use.used.get(kind.column, 0) for kind in kinds),
    )


@dataclass(frozen=True)
class CellReport:
    """The state of a cell at one moment or nearly so."""

    reports: Sequence[ProcessReport]
    use: CellUse
    notices: Sequence[Notice] = ()
    quotas: Sequence[QuotaUse] = ()
    rounds: Sequence[LastRound] = ()
    now_ms: int = 0
    """By the store's clock."""

    @classmethod
    def read(cls, store: ReaderStore) -> "CellReport":
        """Read the report from a store."""
        return cls(
            store.reports(),
            store.use(),
            store.notices(),
            store.quotas(),
            store.last_rounds(),
            store.now_ms(),
        )

    def rows(self) -> list[dict[str, object]]:
        """Return one row per process, as JSON types."""
        return [
            {
                "kind": report.kind,
                "replica": report.replica,
                "pid": report.pid,
                "started_ms": report.started_ms,
                "seen_ms_ago": report.seen_ms_ago,
                "alive": is_alive(report),
                "facts": dict(report.facts),
            }
            for report in self.reports
        ]

    def summary(self) -> dict[str, object]:
        """Return the cell's use, the queue and the quotas that are used up, as JSON types."""
        use = self.use
        schedulers = merge(
            *(report.facts for report in self.reports if report.kind not in NOT_SCHEDULERS)
        )
        return {
            "machines": use.machines,
            "open": use.open,
            "machines_by_state": states_of(use),
            "stranded": use.stranded,
            "notices": notices_summary(self.notices),
            "live_allocations": use.live_allocations,
            "capacity": dict(use.capacity),
            "used": dict(use.used),
            "allocated": allocated(use),
            "jobs_by_state": {state.value: jobs for state, jobs in use.jobs_by_state.items()},
            "parked_by_reason": {reason.value: n for reason, n in use.parked_by_reason.items()},
            "quotas_used_up": [row_of(quota) for quota, _ in used_up(self.quotas)],
            "rounds": [row for last in self.rounds if (row := round_row(last)) is not None],
            "conflicts": conflicts_of(schedulers),
        }
