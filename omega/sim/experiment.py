"""One experiment: a workload, an architecture and decision times, and its result.

Goal     Describe a simulation by one value, and its result by another.
Promise  Architectures differ in which scheduler takes a job, which view it has and how it commits;
         the code that decides and judges is the same. The same seed gives the same result.
Source   Omega (EuroSys 2013), sections 3 and 4; docs/papers/omega.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from itertools import count, cycle, pairwise
from threading import Event
from typing import NamedTuple
from uuid import UUID

import numpy as np

from omega.config import Settings
from omega.events import ignore
from omega.framework.process import Process
from omega.framework.scheduler import DecisionTime, Scheduler
from omega.limits import LIMITS, Limits
from omega.model.jobs import PRECEDENCE_GAP, JobSpec, LeasedJob
from omega.sim.allocator import Allocator, OfferPolicy
from omega.sim.audit import AuditedAllocator, AuditedCell, AuditedWorld
from omega.sim.cell import SimulatedCell
from omega.sim.cell_actor import CellActor
from omega.sim.daily import DailyLedgers
from omega.sim.engine import Engine, EngineClock, Order
from omega.sim.ledger import SimulatedJob, ratio
from omega.sim.machine_changes import play
from omega.sim.monolithic import DecisionTimeByKind, combined_scheduler
from omega.sim.offers import Framework
from omega.sim.prefill import StartState
from omega.sim.queue import GiveUpPolicy
from omega.sim.results import Result, of_jobs, of_scheduler, of_schedulers
from omega.sim.running import Running
from omega.sim.world import World
from omega.workload.arrivals import MS_PER_S, Arrival, Workload
from omega.workload.machine_events import MachineEvent

SAMPLE_S = 1.0
ONE_TRY = replace(LIMITS, tries_max=1, claims_per_transaction_max=LIMITS.tasks_per_job_max)
"""An attempt is one decision on all tasks of a job that have no place yet."""
ONE_JOB_A_LEASE = Settings.model_construct(jobs_per_lease_max=1)  # not from the environment
NO_TOKEN = UUID(int=0)
"""No process of such an experiment is killed, so its leases need no token."""

SchedulerActor = CellActor | Framework
"""A scheduler that takes the jobs of one workload or of several."""
Advance = Callable[[float], None]
"""Is called after each second, with the seconds of virtual time that have passed."""


class Architecture(StrEnum):
    """How schedulers divide the work and the cell."""

    MONOLITHIC = "monolithic"
    """One scheduler with the same decision time for batch jobs and service jobs."""
    MULTI_PATH = "multi-path"
    """One scheduler that decides faster on batch jobs."""
    STATIC_PARTITION = "static-partition"
    """Each workload has its own machines; its schedulers see only these."""
    TWO_LEVEL = "two-level"
    """An allocator offers all free amounts to the scheduler of one workload at a time."""
    SHARED_STATE = "shared-state"
    """The schedulers of all workloads see the whole cell and commit optimistically."""

    @property
    def is_monolithic(self) -> bool:
        """Whether one scheduler takes all jobs."""
        return self in {Architecture.MONOLITHIC, Architecture.MULTI_PATH}


class Use(NamedTuple):
    """CPU of a cell at one moment, in thousandths of a core."""

    there: int
    """The capacity of the open machines."""
    used: int
    """What tasks use."""
    locked: int
    """What offers lock."""


class Assignment(StrEnum):
    """Which of several schedulers of a workload takes a job."""

    DEALT = "dealt"
    """They take turns in order of submission, whatever their queues."""
    LEAST_LOADED = "least-loaded"
    """The scheduler with the fewest jobs queued or being decided on, as with a common queue."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """What is simulated."""

    workload: Workload
    architecture: Architecture
    scheduler: Callable[[str], Scheduler]
    """Makes the scheduler of a workload, with the conflict rule and granularity wanted."""
    decision_times: Mapping[str, DecisionTime]
    """By workload; `MONOLITHIC` expects the same for all workloads."""
    schedulers: Mapping[str, int] = field(default_factory=dict)
    """How many for each workload; by default one."""
    assignment: Assignment = Assignment.DEALT
    parts: Mapping[str, float] = field(default_factory=dict)
    """For a static partition, the share of the machines of each workload; by default equal."""
    offering: OfferPolicy = field(default_factory=OfferPolicy)
    gangs: bool = False
    """Whether each job is placed either whole or not at all."""
    give_up: GiveUpPolicy = field(default_factory=GiveUpPolicy)
    precedence_gap: int = PRECEDENCE_GAP
    """With the live queue: by how much a job's precedence must be higher for it to evict another's
    tasks."""
    start_queues_again: bool = False
    """With the live queue: whether tasks of the start state that lose their places queue again, for
    the scheduler of their own kind. Otherwise they are gone."""
    limits: Limits = ONE_TRY
    """Of an attempt: one try, as in the open simulator, or several, as in a live process."""
    horizon_s: float = 21_600.0
    seed: int = 0
    compiled: bool = False
    """Whether compiled loops place and claim jobs of one plain group that are placed at random.
    The results are the same. Needs the extra `fast`."""
    audited: bool = False
    """Whether the cell is compared with a shadow state at every change."""

    def __post_init__(self) -> None:
        assert not (self.machine_events and self.architecture is Architecture.TWO_LEVEL), (
            "machine events are not simulated with offers"
        )

    @property
    def machine_events(self) -> tuple[MachineEvent, ...]:
        """The machine events up to the horizon."""
        events = self.workload.machine_events
        return tuple(event for event in events if event.time_s <= self.horizon_s)

    @property
    def is_compiled(self) -> bool:
        """Whether loops are compiled: never if the run is audited or machines change."""
        return self.compiled and not self.audited and not self.machine_events

    def run(self, advance: Advance = lambda _: None) -> Result:
        """Simulate, from the start state to the horizon."""
        return self.begin(advance).finish()

    def begin(self, advance: Advance = lambda _: None) -> "Run":
        """Return the run before its first event, for a caller that wants to watch it."""
        return Run(self, advance)


class Run:
    """An experiment that is being simulated."""

    def __init__(self, experiment: Experiment, advance: Advance) -> None:
        self.experiment = experiment
        self.engine = Engine()
        self._clock = EngineClock(self.engine)
        self._stop = Event()
        self._advance = advance
        self._ids = count(1)
        self._there = self._used = self._locked = 0
        self._audited: list[AuditedCell] = []
        names = sorted({one.spec.scheduler for one in experiment.workload.arrivals})
        self._worlds = self._make_worlds(names)
        """By workload."""
        self.cells = [one.cell for one in dict.fromkeys(self._worlds.values())]
        self._actors = self._make_actors(names)
        """By workload, the schedulers that take its jobs."""
        self._jobs: dict[str, list[SimulatedJob]] = {name: [] for name in names}
        self._turns = {name: cycle(actors) for name, actors in self._actors.items()}
        self._arrivals = enumerate(experiment.workload.arrivals, start=1)
        self._daily = DailyLedgers(
            self.engine, [actor.ledger for actor in self._distinct()], experiment.horizon_s
        )
        self._expect_arrival()
        self._sample(1)
        self.engine.sample(SAMPLE_S, self._sample)

    @property
    def use(self) -> Use:
        """The CPU of all cells together."""
        there = used = locked = 0
        for cell in self.cells:
            there += cell.cpu_there
            used += cell.cpu_used
            locked += cell.cpu_locked
        return Use(there, used, locked)

    @property
    def waiting(self) -> dict[str, int]:
        """How many jobs are queued, by workload; workloads with a common queue share one entry."""
        names: dict[tuple[SchedulerActor, ...], list[str]] = {}
        for name, mine in self._actors.items():
            names.setdefault(tuple(mine), []).append(name)
        return {
            " and ".join(them): sum(actor.ledger.waiting for actor in actors)
            for actors, them in names.items()
        }

    def finish(self) -> Result:
        """Simulate up to the horizon, audit the cells if wanted, and return the result."""
        self.engine.run(self.experiment.horizon_s)
        for cell in self._audited:
            cell.audit()
        return self.result()

    def result(self) -> Result:
        """Return the result up to now."""
        horizon_s = self.experiment.horizon_s
        actors = self._distinct()
        daily = self._daily.measures(
            {name: [one.ledger for one in mine] for name, mine in self._actors.items()}
        )
        rows = [of_scheduler(actor.ledger, horizon_s) for actor in actors]
        by_actor = dict(zip(actors, rows, strict=True))
        workloads = {
            name: {
                **of_schedulers([by_actor[one] for one in mine]),
                **of_jobs(self._jobs[name]),
                **daily[name],
            }
            for name, mine in self._actors.items()
        }
        return Result(
            schedulers=rows,
            workloads=workloads,
            utilisation=ratio(self._used, self._there),
            locked=ratio(self._locked, self._there),
            events=self.engine.executed,
            tasks_placed=sum(one["tasks_placed"] for one in workloads.values()),
            tasks_lost=sum(one["tasks_lost"] for one in workloads.values()),
            start_tasks_lost=sum(
                world.start_tasks_lost for world in dict.fromkeys(self._worlds.values())
            ),
            tasks_evicted=0,
            start_tasks_evicted=0,
            evictions_per_hour=0.0,
            start={},
            audited=sum(cell.events for cell in self._audited),
        )

    def _distinct(self) -> list[SchedulerActor]:
        """Return each scheduler once; workloads may share one."""
        return list(dict.fromkeys(one for mine in self._actors.values() for one in mine))

    def _expect_arrival(self) -> None:
        """Schedule the next arrival if it comes before the horizon."""
        number, arrival = next(self._arrivals, (0, None))
        if arrival is not None and arrival.submit_s <= self.experiment.horizon_s:
            arrive = partial(self._arrive, number, arrival)
            self.engine.at(arrival.submit_s, Order.ARRIVAL, arrive)

    def _arrive(self, number: int, arrival: Arrival) -> None:
        name, spec = arrival.spec.scheduler, arrival.spec
        durations_s = arrival.durations_s or _durations_s(spec)
        job = SimulatedJob(name, arrival.submit_s, durations_s, self._lease(number, spec))
        self._jobs[name].append(job)
        if self.experiment.assignment is Assignment.LEAST_LOADED:
            actor = min(self._actors[name], key=lambda actor: actor.load)
        else:
            actor = next(self._turns[name])
        self._expect_arrival()
        actor.submit(job)

    def _make_worlds(self, names: Sequence[str]) -> dict[str, World]:
        """Make one world for all workloads, or one for each part of a static partition."""
        machines = len(self.experiment.workload.machines)
        if self.experiment.architecture is not Architecture.STATIC_PARTITION:
            return dict.fromkeys(names, self._world(slice(0, machines)))
        shares = np.array([self.experiment.parts.get(name, 1.0) for name in names])
        edges = np.rint(np.cumsum(shares) / shares.sum() * machines).astype(int).tolist()
        return {
            name: self._world(slice(first, last))
            for name, (first, last) in zip(names, pairwise([0, *edges]), strict=True)
        }

    def _world(self, part: slice) -> World:
        """Make a cell of these machines with the tasks that end on it, audited if wanted."""
        machines = self.experiment.workload.machines.part(part)
        start = StartState.of(self.experiment.workload.prefill, part)
        used = start.used(len(machines))
        events = self.experiment.machine_events
        running = Running() if events else None
        if self.experiment.audited:
            audited = AuditedCell(machines, used, self.engine, machines_change=bool(events))
            self._audited.append(audited)
            world: World = AuditedWorld(self.engine, audited, running)
        else:
            cell = SimulatedCell(
                machines, used, machines_change=bool(events), compiled=self.experiment.is_compiled
            )
            world = World(self.engine, cell, running)
        world.start(start)
        play(world, events, part)
        return world

    def _make_actors(self, names: Sequence[str]) -> dict[str, list[SchedulerActor]]:
        experiment = self.experiment
        if experiment.architecture.is_monolithic:
            alone = self._agent(names[0], self._process(names, "all"))
            return {name: [alone] for name in names}
        if experiment.architecture is Architecture.TWO_LEVEL:
            world = self._worlds[names[0]]
            allocates = AuditedAllocator if experiment.audited else Allocator
            allocator = allocates(world, experiment.offering)
            return {
                name: [self._framework(name, number, world, allocator) for number in self._of(name)]
                for name in names
            }
        return {
            name: [
                self._agent(name, self._process([name], f"{name}-{number}"))
                for number in self._of(name)
            ]
            for name in names
        }

    def _of(self, workload: str) -> range:
        return range(self.experiment.schedulers.get(workload, 1))

    def _agent(self, workload: str, process: Process) -> CellActor:
        """Make a scheduler; placement of one that is alone on its machines reads the present."""
        experiment = self.experiment
        partitioned = experiment.architecture is Architecture.STATIC_PARTITION
        return CellActor(
            process,
            self._worlds[workload],
            reads_current_state=experiment.architecture.is_monolithic
            or (partitioned and len(self._of(workload)) == 1),
            give_up=experiment.give_up,
            horizon_s=experiment.horizon_s,
        )

    def _framework(
        self, workload: str, number: int, world: World, allocator: Allocator
    ) -> Framework:
        return Framework(
            self._process([workload], f"{workload}-{number}"),
            world,
            allocator,
            give_up=self.experiment.give_up,
            horizon_s=self.experiment.horizon_s,
        )

    def _process(self, workloads: Sequence[str], name: str) -> Process:
        """Make the process that takes the jobs of some workloads."""
        experiment = self.experiment
        return Process(
            scheduler=combined_scheduler({one: experiment.scheduler(one) for one in workloads}),
            clock=self._clock,
            settings=ONE_JOB_A_LEASE,
            sink=ignore,
            replica=name,
            run_seed=experiment.seed,
            new_id=lambda: UUID(int=next(self._ids)),
            stop=self._stop,
            decision_time=DecisionTimeByKind(by_kind=experiment.decision_times),
            limits=experiment.limits,
            dispose=experiment.give_up.dispose,
            complete=False,
            driver_places=experiment.is_compiled,
        )

    def _lease(self, number: int, spec: JobSpec) -> LeasedJob:
        if self.experiment.gangs:
            spec = replace(spec, minimum=spec.tasks)
        return LeasedJob(number, NO_TOKEN, spec, np.arange(spec.tasks))

    def _sample(self, samples: int) -> None:
        use = self.use
        self._there += samples * use.there
        self._used += samples * use.used
        self._locked += samples * use.locked
        for earlier in reversed(range(samples)):  # a caller that plots wants the quiet seconds too
            self._advance(self.engine.now_s - earlier * SAMPLE_S)


def _durations_s(spec: JobSpec) -> tuple[float | None, ...]:
    return tuple(
        [
            None if group.duration_ms is None else group.duration_ms / MS_PER_S
            for group in spec.groups
        ]
    )
