"""What a demo is to be: its cell, its work, its schedulers.

Goal     Say all of a demo in one value, made from the command line and checked as a whole.
Promise  What cannot work is BadInput before any process is started: a kind of scheduler that is not
         registered, a trace's jobs that no of its schedulers would take.
Source   omega.workload.demo; omega.workload.traces.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from omega.cli.options import ReplicaSet, replicas_of
from omega.errors import BadInput
from omega.framework.registry import find_scheduler
from omega.workload.arrivals import Workload
from omega.workload.demo import Demo, demo_workload
from omega.workload.sources import read_trace


@dataclass(frozen=True, kw_only=True)
class DemoPlan:
    """A demo as it was asked for."""

    seconds: float
    replica_sets: tuple[ReplicaSet, ...]
    machines: int
    fill: float
    speedup: float | None
    """None: one, or for a trace that is replayed, as much as its arrivals are compressed."""
    t_job: float
    t_task: float
    """Seconds that each decision is made to take: so much a job, and so much a task."""
    seed: int
    trace: Path | None
    trace_options: Mapping[str, str]

    def parameters(self) -> dict[str, object]:
        """Return what was asked for as JSON types."""
        return {
            "trace": str(self.trace) if self.trace is not None else None,
            "trace_options": dict(self.trace_options),
            "seconds": self.seconds,
            "schedulers": [str(replica_set) for replica_set in self.replica_sets],
            "machines": self.machines if self.trace is None else None,
            "fill": self.fill if self.trace is None else None,
            "speedup": self.speedup,
            "t_job": self.t_job,
            "t_task": self.t_task,
            "seed": self.seed,
        }

    @property
    def replicas(self) -> dict[str, int]:
        """How many schedulers of each kind."""
        counted: Counter[str] = Counter()
        for replica_set in self.replica_sets:
            counted[replica_set.kind] += replica_set.replicas
        return dict(counted)

    def check(self) -> None:
        """Raise UnknownScheduler for a kind that is not registered."""
        for replica_set in self.replica_sets:
            find_scheduler(replica_set.kind)

    def scheduler_commands(self) -> dict[str, tuple[str, ...]]:
        """Return the arguments of each scheduler process, by the name of its log."""
        return {
            f"{replica_set.kind}-{replica}": (
                "scheduler",
                "run",
                replica_set.kind,
                f"--replica={replica}",
                f"--seed={self.seed}",
                f"--t-job={self.t_job}",
                f"--t-task={self.t_task}",
                *([f"--rule={replica_set.rule.value}"] if replica_set.rule is not None else []),
            )
            for replica_set, replica in replicas_of(self.replica_sets)
        }


@dataclass(frozen=True, eq=False)
class Scenario:
    """The work of a demo, on its own time."""

    workload: Workload
    speedup: float
    """Seconds of a task's life in one second."""
    notes: tuple[str, ...]


def scenario_of(plan: DemoPlan, rng: np.random.Generator) -> Scenario:
    """Draw or read the work, and fit its arrivals into the demo's seconds."""
    if plan.trace is None:
        demo = Demo(
            machines=plan.machines,
            share=plan.fill,
            seconds=plan.seconds,
            schedulers=plan.replicas,
        )
        return Scenario(demo_workload(demo, rng), plan.speedup or 1.0, ())
    workload = read_trace(plan.trace, rng, plan.trace_options)
    _refuse_orphans(workload, plan)
    last_s = workload.arrivals[-1].submit_s if workload.arrivals else 0.0
    if last_s == 0.0:
        note = f"in this demo they come evenly over {plan.seconds:g} s"
        spread = workload.evenly_over(plan.seconds)
        return Scenario(spread, plan.speedup or 1.0, (*workload.notes, note))
    factor = last_s / plan.seconds
    note = f"its {last_s:,.0f} s of arrivals are replayed in {plan.seconds:g} s"
    return Scenario(workload.faster(factor), plan.speedup or factor, (*workload.notes, note))


def _refuse_orphans(workload: Workload, plan: DemoPlan) -> None:
    kinds = Counter(arrival.spec.scheduler for arrival in workload.arrivals)
    for kind, jobs in sorted(kinds.items()):
        if not plan.replicas.get(kind):
            raise BadInput(
                f"{jobs:,} jobs of the trace are for {kind}, and no such scheduler is among"
                f" {', '.join(map(str, plan.replica_sets))}",
                field="--schedulers",
            )
