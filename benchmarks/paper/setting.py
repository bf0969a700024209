"""One simulation of a figure: a cell, its work, and its schedulers.

The paper prints neither machine counts nor arrival rates of its cells. The cells here are 60 % full
at the start. Their batch jobs arrive at a rate at which one scheduler with the default decision
times is as busy as figure 8 shows for the paper's cells.
"""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.paper.constraints import anywhere, constrained
from omega.framework.registry import find_scheduler
from omega.framework.scheduler import DecisionTime, Scheduler
from omega.model.claims import ConflictRule
from omega.model.resources import Kind
from omega.sim.commit_unit import CommitUnit, committing
from omega.sim.compilation import is_worth_compiling
from omega.sim.daily import DAILY
from omega.sim.division import Division
from omega.sim.experiment import Architecture, Experiment
from omega.workload.arrivals import BATCH, SERVICE, Arrival, Prefill, Workload
from omega.workload.sources import read_trace
from omega.workload.synthetic import JobClass, Shape, TwoClasses, arrivals_of, merged
from omega.workload.traces.omega_sim import uniform_workload

S_PER_H: Final = 3_600
T_JOB_S: Final = 0.1
T_TASK_S: Final = 0.005
"""The paper's default decision times, which it calls conservative."""
TASKS_MEAN: Final = 20
DURATION_S: Final = 15
FILL: Final = 0.6
CPUS: Final = 4
LARGE_CPUS: Final = 3
MEASURES: Final = (
    *("busy", "busy_wasted", "think_started", "conflict_fraction", "wait_mean_s", "wait_p90_s"),
    *("jobs", "jobs_attempted", "jobs_unfinished", "jobs_abandoned", "tasks", "tasks_placed"),
    *("attempts_started", "attempts_without_room"),
)
"""The figures that are kept of each workload."""
DAILY_MEASURES: Final = tuple(
    f"{name}_daily_{what}" for name in DAILY for what in ("median", "mad")
)
"""Those of runs of several days; None in shorter ones."""


def _cell(machines: int, busy: float) -> TwoClasses:
    """Return a cell whose batch jobs give one scheduler this busyness."""
    gap_s = (T_JOB_S + T_TASK_S * (TASKS_MEAN + 0.5)) / busy  # half a task more: numbers round up
    return TwoClasses(
        machines=machines,
        cpus=CPUS,
        memory_gib=16,
        prefill_tasks=round(FILL * CPUS * machines),
        batch=JobClass(
            scheduler=BATCH, gap_mean_s=gap_s, tasks_mean=TASKS_MEAN, duration_mean_s=DURATION_S
        ),
        service=JobClass(scheduler=SERVICE, gap_mean_s=60, tasks_mean=10, duration_mean_s=2_000),
    )


RECORDED: Final = "google-2011"
"""The cell of 2011: machines, start state and arrivals of the published trace."""
RECORDED_HOURS: Final = 1.39
"""Length of the trace's window."""
WINDOW, WEEK = "window", "week"
WEEK_HOURS: Final = 168.0
BY_CLASS, BY_PRODUCTION = "class", "production"
CELLS: Final = {"A": _cell(1_500, 0.40), "B": _cell(2_500, 0.17), "C": _cell(3_000, 0.105)}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One simulation."""

    cell: str = "B"
    architecture: str = Architecture.SHARED_STATE.value
    rule: str = ConflictRule.FIT.value
    granularity: str = CommitUnit.INCREMENTAL.value
    batch_schedulers: int = 1
    t_job_batch: float = T_JOB_S
    t_task_batch: float = T_TASK_S
    t_job_service: float = T_JOB_S
    t_task_service: float = T_TASK_S
    factor: float = 1.0
    """Factor on the arrival rate of batch jobs."""
    tasks_mean: int = TASKS_MEAN
    """Mean tasks of a batch job; larger jobs arrive less often, so that as many tasks arrive."""
    duration_s: float = DURATION_S
    """Mean duration of a batch task."""
    large_tasks: float = 0.0
    """Share of batch jobs whose tasks take `LARGE_CPUS` cores each instead of one."""
    one_in: int = 1
    """Every job is constrained to one machine in so many."""
    alike: bool = True
    """Whether all jobs are constrained to the same machines; otherwise each job's are drawn."""
    obeyed: bool = True
    """Whether the constraints of a trace are obeyed."""
    fill: float | None = None
    """Share of the CPU taken at the start; the cell's own if None."""
    service_by: str = BY_CLASS
    """Which jobs of a trace are service jobs: by their `class`, or by `production` priority too."""
    machines: str = "stay"
    """Whether the machines of a trace `change` as recorded, or `stay`: the paper's simulators omit
    failures."""
    period: str = WINDOW
    """Whether the jobs of a trace are those of its `window`, or of a `week` with drawn sizes."""
    placed_by: str | None = None
    """The kind of scheduler whose placement both workloads have; None: each has its own."""
    hours: float = 2.0
    seed: int = 0

    trace: Path | None = field(default=None, repr=False)
    """The folder of the trace, for the cell of 2011."""

    def experiment(self) -> Experiment:
        """Return the experiment that `omega sim run` would run with these options."""
        workload = self._workload()
        kinds = sorted({arrival.spec.scheduler for arrival in workload.arrivals})
        architecture, unit = Architecture(self.architecture), CommitUnit(self.granularity)
        division = Division(
            batch=DecisionTime(job_s=self.t_job_batch, task_s=self.t_task_batch),
            service=DecisionTime(job_s=self.t_job_service, task_s=self.t_task_service),
            batch_schedulers=self.batch_schedulers,
        )
        make = {kind: self._scheduler(kind, unit) for kind in kinds}
        return Experiment(
            workload=workload,
            architecture=architecture,
            scheduler=lambda kind: make[kind](),
            decision_times=division.decision_times(kinds, architecture),
            schedulers=division.schedulers(kinds),
            parts=division.parts(kinds),
            gangs=unit is CommitUnit.GANG,
            horizon_s=self.hours * S_PER_H,
            seed=self.seed,
            compiled=is_worth_compiling(
                len(workload.arrivals),
                audit=False,
                live=False,
                machines_change=bool(workload.machine_events),
            ),
        )

    def _scheduler(self, kind: str, unit: CommitUnit) -> Callable[[], Scheduler]:
        """Return the function that creates a scheduler; drawn jobs are all placed by first fit."""
        own = kind if self.trace is not None else BATCH
        placed_by = find_scheduler(self.placed_by or own)
        return committing(lambda: placed_by.configured({}), ConflictRule(self.rule), unit)

    def _workload(self) -> Workload:
        """Draw the cell and its jobs, or read the trace; constrain them if that is asked for."""
        if self.trace is not None:
            options = {
                "service": self.service_by,
                "machines": self.machines,
                "arrivals": self.period,
            }
            workload = recorded(self.trace, self.fill, frozenset(options.items()))
        else:
            workload = _drawn(
                _start(self.cell, FILL if self.fill is None else self.fill, self.seed),
                self.arrivals(),
            )
        if not self.obeyed:
            workload = anywhere(workload)
        if self.one_in > 1:
            rng = np.random.default_rng([self.seed, 2])
            workload = constrained(workload, self.one_in, rng, alike=self.alike)
        return workload

    def arrivals(self) -> tuple[Arrival, ...]:
        """Draw the jobs; the service jobs of a seed do not depend on the factor."""
        laws, horizon_s = CELLS[self.cell], self.hours * S_PER_H
        for_batch, for_service = np.random.default_rng([self.seed, 1]).spawn(2)
        larger = self.tasks_mean / TASKS_MEAN
        batch = replace(
            laws.batch,
            gap_mean_s=laws.batch.gap_mean_s * larger / self.factor,
            tasks_mean=self.tasks_mean,
            duration_mean_s=self.duration_s,
            shapes=(
                Shape(weight=1 - self.large_tasks),
                Shape(cpu_milli=1_000 * LARGE_CPUS, weight=self.large_tasks),
            ),
        )
        return merged(
            arrivals_of(batch, horizon_s, for_batch),
            arrivals_of(laws.service, horizon_s, for_service),
        )


@lru_cache(maxsize=4)
def _start(cell: str, fill: float, seed: int) -> Workload:
    """Return a cell with the tasks that are there at the start, and without jobs.

    The settings of a figure differ in their jobs and schedulers, and share few of these.
    """
    laws = CELLS[cell]
    return uniform_workload(
        (),
        machines=laws.machines,
        cpus=laws.cpus,
        memory_gib=laws.memory_gib,
        prefill_tasks=round(fill * CPUS * laws.machines),
        rng=np.random.default_rng(seed),
    )


def _drawn(start: Workload, arrivals: tuple[Arrival, ...]) -> Workload:
    tasks = sum(arrival.spec.tasks for arrival in arrivals)
    counts = {**start.counts, "jobs": len(arrivals), "tasks": tasks}
    return replace(start, arrivals=arrivals, counts=counts)


@lru_cache(maxsize=2)
def recorded(folder: Path, fill: float | None, options: Set[tuple[str, str]]) -> Workload:
    """Read the trace as its users submitted it, with the start state filled up to `fill`.

    Tasks that were pending at its start are left out. So are tasks that came back after an eviction
    or a failure: a simulation has its own, and their recorded pieces would count as new jobs.
    """
    as_submitted = {"pending": "leave", "returning": "leave", **dict(options)}
    trace = read_trace(folder, np.random.default_rng(0), as_submitted)
    return trace if fill is None else replace(trace, prefill=_thinned(trace, fill))


def _thinned(trace: Workload, fill: float) -> Prefill:
    """Return the start tasks of the highest precedence, up to a share of the CPU."""
    prefill, cpu = trace.prefill, Kind.CPU_MILLI
    precedence = np.array([job.precedence for job in prefill.jobs])[prefill.job]
    in_order = np.argsort(-precedence, kind="stable")
    taken = np.cumsum(prefill.shapes[prefill.shape[in_order], cpu])
    stays = np.sort(in_order[taken <= fill * trace.machines.capacity[:, cpu].sum()])
    return replace(
        prefill,
        job=prefill.job[stays],
        task=prefill.task[stays],
        machine=prefill.machine[stays],
        shape=prefill.shape[stays],
    )


def simulate(setting: Setting) -> Mapping[str, Any]:
    """Simulate, and return the figures of each workload."""
    result = setting.experiment().run()
    return {
        **{
            name: {measure: told.get(measure) for measure in (*MEASURES, *DAILY_MEASURES)}
            for name, told in result.workloads.items()
        },
        "utilisation": result.utilisation,
        "tasks_placed": result.tasks_placed,
    }
