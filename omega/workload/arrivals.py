"""A workload: machines, the tasks that run on them at the start, and jobs that arrive.

Goal     One form for all work, drawn or recorded, so that its users need not know any trace.
Promise  The start state fits its machines in every kind. Arrivals are ordered by submission.
Source   docs/decisions/0012-workloads.md; the start state of Omega (EuroSys 2013), section 4.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from omega.model.arrays import Amounts, Ids, Index, every_kind, freeze
from omega.model.claims import Claims
from omega.model.jobs import JobSpec
from omega.model.machines import Machines
from omega.model.resources import KINDS
from omega.workload.machine_events import MachineEvent

BATCH = "batch"
SERVICE = "service"
ML_GPU = "ml-gpu"
"""The kinds of scheduler that workloads address their jobs to."""

MS_PER_S = 1_000


@dataclass(frozen=True)
class Arrival:
    """A job and when it is submitted."""

    submit_s: float
    """Seconds from the start of the workload."""
    spec: JobSpec
    durations_s: tuple[float, ...] | None = None
    """Duration of each group's tasks, where it is known more exactly than in milliseconds."""


@dataclass(frozen=True, eq=False)
class Prefill:
    """Tasks that run at the start, as columns with one row per task, ordered by job, then by task.

    The caller submits `jobs`, leases them and commits `claims` for each of `batches`, by the
    fit rule and incrementally: the ordinary way.
    """

    jobs: tuple[JobSpec, ...]
    job: Index
    """Position in `jobs`."""
    task: Index
    """Index of the task within its job."""
    machine: Index
    """Position in the workload's machines."""
    shape: Index
    """Row of `shapes` that the task takes of its machine."""
    shapes: Amounts
    """(shapes, kinds), device slots included."""

    def __post_init__(self) -> None:
        assert len(self.job) == len(self.task) == len(self.machine) == len(self.shape)
        steps = np.diff(self.job)
        assert (steps >= 0).all(), "rows are ordered by job"
        assert (np.diff(self.task)[steps == 0] > 0).all(), "and within a job by task"
        freeze(self.job, self.task, self.machine, self.shape, self.shapes)

    def __len__(self) -> int:
        return len(self.task)

    def used(self, machines: int) -> Amounts:
        """Return what the tasks take of each machine, as a new array (machines, kinds)."""
        used = np.zeros((machines, KINDS), dtype=np.int64)
        np.add.at(used, self.machine, self.shapes[self.shape])
        return used

    def batches(self, *, jobs_max: int, claims_max: int) -> Iterator[tuple[tuple[int, slice], ...]]:
        """Cut the tasks into transactions: for each, (position in `jobs`, rows) pairs.

        A job of more than `claims_max` tasks is spread over several transactions.
        """
        assert jobs_max >= 1
        assert claims_max >= 1
        edges = [*np.flatnonzero(np.diff(self.job, prepend=-1)).tolist(), len(self)]
        parts: list[tuple[int, slice]] = []
        room = claims_max
        for first, last in pairwise(edges):
            while first < last:
                upto = min(last, first + room)
                parts.append((int(self.job[first]), slice(first, upto)))
                room -= upto - first
                first = upto  # noqa: PLW2901 - what is left of the job
                if room == 0 or len(parts) == jobs_max:
                    yield tuple(parts)
                    parts, room = [], claims_max
        if parts:
            yield tuple(parts)

    def claims(self, rows: slice, machine_ids: Ids) -> Claims:
        """Return the claims of some rows of one job; `machine_ids` has an id for each machine."""
        shapes, shape = np.unique(self.shape[rows], return_inverse=True)
        machine = machine_ids[self.machine[rows]]
        return Claims(
            task=self.task[rows].copy(),
            machine=machine,
            seen=np.zeros(len(machine), dtype=np.int64),
            shape=shape.astype(np.intp),
            shapes=self.shapes[shapes],
        )

    def not_preemptible(self) -> "Prefill":
        """Return the same tasks, which no claim of another scheduler's job may evict."""
        return replace(self, jobs=tuple(replace(spec, preemptible=False) for spec in self.jobs))

    @classmethod
    def none(cls) -> "Prefill":
        """Return no tasks: the cell is empty at the start."""
        nothing = np.zeros(0, dtype=np.intp)
        return cls((), nothing, nothing, nothing, nothing, np.zeros((0, KINDS), dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Workload:
    """Machines, what runs on them at the start, and what arrives."""

    name: str
    machines: Machines
    prefill: Prefill
    arrivals: tuple[Arrival, ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    """How many items were read, left out or changed, by name."""
    notes: tuple[str, ...] = ()
    """The same for people: one sentence for each difference from the source."""
    machine_events: tuple[MachineEvent, ...] = ()
    """Changes of the machines while it runs; only simulations apply them."""

    def __post_init__(self) -> None:
        assert all(
            earlier.submit_s <= later.submit_s for earlier, later in pairwise(self.arrivals)
        ), "arrivals are ordered by submission"
        assert all(
            earlier.time_s <= later.time_s for earlier, later in pairwise(self.machine_events)
        ), "machine events are ordered by time"
        used = self.prefill.used(len(self.machines))
        assert every_kind(used <= self.machines.capacity).all(), "the start state fits"

    @property
    def tasks(self) -> int:
        """Tasks of all arrivals."""
        return sum(arrival.spec.tasks for arrival in self.arrivals)

    def faster(self, factor: float) -> "Workload":
        """Return the workload with jobs arriving `factor` times as fast.

        Durations and machine events stay: the nodes that end tasks have a speed-up of their own.
        """
        assert factor > 0
        return replace(
            self,
            arrivals=tuple(replace(a, submit_s=a.submit_s / factor) for a in self.arrivals),
        )

    def evenly_over(self, seconds: float) -> "Workload":
        """Return the workload with its jobs arriving at equal gaps, in the same order."""
        assert seconds >= 0
        gap_s = seconds / max(1, len(self.arrivals))
        return replace(
            self,
            arrivals=tuple(
                replace(a, submit_s=number * gap_s) for number, a in enumerate(self.arrivals)
            ),
        )
