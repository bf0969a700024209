"""One run of figures 15 and 16: a cell with batch, service and elastic jobs, with helpers or not.

The processes are the live ones in virtual time. Batch and service schedulers think as long as the
paper's do by default, and preempt. All policies are simulated with the same jobs, so that each job
is compared with itself.
"""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from benchmarks.paper.elastic_jobs import ELASTIC, ElasticJobs, memo_of
from benchmarks.paper.setting import S_PER_H, T_JOB_S, T_TASK_S
from omega.events import Event, JobAttempted
from omega.framework.scheduler import DecisionTime, Scheduler
from omega.model.jobs import JobSpec, TaskGroup
from omega.model.machines import Machines
from omega.model.resources import Kind, machine_capacity
from omega.nodes.virtual import VirtualNodes, nothing_else
from omega.sim.virtual_cell import VirtualCell
from omega.store.rounds import Round
from omega.store.status import JobStatus
from omega.workload.arrivals import BATCH, MS_PER_S, SERVICE, Arrival
from omega.workload.synthetic import JobClass, arrivals_of
from schedulers.batch import BatchScheduler
from schedulers.elastic import ElasticScheduler
from schedulers.elastic.model import PhaseLeft, predicted_s
from schedulers.service import ServiceScheduler

CPUS: Final = 4
LIGHT, LOADED = "light", "loaded"
FILL: Final[Mapping[str, float]] = {LIGHT: 0.2, LOADED: 0.65}
"""The share of the cell that services hold throughout."""
NONE: Final = "none"
POLICIES: Final = (NONE, "max", "relative", "cap")
GAP_S: Final = 25.0
"""Mean time between two elastic jobs; four times as many batch jobs come, as in the paper."""
AFTER_S: Final = 3_600.0
"""Time after the last submission, for elastic jobs to end."""
SAMPLE_S: Final = 10.0
WARM_S: Final = 60.0
"""Time without samples, in which the services of the start are placed."""
SERVICE_PRECEDENCE: Final = 100
BATCH_PRECEDENCE: Final = 0
RELATIVE: Final = 4
"""The factor of the policy `relative`."""
QUANTILES: Final = tuple(range(0, 101, 5))
GAINS_FROM: Final = 1.05
"""The speed-up from which a job counts as one that gained."""
DECISION_TIME: Final = DecisionTime(job_s=T_JOB_S, task_s=T_TASK_S)


class WithoutHelpers(BatchScheduler):
    """The elastic scheduler as far as wanted workers go."""

    kind = ELASTIC


@dataclass(frozen=True, kw_only=True)
class ElasticSetting:
    """One cell with one seed, simulated with each policy."""

    cell: str
    policies: tuple[str, ...] = POLICIES
    machines: int = 1_000
    gains: float = 0.6
    hours: float = 0.3
    seed: int = 0

    @property
    def horizon_s(self) -> float:
        """The time of the last submission."""
        return self.hours * S_PER_H


class Run:
    """One policy at work."""

    def __init__(self, setting: ElasticSetting, policy: str) -> None:
        self._setting = setting
        self._whole_s: dict[int, float] = {}
        self._samples: list[tuple[float, float]] = []
        capacity = machine_capacity(CPUS * 1_000, CPUS * 4_096, 0, 0)
        names = tuple(f"machine-{number}" for number in range(setting.machines))
        machines = Machines(names, np.tile(capacity, (setting.machines, 1)), {})
        self._cell = VirtualCell(machines, seed=setting.seed)
        elastic, durations = _elastic(setting)
        store = self._cell.store
        store.submit([_base(setting)])
        begun = store.begin_round(ELASTIC, holder="before", length_ms=0)
        assert isinstance(begun, Round)
        assert store.note_round(ELASTIC, begun.number, memo_of(durations))
        self._jobs: list[int] = []
        self._first = len(elastic)
        for arrival in [*elastic, *_others(setting)]:
            self._cell.when_jobs_arrive(arrival.submit_s, partial(self._submit, arrival.spec))
        nodes = VirtualNodes(lambda _: None, speedup=1.0)
        self._cell.live(nodes.life(threading.Event(), nothing_else))
        for scheduler in (ServiceScheduler(), BatchScheduler(preempts=True), _scheduler(policy)):
            self._cell.schedule(scheduler, "0", decision_time=DECISION_TIME, sink=self._note)
        for at_s in np.arange(WARM_S, setting.horizon_s, SAMPLE_S).tolist():
            self._cell.at(at_s, partial(self._sample, at_s))

    def figures(self) -> dict[str, Any]:
        """Simulate, check every invariant, and return what was measured."""
        horizon_s = self._setting.horizon_s
        self._cell.run(horizon_s)
        waits = {kind: self._waits(kind) for kind in (BATCH, SERVICE)}
        until_s = horizon_s
        while until_s < horizon_s + AFTER_S and self._left():
            until_s += 60.0
            self._cell.run(until_s)
        self._cell.check()
        used = np.array([share for _, share in self._samples] or [0.0])
        jobs = self._statuses(ELASTIC)
        return {
            "took_s": {number: _took_s(job) for number, job in enumerate(jobs)},
            "samples": self._samples,
            "utilisation": {"mean": float(used.mean()), "variance": float(used.var())},
            "tasks_placed": sum(job.placed for job in (*jobs, *self._statuses(BATCH))),
            **waits,
        }

    def _submit(self, spec: JobSpec) -> None:
        self._jobs += self._cell.store.submit([spec])

    def _note(self, event: Event) -> None:
        if isinstance(event, JobAttempted) and not event.left:
            self._whole_s.setdefault(event.job, self._cell.clock.now())

    def _sample(self, at_s: float) -> None:
        rows = self._cell.store.snapshot().rows
        used, there = rows.used[:, Kind.CPU_MILLI].sum(), rows.capacity[:, Kind.CPU_MILLI].sum()
        self._samples.append((at_s, float(used / there)))

    def _statuses(self, kind: str) -> list[JobStatus]:
        """Return the jobs of a kind that were submitted later than the start, oldest first."""
        told = self._cell.store.jobs(scheduler=kind, jobs_max=10**6)
        return [job for job in reversed(told) if job.id > 1]

    def _left(self) -> bool:
        return any(job.finished_ms is None for job in self._statuses(ELASTIC))

    def _waits(self, kind: str) -> Mapping[str, float | None]:
        """Return how long jobs waited for their first attempt, and until all tasks had a place."""
        jobs = self._statuses(kind)
        first = [
            (job.first_leased_ms - job.submitted_ms) / MS_PER_S
            for job in jobs
            if job.first_leased_ms is not None
        ]
        whole = [
            self._whole_s[job.id] - job.submitted_ms / MS_PER_S
            for job in jobs
            if job.id in self._whole_s
        ]
        return {
            "jobs": len(jobs),
            "jobs_whole": len(whole),
            "wait_mean_s": float(np.mean(first)) if first else None,
            "whole_mean_s": float(np.mean(whole)) if whole else None,
        }


def simulate_elastic(setting: ElasticSetting) -> Mapping[str, Any]:
    """Simulate each policy with the same jobs; return the figures by policy."""
    runs = {policy: Run(setting, policy).figures() for policy in setting.policies}
    base = runs[NONE]["took_s"]
    for run in runs.values():
        took = run["took_s"]
        both = [job for job in base if base[job] and took.get(job)]
        run["speedup"] = _distribution([base[job] / took[job] for job in both])
        run["elastic"] = {"jobs": len(base), "jobs_compared": len(both)}
        run["model"] = _model(setting)
        del run["took_s"]
    return runs


def _model(setting: ElasticSetting) -> Mapping[str, float]:
    """Return what the model alone gives these jobs at the 80th percentile, with ample room."""
    faster: dict[str, list[float]] = {"max": [1.0], "relative": [1.0]}
    for arrival in _elastic(setting)[0]:
        spec, workers = arrival.spec, arrival.spec.workers
        assert workers is not None
        phases = [PhaseLeft(it.activities, it.duration_ms / MS_PER_S) for it in workers.phases]
        for policy, most in (("max", workers.at_most), ("relative", RELATIVE * spec.tasks)):
            given = max(spec.tasks, min(workers.at_most, most))
            faster[policy].append(predicted_s(phases, spec.tasks) / predicted_s(phases, given))
    return {
        f"{policy}_p80": float(np.percentile(its[1:] or its, 80)) for policy, its in faster.items()
    }


def _distribution(speedups: Sequence[float]) -> Mapping[str, Any]:
    if not speedups:
        return {"gains": None, **{f"p{number}": None for number in QUANTILES}}
    points = np.percentile(speedups, QUANTILES)
    gained = np.array(speedups) >= GAINS_FROM
    return {
        "gains": float(gained.mean()),
        **{f"p{number}": float(value) for number, value in zip(QUANTILES, points, strict=True)},
    }


def _took_s(job: JobStatus) -> float | None:
    if job.finished_ms is None:
        return None
    return (job.finished_ms - job.submitted_ms) / MS_PER_S


def _scheduler(policy: str) -> Scheduler:
    if policy == NONE:
        return WithoutHelpers(preempts=True)
    return ElasticScheduler.configured({"policy": policy})


def _elastic(setting: ElasticSetting) -> tuple[list[Arrival], list[dict[str, int]]]:
    jobs = ElasticJobs(gap_mean_s=GAP_S, gains=setting.gains)
    seed = [setting.seed, 3]
    durations = jobs.durations_ms(np.random.default_rng(seed))
    return jobs.arrivals(setting.horizon_s, np.random.default_rng(seed)), durations


def _others(setting: ElasticSetting) -> list[Arrival]:
    """Draw batch and service jobs."""
    rngs = np.random.default_rng([setting.seed, 4]).spawn(2)
    classes = (
        JobClass(
            scheduler=BATCH,
            gap_mean_s=GAP_S / 4,
            tasks_mean=20,
            duration_mean_s=60,
            precedence=BATCH_PRECEDENCE,
        ),
        JobClass(
            scheduler=SERVICE,
            gap_mean_s=60,
            tasks_mean=10,
            duration_mean_s=2_000,
            precedence=SERVICE_PRECEDENCE,
        ),
    )
    return [
        arrival
        for its, rng in zip(classes, rngs, strict=True)
        for arrival in arrivals_of(its, setting.horizon_s, rng)
    ]


def _base(setting: ElasticSetting) -> JobSpec:
    """Return the service that holds its share of the cell throughout."""
    tasks = round(FILL[setting.cell] * CPUS * setting.machines)
    group = TaskGroup(tasks=tasks, cpu_milli=1_000, memory_mib=2_048)
    spec = JobSpec(name="base", scheduler=SERVICE, groups=(group,))
    return replace(spec, precedence=SERVICE_PRECEDENCE)
