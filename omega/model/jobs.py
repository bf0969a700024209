"""Jobs: what users submit, and what schedulers lease.

Goal     Describe all of a job that placement needs, and nothing about who places it.
Promise  Frozen. Tasks are numbered from 0 across the whole job, group by group.
Source   Omega (EuroSys 2013), sections 2.1 and 3.4; constraints after Sharma et al. (SoCC 2011).
"""

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Final
from uuid import UUID

import numpy as np

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.model.arrays import Amounts, Counts, Ids, Index, ascends, freeze, integers
from omega.model.elastic import Workers
from omega.model.programs import Program
from omega.model.resources import DEVICES, DEVICES_MAX, GPU_SLICES, KINDS


class Operator(Enum):
    """How a constraint compares a machine's attribute."""

    IN = "in"
    NOT_IN = "not_in"
    EXISTS = "exists"
    MISSING = "missing"


@dataclass(frozen=True)
class Constraint:
    """A condition on an attribute that a machine must meet to take a task."""

    attribute: str
    operator: Operator
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        compares = self.operator in (Operator.IN, Operator.NOT_IN)
        assert bool(self.values) == compares, "in and not_in take values; exists and missing none"

    def __str__(self) -> str:
        return " ".join(filter(None, (self.attribute, self.operator.value, "|".join(self.values))))


@dataclass(frozen=True)
class Preference:
    """A constraint that a task may do without, and how much it matters beside others."""

    constraint: Constraint
    weight: int = 1

    def __post_init__(self) -> None:
        assert 1 <= self.weight <= LIMITS.preference_weight_max


@dataclass(frozen=True, kw_only=True)
class TaskGroup:
    """Tasks of one shape."""

    tasks: int
    cpu_milli: int = 0
    memory_mib: int = 0
    disk_mib: int = 0
    gpus: int = 0
    """Number of GPUs, all on the task's one machine."""
    gpu_slices: int = GPU_SLICES
    """Slices of each GPU; below 1000 only for a single GPU, which other tasks may then share."""
    duration_ms: int | None = None
    """How long each task runs from its own placement; None: until it is cancelled."""
    constraints: tuple[Constraint, ...] = ()
    spread_over: str | None = None
    """Attribute (a failure domain) over whose values the tasks are to be spread evenly."""
    different_machines: bool = False
    """Whether no two tasks of the group may run on one machine."""
    program: Program | None = None
    """What each task runs on a real machine; None: nothing, as on virtual nodes."""
    preferences: tuple[Preference, ...] = ()
    """Machines that meet preferences of the highest total weight are used first."""
    patience_ms: int = 0
    """How long after the job was submitted its tasks wait for machines that meet all of them."""

    def __post_init__(self) -> None:
        assert self.tasks >= 1
        assert min(self.cpu_milli, self.memory_mib, self.disk_mib) >= 0
        assert 0 <= self.gpus <= DEVICES_MAX
        assert 1 <= self.gpu_slices <= GPU_SLICES
        assert self.gpu_slices == GPU_SLICES or self.gpus <= 1
        assert self.duration_ms is None or self.duration_ms >= 0
        assert self.program is None or self.duration_ms is None, "a program's end ends its task"
        assert 0 <= self.patience_ms <= LIMITS.duration_ms_max
        assert self.preferences or not self.patience_ms, "there is nothing to wait for"

    @property
    def is_plain(self) -> bool:
        """Whether every machine with enough CPU, memory and disk takes a task of the group."""
        asks_more = self.gpus or self.constraints or self.preferences
        return not (asks_more or self.spread_over or self.different_machines)

    @cached_property
    def demand(self) -> Amounts:
        """What a task needs besides GPUs, (kinds,), frozen; placement chooses the device slots."""
        row = np.zeros(KINDS, dtype=np.int64)
        row[: DEVICES.start] = self.cpu_milli, self.memory_mib, self.disk_mib
        freeze(row)
        return row


@dataclass(frozen=True)
class StepWork:
    """Work counted in steps, which after each interruption goes on from the last one made."""

    kind: str
    """What a step is, for whoever knows its rate: ResNet-18 (batch size 64)."""
    steps: int
    """The number of steps after which the job has ended."""
    weight: int = 1
    """How many times as much GPU time it is to have as a job of the weight 1, where a scheduler
    shares GPUs by weights."""

    def __post_init__(self) -> None:
        assert 1 <= self.steps <= LIMITS.steps_max
        assert 1 <= self.weight <= LIMITS.work_weight_max


PRECEDENCE_MIN: Final = -(2**31)
PRECEDENCE_MAX: Final = 2**31 - 1
"""Precedences have 32 bits in the database."""
PRECEDENCE_GAP: Final = 10
"""By how much a job's precedence must be higher for it to evict another's tasks, unless the cell's
owner says otherwise. Nomad's preemption has the same default."""
PRECEDENCE_GAP_MAX: Final = 2**31 - 1
NEVER_YIELDS: Final = 2**62
"""Above every precedence."""


def checked_precedence(precedence: int) -> int:
    """Return a precedence. Raises BadInput unless it has 32 bits."""
    if not -(2**31) <= precedence < 2**31:
        raise BadInput(f"a precedence is a whole number of 32 bits, not {precedence}")
    return precedence


def checked_gap(gap: int) -> int:
    """Return a gap of precedence. Raises BadInput unless it is from 1 to PRECEDENCE_GAP_MAX."""
    if not 1 <= gap <= PRECEDENCE_GAP_MAX:
        raise BadInput(f"a gap of precedence is 1 to {PRECEDENCE_GAP_MAX:,}, not {gap}")
    return gap


@dataclass(frozen=True, kw_only=True)
class JobSpec:
    """A job as submitted."""

    name: str
    scheduler: str
    """Kind of scheduler that is to place it: batch, service, ml-gpu or your own."""
    groups: tuple[TaskGroup, ...]
    tenant: str = "default"
    precedence: int = 0
    """On one scale common to all schedulers; a higher one is served first and may evict lower."""
    minimum: int = 0
    """0: tasks are placed as room is found. Above: a gang, placed when at least so many fit."""
    work: StepWork | None = None
    """Tasks run together until so many steps are made; None: each for its own duration."""
    preemptible: bool = True
    """Whether jobs of higher precedence may evict its tasks. A scheduler may evict tasks of a job
    that it has leased itself in any case."""
    workers: Workers | None = None
    """Its tasks are workers, and it may get more of them: an elastic job."""

    def __post_init__(self) -> None:
        assert self.groups
        assert 0 <= self.minimum <= self.tasks
        assert self.workers is None or self._may_have(self.workers)
        lasts = [group for group in self.groups if group.duration_ms is not None]
        assert self.work is None or not lasts, "steps end a job in steps, not durations"

    def _may_have(self, workers: Workers) -> bool:
        """Return whether a job of these groups may have these workers."""
        group, *others = self.groups
        ends_by_itself = group.duration_ms is not None or group.program is not None
        has_two_ends = bool(workers.phases) and ends_by_itself
        depends_on_siblings = group.spread_over is not None or group.different_machines
        return (
            not (others or has_two_ends or depends_on_siblings)
            and self.work is None
            and self.tasks <= workers.at_most
        )

    def yields_to(self, precedence_gap: int) -> int:
        """Return the least precedence to which its tasks yield; NEVER_YIELDS if they do not.

        `precedence_gap` is that of the cell, at least 1: by so much the other must be higher.
        """
        return self.precedence + precedence_gap if self.preemptible else NEVER_YIELDS

    @property
    def needs_all_tasks(self) -> bool:
        """Whether it is a gang of which every task runs, or none."""
        return self.minimum == self.tasks

    @property
    def is_plain(self) -> bool:
        """Whether the job has one group and that is plain."""
        return len(self.groups) == 1 and self.groups[0].is_plain

    @property
    def tasks(self) -> int:
        """The number of tasks of all groups."""
        return sum([group.tasks for group in self.groups])  # faster than an iterator


@dataclass(frozen=True, eq=False)
class LeasedJob:
    """A job that one scheduler replica may plan until the lease runs out."""

    id: int
    token: UUID
    spec: JobSpec
    unplaced: Index
    """Indices of the tasks that have never been placed, or lost their place; ascending."""
    placed_task: Index = field(default_factory=lambda: np.zeros(0, np.intp))
    """Tasks that run now, if placement must know them (spread, different machines) ..."""
    placed_machine: Ids = field(default_factory=integers)
    """... and the id of the machine of each."""
    placed: int = 0
    """Number of tasks that run or have ended."""
    fruitless: int = 0
    """Attempts since the last one that placed anything."""
    waited_ms: int | None = None
    """Time from submission to this lease, by the store's clock; None if not the first lease."""
    age_ms: int = 0
    """Time from submission to this lease, by the store's clock."""

    def __post_init__(self) -> None:
        assert ascends(self.unplaced)
        freeze(self.unplaced, self.placed_task, self.placed_machine)

    @property
    def lacking(self) -> int:
        """How many more tasks the gang needs to reach its minimum; 0 for a job that is no gang."""
        return max(0, self.spec.minimum - self.placed)

    def unplaced_in(self, group: int) -> Index:
        """Return the unplaced tasks of one task group."""
        if len(self.spec.groups) == 1:
            return self.unplaced
        lower, upper = np.searchsorted(self.unplaced, self._bounds(group))
        return self.unplaced[lower:upper]

    def machines_of(self, group: int) -> tuple[Ids, Counts]:
        """Return the ids of the machines that run tasks of a group, and how many each runs."""
        first, last = self._bounds(group)
        mine = self.placed_machine[(self.placed_task >= first) & (self.placed_task < last)]
        machines, counts = np.unique(mine, return_counts=True)
        return machines, counts.astype(np.int64)

    def _bounds(self, group: int) -> tuple[int, int]:
        first = sum(g.tasks for g in self.spec.groups[:group])
        return first, first + self.spec.groups[group].tasks
