"""What the schedulers of a cell did in a time: from a saved cell, or from a simulation of one.

Goal     Put what happened beside what would have happened, by measures of one definition.
Promise  A measure is None where it is not known. Conflict fractions count jobs in transactions, as
         `omega status` does; waits are exact, of jobs that were submitted in the time.
Source   Omega (EuroSys 2013), section 4; docs/decisions/0055-snapshots-and-what-if.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor
from statistics import fmean
from typing import Any, Final

import numpy as np

from omega.lifecycle.states import State
from omega.metrics.facts import merge, number_in
from omega.store.saved.cell import AT_WORK_MS, PARTS, SavedCell, SavedJob

MS_PER_S: Final = 1_000
MEASURES: Final = (
    *("schedulers", "jobs", "jobs_placed", "jobs_parked", "jobs_not_tried", "claims"),
    *("job_transactions", "job_transactions_conflicted", "conflict_fraction"),
    *("claim_conflict_fraction", "busy", "wait_mean_s", "wait_p90_s"),
)
"""The measures of a kind of scheduler, in the order of documents."""


@dataclass(frozen=True)
class JobSeen:
    """What became of a job that was submitted in the time."""

    wait_s: float | None
    """From submission to the first lease; None before that."""
    is_placed: bool
    """Whether none of its tasks lacks a place."""
    is_parked: bool


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What was judged of a kind of scheduler, in sums."""

    claims: int = 0
    claims_refused: int = 0
    job_transactions: int = 0
    job_transactions_conflicted: int = 0

    @property
    def measures(self) -> dict[str, Any]:
        """The sums but for refused claims, and the two fractions."""
        conflicted = self.job_transactions_conflicted
        return {
            "claims": self.claims,
            "job_transactions": self.job_transactions,
            "job_transactions_conflicted": conflicted,
            "conflict_fraction": _ratio(conflicted, self.job_transactions - conflicted),
            "claim_conflict_fraction": _ratio(self.claims_refused, self.claims),
        }


def measures(
    *, schedulers: int, jobs: Sequence[JobSeen], judged: Judged, busy: float | None
) -> dict[str, Any]:
    """Return the measures of a kind of scheduler, in the order of `MEASURES`."""
    waits = sorted(job.wait_s for job in jobs if job.wait_s is not None)
    told = {
        "schedulers": schedulers,
        "jobs": len(jobs),
        "jobs_placed": sum(job.is_placed for job in jobs),
        "jobs_parked": sum(job.is_parked for job in jobs),
        "jobs_not_tried": len(jobs) - len(waits),
        **judged.measures,
        "busy": busy,
        "wait_mean_s": fmean(waits) if waits else None,
        "wait_p90_s": waits[floor(0.9 * (len(waits) - 1))] if waits else None,
    }
    return {name: told[name] for name in MEASURES}


def kinds_at_work(cell: SavedCell) -> list[str]:
    """Return the kinds of schedulers that committed something, by name."""
    return sorted({one.kind for one in cell.schedulers})


def what_happened(cell: SavedCell) -> dict[str, dict[str, Any]]:
    """Return the measures of each kind of scheduler in the time that was saved, by kind."""
    return {kind: _of_kind(cell, kind) for kind in kinds_at_work(cell)}


def conflict_deviations(cell: SavedCell) -> dict[str, dict[str, float]]:
    """Return the standard deviation of each kind's conflict fraction, as far as it is known.

    What happened, happened once: how much it varies is seen by the parts of its time, whose
    counts are taken for independent (batch means). The fraction is a ratio of sums over the parts.

    Source: Cochran, Sampling Techniques (1977), section 6.4, with an infinite population.
    """
    return {
        kind: {"conflict_fraction": deviation}
        for kind in kinds_at_work(cell)
        if (deviation := _conflict_deviation(cell, kind)) is not None
    }


def _conflict_deviation(cell: SavedCell, kind: str) -> float | None:
    parts = [one.parts for one in cell.schedulers if one.kind == kind]
    if not parts or not all(len(one) == PARTS for one in parts):
        return None
    judged, conflicted = np.array(parts, dtype=np.float64).sum(axis=0).T
    free = judged - conflicted
    if free.sum() <= 0:
        return None
    off = conflicted - free * (conflicted.sum() / free.sum())
    return float(np.sqrt(PARTS / (PARTS - 1) * (off**2).sum()) / free.sum())


def arrived(cell: SavedCell) -> list[SavedJob]:
    """Return the jobs that users submitted in the time that was saved."""
    return [job for job in cell.jobs if job.parent is None and _is_in_time(cell, job.submitted_ms)]


def saved_summary(cell: SavedCell) -> dict[str, Any]:
    """Return what a saved cell holds, in numbers."""
    waiting = (State.PENDING, State.PLANNING, State.PARKED)
    return {
        "taken_ms": cell.taken_ms,
        "begin_ms": cell.begin_ms,
        "past_ms": cell.until_ms - cell.begin_ms,
        "machines": len(cell.machines),
        "tasks_running": len(cell.running),
        "jobs_unfinished": sum(job.goes_on for job in cell.jobs),
        "jobs_waiting": sum(job.state in waiting for job in cell.jobs),
        "jobs_submitted": len(arrived(cell)),
        "tasks_ended": len(cell.past),
        "quotas": len(cell.quotas),
        "schedulers": what_happened(cell),
    }


def _is_in_time(cell: SavedCell, ms: int) -> bool:
    return cell.begin_ms <= ms <= cell.until_ms


def _of_kind(cell: SavedCell, kind: str) -> dict[str, Any]:
    replicas = {one.replica for one in cell.schedulers if one.kind == kind}
    live = [
        one.facts
        for one in cell.processes
        if one.kind == kind and one.seen_ms_ago < AT_WORK_MS and one.replica in replicas
    ]
    return measures(
        schedulers=len(replicas),
        jobs=[_seen(job) for job in arrived(cell) if job.spec.scheduler == kind],
        judged=_judged(cell, kind),
        busy=_busy(live, (cell.until_ms - cell.begin_ms) / MS_PER_S),
    )


def _busy(facts: Sequence[Mapping[str, Any]], time_s: float) -> float | None:
    """Return the share of the time for which replicas were busy; None if none has reported.

    Of one that began before the time, what it did before counts, too.
    """
    merged = merge(*facts)
    busy: float | None = merged["measures"]["busy"]
    if busy is None:
        return None
    lived_s = sum(max(time_s, number_in(one, "process_s") or 0.0) for one in facts)
    return float(busy * merged["process_s"] / lived_s)


def _seen(job: SavedJob) -> JobSeen:
    waited_ms = None if job.first_leased_ms is None else job.first_leased_ms - job.submitted_ms
    return JobSeen(
        wait_s=None if waited_ms is None else waited_ms / MS_PER_S,
        is_placed=not job.unplaced,
        is_parked=job.state is State.PARKED,
    )


def _judged(cell: SavedCell, kind: str) -> Judged:
    mine = [one for one in cell.schedulers if one.kind == kind]
    return Judged(
        claims=sum(one.claims for one in mine),
        claims_refused=sum(one.claims_refused for one in mine),
        job_transactions=sum(one.job_transactions for one in mine),
        job_transactions_conflicted=sum(one.job_transactions_conflicted for one in mine),
    )


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole > 0 else None
