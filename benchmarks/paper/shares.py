"""Figures 2 to 4 of the Omega paper: what batch jobs and service jobs are, on a recorded cell.

A figure that is simulated on a trace says nothing about the paper's cells if the trace is divided
into batch and service jobs in another way. So these shares are a gate: `gate` refuses a trace on
which they are not as in the paper.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.paper.claims import Claim, Row, where
from benchmarks.paper.setting import BY_PRODUCTION, S_PER_H, WEEK, WEEK_HOURS, recorded
from omega.errors import InvariantBroken
from omega.model.arrays import Score
from omega.model.jobs import JobSpec, TaskGroup
from omega.model.resources import Kind
from omega.workload.arrivals import BATCH, MS_PER_S, SERVICE, Workload

QUANTILES: Final = (0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
BATCH_JOBS_MIN: Final = 0.8
"""The paper's least share of batch jobs among all jobs (figure 2)."""
SERVICE_RESOURCES: Final = (0.55, 0.80)
"""The paper's bounds for the share of the resources that service jobs ask for (figure 2)."""
THOUSANDS: Final = 1_000
"""Tasks of a job in the tail of figure 4."""


def rows_of(workload: Workload, horizon_s: float) -> dict[str, dict[str, Any]]:
    """Return the shares and distributions of batch jobs and of service jobs.

    Jobs and tasks are those submitted within the horizon. CPU and memory count for as long as tasks
    are recorded to run within it, those of the start state too.
    """
    submitted = {kind: _Submitted(workload, kind, horizon_s) for kind in (BATCH, SERVICE)}
    asked = _asked_for(workload, horizon_s)
    jobs = sum(len(one.tasks) for one in submitted.values())
    tasks = sum(int(one.tasks.sum()) for one in submitted.values())
    return {
        kind: {
            "jobs": len(one.tasks),
            "jobs_share": len(one.tasks) / max(1, jobs),
            "tasks_share": int(one.tasks.sum()) / max(1, tasks),
            "cpu_share": asked[kind][0],
            "memory_share": asked[kind][1],
            "tasks_mean": float(one.tasks.mean()) if len(one.tasks) else None,
            "of_thousands": int(np.count_nonzero(one.tasks >= THOUSANDS)),
            "gap_mean_s": horizon_s / len(one.tasks) if len(one.tasks) else None,
            "gap_s": _quantiles(np.diff(one.submit_s)),
            "runs_s": _quantiles(one.runs_s),
            "tasks": _quantiles(one.tasks.astype(np.float64)),
        }
        for kind, one in submitted.items()
    }


class _Submitted:
    """The jobs of one kind that are submitted within the horizon, as columns."""

    def __init__(self, workload: Workload, kind: str, horizon_s: float) -> None:
        arrivals = [
            one
            for one in workload.arrivals
            if one.spec.scheduler == kind and one.submit_s <= horizon_s
        ]
        self.submit_s = np.array([one.submit_s for one in arrivals])
        self.tasks = np.array([one.spec.tasks for one in arrivals], dtype=np.int64)
        self.runs_s = np.array([_runs_s(one.spec) for one in arrivals])
        """How long the longest task of each job runs; infinite if it does not end."""


def _runs_s(spec: JobSpec) -> float:
    return max(_duration_s(group) for group in spec.groups)


def _duration_s(group: TaskGroup) -> float:
    return np.inf if group.duration_ms is None else group.duration_ms / MS_PER_S


def _asked_for(workload: Workload, horizon_s: float) -> dict[str, tuple[float, float]]:
    """Return the share of CPU-seconds and of memory-seconds that each kind of job asks for."""
    kinds = (Kind.CPU_MILLI, Kind.MEMORY_MIB)
    sums = {kind: np.zeros(len(kinds)) for kind in (BATCH, SERVICE)}
    for arrival in workload.arrivals:
        for group in arrival.spec.groups:
            runs_s = min(_duration_s(group), max(0.0, horizon_s - arrival.submit_s))
            sums[arrival.spec.scheduler] += group.tasks * group.demand[list(kinds)] * runs_s
    prefill = workload.prefill
    amounts = prefill.shapes[prefill.shape][:, list(kinds)]
    within_s = np.minimum(_start_durations_s(workload), horizon_s)
    is_service = np.array([job.scheduler == SERVICE for job in prefill.jobs], dtype=np.bool_)
    for kind, mine in ((SERVICE, is_service), (BATCH, ~is_service)):
        rows = mine[prefill.job] if len(prefill.job) else np.zeros(0, np.bool_)
        sums[kind] += (amounts[rows] * within_s[rows, np.newaxis]).sum(axis=0)
    total = np.maximum(sums[BATCH] + sums[SERVICE], 1e-9)
    return {kind: (float((one / total)[0]), float((one / total)[1])) for kind, one in sums.items()}


def _start_durations_s(workload: Workload) -> Score:
    """Return how long each task of the start state runs on: (tasks,)."""
    prefill = workload.prefill
    by_job = [
        np.repeat([_duration_s(g) for g in job.groups], [g.tasks for g in job.groups])
        for job in prefill.jobs
    ]
    return np.array(
        [
            by_job[job][task]
            for job, task in zip(prefill.job.tolist(), prefill.task.tolist(), strict=True)
        ]
    )


def _quantiles(values: Score) -> dict[str, float | None]:
    """Return some quantiles, by the inverse of the distribution; None for what does not end."""
    if not len(values):
        return dict.fromkeys((f"p{round(100 * q)}" for q in QUANTILES), None)
    found = np.quantile(values, QUANTILES, method="inverted_cdf")
    return {
        f"p{round(100 * q)}": float(value) if np.isfinite(value) else None
        for q, value in zip(QUANTILES, found, strict=True)
    }


def claims_of(rows: Sequence[Row], *, service: str, period: str) -> list[Claim]:
    """Return the paper's claims on figures 2 to 4 for one way to tell service jobs."""
    batch, of_service = (
        where(rows, service=service, period=period, workload=kind)[0] for kind in (BATCH, SERVICE)
    )
    said = f"service jobs by {service}, {period}"
    asked = [of_service["cpu_share"], of_service["memory_share"]]
    gaps = [row["gap_mean_s"] or np.inf for row in (batch, of_service)]
    runs = [row["runs_s"]["p50"] or np.inf for row in (batch, of_service)]
    tasks = [row["tasks_mean"] or 0.0 for row in (batch, of_service)]
    return [
        Claim(
            f"{said}: over 80 % of jobs are batch jobs",
            f"{batch['jobs_share']:.1%} of {batch['jobs'] + of_service['jobs']:,}",
            batch["jobs_share"] > BATCH_JOBS_MIN,
        ),
        Claim(
            f"{said}: 55 to 80 % of what is asked for is for service jobs",
            f"{asked[0]:.1%} of the CPU, {asked[1]:.1%} of the memory",
            all(SERVICE_RESOURCES[0] <= one <= SERVICE_RESOURCES[1] for one in asked),
        ),
        Claim(
            f"{said}: service jobs run longer, come less often and have fewer tasks",
            f"median {runs[1]:.3g} s beside {runs[0]:.3g} s, one every {gaps[1]:.3g} s beside"
            f" {gaps[0]:.3g} s, {tasks[1]:.3g} tasks beside {tasks[0]:.3g}",
            runs[1] > runs[0] and gaps[1] > gaps[0] and tasks[1] < tasks[0],
        ),
        Claim(
            f"{said}: some jobs have thousands of tasks",
            f"{batch['of_thousands'] + of_service['of_thousands']:,} have {THOUSANDS:,} or more",
            batch["of_thousands"] + of_service["of_thousands"] > 0,
        ),
    ]


def shares(folder: Path, *, service: str, period: str, horizon_s: float) -> list[Mapping[str, Any]]:
    """Read the trace and return a row for each kind of job."""
    options = {"service": service, "machines": "stay", "arrivals": period}
    found = rows_of(recorded(folder, None, frozenset(options.items())), horizon_s)
    return [
        {"service": service, "period": period, "workload": kind, **row}
        for kind, row in found.items()
    ]


def gate(folder: Path) -> None:
    """Raise InvariantBroken if the shares of figure 2 are not those of the paper.

    Service jobs are told by their production priority and class, as the authors' simulator does.
    """
    rows = shares(folder, service=BY_PRODUCTION, period=WEEK, horizon_s=WEEK_HOURS * S_PER_H)
    for claim in claims_of(rows, service=BY_PRODUCTION, period=WEEK):
        if not claim.holds:
            raise InvariantBroken(f"{claim.says}, in the paper; in {folder}: {claim.measured}")
