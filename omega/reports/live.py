"""What a page shows of a cell each second, as JSON types.

Goal     Compute once what is shown, from what a watcher reads anew and what it knows.
Promise  Figures of schedulers are those of `omega status`, from the same functions. The history is
         bounded.
Source   CellReport; omega/reports/processes.py; docs/decisions/0052-the-page.md.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Final

import numpy as np

from omega.cell.view import View
from omega.lifecycle.states import State
from omega.model.arrays import any_kind
from omega.model.machines import DEAD, MachineState
from omega.model.outcomes import Verdict
from omega.model.quotas import QuotaUse
from omega.model.resources import COLUMNS
from omega.reports.cell import CellReport, shares
from omega.reports.conflicts import BY_OTHERS, WINDOW_S, ConflictTally
from omega.reports.processes import (
    NOT_SCHEDULERS,
    SchedulerLine,
    is_alive,
    lines_of,
    total_line,
)
from omega.reports.queue import by_reason, by_state
from omega.reports.quotas import NAMES, amount, row_of, used_of
from omega.store.status import CellUse, ProcessReport
from omega.store.watching import QueueLine

NO_USE: Final = CellUse(
    machines_by_state={},
    stranded=0,
    capacity=dict.fromkeys(COLUMNS, 0),
    used=dict.fromkeys(COLUMNS, 0),
    jobs_by_state={},
    parked_by_reason={},
    live_allocations=0,
)
WAITING: Final = (State.PENDING, State.PLANNING, State.PARKED)
POINTS_MAX: Final = 600
"""Of the history: ten minutes, a point a second."""
DIGITS: Final = 4
"""Of shares and fractions."""


def use_of(use: CellUse, queue: Sequence[QueueLine], view: View) -> CellUse:
    """Return the use of a cell with machines as a view has them, and the queue as it was summed.

    Sums of the store over all machines and jobs take longer, so they may be some seconds old.
    """
    here = view.state != MachineState.GONE
    used = view.capacity - view.free
    waiting = {state: by_state(queue)[state] for state in WAITING}
    counted = np.bincount(view.state, minlength=len(MachineState)).tolist()
    return replace(
        use,
        machines_by_state={state: counted[state] for state in MachineState if counted[state]},
        stranded=int(np.count_nonzero(np.isin(view.state, DEAD) & any_kind(used > 0))),
        capacity=dict(zip(COLUMNS, view.capacity[here].sum(axis=0).tolist(), strict=True)),
        used=dict(zip(COLUMNS, used[here].sum(axis=0).tolist(), strict=True)),
        jobs_by_state={**use.jobs_by_state, **waiting},
        parked_by_reason=by_reason(queue),
    )


def room_of(view: View) -> dict[str, int]:
    """Return what is free on the machines that take claims, by kind."""
    room = view.open.astype(np.int64) @ view.free
    return dict(zip(COLUMNS, room.tolist(), strict=True))


def schedulers_row(reports: Sequence[ProcessReport]) -> dict[str, object]:
    """Return the figures of each scheduler over the last seconds, and of all as if of one."""
    ours = sorted(
        (it for it in reports if it.kind not in NOT_SCHEDULERS),
        key=lambda it: (it.kind, it.replica),
    )
    heard = [it.facts for it in ours if is_alive(it)]
    return {
        "rows": [
            {
                "kind": report.kind,
                "replica": report.replica,
                "pid": report.pid,
                "started_ms": report.started_ms,
                "seen_ms_ago": report.seen_ms_ago,
                **_figures(line),
            }
            for report, line in zip(ours, lines_of(ours), strict=True)
        ],
        "all": _figures(total_line(heard)) if heard else None,
        "nodes": len([it for it in reports if it.kind in NOT_SCHEDULERS and is_alive(it)]),
    }


def _figures(line: SchedulerLine) -> dict[str, object]:
    told = {**asdict(line), "state": line.state.value}
    return {
        name: round(value, DIGITS) if isinstance(value, float) else value
        for name, value in told.items()
    }


def point_of(report: CellReport, at_ms: int) -> dict[str, object]:
    """Return one point of the history: shares by kind, the queue, and the schedulers' figures."""
    lines = lines_of([it for it in report.reports if is_alive(it)])
    heard = [it.facts for it in report.reports if it.kind not in NOT_SCHEDULERS and is_alive(it)]
    total = total_line(heard) if heard else None
    parts = {name: share.part for name, share in shares(report.use).items()}
    return {
        "at_ms": at_ms,
        **{f"use_{name}": _rounded(part) for name, part in parts.items()},
        "waiting": report.use.jobs_waiting,
        "parked": sum(report.use.parked_by_reason.values()),
        "conflict_fraction": _rounded(total.conflict_fraction if total else None),
        "tasks_per_second": _rounded(total.tasks_per_second if total else None),
        "schedulers": {
            line.name: [_rounded(line.busyness), _rounded(line.view_age_s)] for line in lines
        },
    }


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, DIGITS)


class History:
    """The last points, oldest first."""

    def __init__(self) -> None:
        self._points: deque[dict[str, object]] = deque(maxlen=POINTS_MAX)

    def add(self, point: dict[str, object]) -> None:
        """Add a point; the oldest is dropped if there are too many."""
        self._points.append(point)

    def row(self) -> list[dict[str, object]]:
        """Return the points as JSON types."""
        return list(self._points)


def conflicts_row(tally: ConflictTally, now_s: float) -> dict[str, object]:
    """Return who refused whom, of late and in all, as JSON types."""
    recent, total = tally.recent(now_s), tally.total()
    return {
        "window_s": WINDOW_S,
        "recent": {"replicas": recent.row(), "kinds": recent.by_kind().row()},
        "total": {"replicas": total.row(), "kinds": total.by_kind().row()},
        "by_others": [verdict.name.lower() for verdict in BY_OTHERS],
        "verdicts": [it.name.lower() for it in Verdict if it is not Verdict.ACCEPTED],
        "transactions": sum(tally.transactions.values()),
        "conflicted": sum(tally.conflicted.values()),
        "missed": tally.missed,
    }


def quotas_row(quotas: Sequence[QuotaUse]) -> list[dict[str, object]]:
    """Return the quotas as JSON types, with what people read of each budget."""
    return [
        {
            **row_of(use),
            "budgets": [
                {
                    "name": NAMES[budget],
                    "limit": amount(budget, limit),
                    "used": amount(budget, used_of(use).get(budget)),
                    "left": amount(budget, use.left[budget]),
                    "part": _rounded((limit - use.left[budget]) / limit if limit else None),
                }
                for budget, limit in use.quota.limits.items()
            ],
        }
        for use in quotas
    ]
