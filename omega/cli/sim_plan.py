"""What a simulation is to be: its jobs, its cell, its schedulers.

Goal     Say all of a run in one value, made from the command line.
Promise  What cannot be simulated is BadInput, and nothing has been simulated by then.
Source   omega.sim.experiment; the job lists of omega.workload.traces.omega_sim.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, StrEnum
from pathlib import Path
from typing import Final

from omega.cli.chance import chance_of
from omega.framework.registry import find_scheduler
from omega.framework.scheduler import DecisionTime, Scheduler
from omega.model.claims import ConflictRule, Granularity
from omega.sim.experiment import Architecture, Experiment
from omega.workload.arrivals import BATCH, SERVICE
from omega.workload.traces.omega_sim import read_job_list, uniform_workload

PLACING: Final = "batch"
"""The kind of scheduler that places: randomised first fit, as in the paper's simulator."""


class Unit(StrEnum):
    """What a refused claim does to its siblings, and whether a job is placed whole."""

    INCREMENTAL = "incremental"
    ALL_OR_NOTHING = "all-or-nothing"
    GANG = "gang"


@dataclass(frozen=True, kw_only=True)
class SimPlan:
    """A simulation as it was asked for."""

    jobs: Path
    machines: int
    cpus: float
    memory_gib: float
    prefill_tasks: int
    hours: float
    architecture: Architecture
    rule: ConflictRule
    granularity: Unit
    batch_schedulers: int
    service_schedulers: int
    t_job_batch: float
    t_task_batch: float
    t_job_service: float
    t_task_service: float
    batch_share: float
    """Of the machines, in a static partition."""
    seed: int

    def parameters(self) -> dict[str, object]:
        """Return what was asked for as JSON types; of the list its name alone."""
        told = {name: v.value if isinstance(v, Enum) else v for name, v in vars(self).items()}
        return {**told, "jobs": self.jobs.name}

    def experiment(self) -> Experiment:
        """Read the jobs and say what is simulated."""
        workload = uniform_workload(
            read_job_list(self.jobs),
            machines=self.machines,
            cpus=self.cpus,
            memory_gib=self.memory_gib,
            prefill_tasks=self.prefill_tasks,
            chance=chance_of(self.seed),
        )
        service = DecisionTime(job_s=self.t_job_service, task_s=self.t_task_service)
        batch = DecisionTime(job_s=self.t_job_batch, task_s=self.t_task_batch)
        alone = self.architecture is Architecture.MONOLITHIC
        return Experiment(
            workload=workload,
            architecture=self.architecture,
            scheduler=self._maker(),
            decision_times={SERVICE: service, BATCH: service if alone else batch},
            schedulers={BATCH: self.batch_schedulers, SERVICE: self.service_schedulers},
            parts={BATCH: self.batch_share, SERVICE: 1 - self.batch_share},
            gangs=self.granularity is Unit.GANG,
            horizon_s=self.hours * 3_600,
            seed=self.seed,
        )

    def _maker(self) -> Callable[[], Scheduler]:
        """Return what makes a scheduler that commits as asked, one job at a time."""
        kind = find_scheduler(PLACING)
        all_or_nothing = self.granularity is Unit.ALL_OR_NOTHING

        def make() -> Scheduler:
            scheduler = kind()
            scheduler.rule = self.rule
            scheduler.granularity = (
                Granularity.ALL_OR_NOTHING if all_or_nothing else Granularity.INCREMENTAL
            )
            scheduler.jobs_per_transaction = 1
            return scheduler

        return make
