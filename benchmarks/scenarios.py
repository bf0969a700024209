"""What contests are about: a cell kept at a level under drawn work, or a published trace."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import numpy as np

from benchmarks.churn import ConstantLoad, Nodes
from benchmarks.harness import Stage
from benchmarks.rival import MS_PER_S
from benchmarks.steady_state import TIMEOUT_S, Point, Scenario
from benchmarks.taken_up import taken_up
from omega.config import Settings
from omega.errors import BadInput
from omega.events import ignore
from omega.framework.retry import Retry
from omega.model.machines import Machines
from omega.store.protocols import Store
from omega.workload.arrivals import BATCH, Workload
from omega.workload.sources import read_trace
from omega.workload.synthetic import JobClass, Shape, arrivals_of, scattered, uniform_machines

TAKEN_UP_AT: Final = 75
"""When so many percent of its jobs have come, if nothing runs at a trace's beginning."""
CPUS: Final = 4
MEMORY_GIB: Final = 16
"""Of a drawn cell's machine, as in the paper's open simulator: room for four of its tasks."""


class Ground(Protocol):
    """A cell, and the work for it."""

    @property
    def machines(self) -> Machines:
        """The cell."""
        ...

    @property
    def name(self) -> str:
        """What it is called in a document."""
        ...

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of scheduler for which jobs arrive; there are so many of each."""
        ...

    def scenario(self, point: Point, seconds: float, seed: int, stage: Stage) -> Scenario:
        """Return the work of a contest of so many seconds."""
        ...


@dataclass(frozen=True, eq=False)
class Drawn:
    """Uniform machines, jobs of one shape of task, and a level."""

    number: int
    tasks_mean: int
    """Of a job."""
    arrival_ms: int
    """Mean time between two jobs for each scheduler."""
    name: str = "drawn"
    kinds: tuple[str, ...] = (BATCH,)

    @property
    def machines(self) -> Machines:
        """The cell."""
        return uniform_machines(self.number, cpus=CPUS, memory_gib=MEMORY_GIB)

    def scenario(self, point: Point, seconds: float, seed: int, stage: Stage) -> Scenario:
        """Draw what is there at the start, and the jobs, which are the same for all rules."""
        for_prefill, for_jobs, for_ends = np.random.default_rng(seed).spawn(3)
        level = self.number * CPUS * point.fill // 100
        jobs = JobClass(
            scheduler=BATCH,
            gap_mean_s=self.arrival_ms / MS_PER_S / point.schedulers,
            tasks_mean=self.tasks_mean,
            duration_mean_s=1.0,  # the tide decides
        )
        machines = self.machines
        workload = Workload(
            self.name,
            machines,
            scattered(machines, level, Shape(), for_prefill),
            arrivals_of(jobs, seconds + TIMEOUT_S, for_jobs),
        )
        constant_load = partial(ConstantLoad, rng=for_ends, level=level)
        return Scenario(workload, self.kinds * point.schedulers, constant_load)


@dataclass(frozen=True, eq=False)
class Replayed:
    """A trace, so much faster that the busiest kind's schedulers get as many jobs as drawn ones."""

    trace: Workload
    arrival_ms: int
    """Mean time between two jobs for each scheduler of that kind."""

    @classmethod
    def of(cls, folder: Path, arrival_ms: int, seed: int) -> "Replayed":
        """Read the trace in a folder."""
        trace = read_trace(folder, np.random.default_rng(seed), {})
        if not trace.arrivals:
            raise BadInput(f"nothing arrives in the trace in {folder}", field="--trace")
        return cls(trace, arrival_ms)

    def in_use(self, settings: Settings, seed: int) -> "Replayed":
        """Return it from a moment on at which its machines are in use, if they are not at first."""
        if len(self.trace.prefill):
            return self
        return replace(self, trace=taken_up(self.trace, TAKEN_UP_AT, settings, seed))

    @property
    def machines(self) -> Machines:
        """The cell."""
        return self.trace.machines

    @property
    def name(self) -> str:
        """What the trace is called."""
        return self.trace.name

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of scheduler for which jobs arrive."""
        return tuple(sorted({one.spec.scheduler for one in self.trace.arrivals}))

    def scenario(self, point: Point, seconds: float, seed: int, stage: Stage) -> Scenario:
        """Fit the trace's own time to the schedulers'; its beginning, if it is longer."""
        jobs = Counter(one.spec.scheduler for one in self.trace.arrivals)
        span_s = max(jobs.values()) * self.arrival_ms / MS_PER_S / point.schedulers
        last_s = self.trace.arrivals[-1].submit_s
        factor = last_s / span_s if last_s else 1.0
        workload = self.trace.faster(factor) if last_s else self.trace.evenly_over(span_s)

        def nodes(store: Store) -> Nodes:
            retry = Retry(
                stage.clock, ignore, stage.settings, np.random.default_rng(seed), stage.stop
            )
            return Nodes(store, stage.clock, retry, speedup=factor)

        return Scenario(workload, self.kinds * point.schedulers, nodes)
