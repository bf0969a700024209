"""One run: a workload, an architecture, decision times, and what came of it.

Goal     Say in one value what is simulated, and in one what it came to.
Promise  Architectures differ in who takes which jobs, what they see and how they commit; the code
         that decides and judges is the same. One seed, one result, to the last digit.
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
from omega.model.jobs import JobSpec, LeasedJob
from omega.sim.agent import Agent
from omega.sim.allocator import Allocator, Offering
from omega.sim.audit import AuditedAllocator, AuditedCell, AuditedWorld
from omega.sim.cell import SimulatedCell
from omega.sim.engine import Engine, EngineClock, Order
from omega.sim.ledger import SimulatedJob, ratio
from omega.sim.machine_changes import play
from omega.sim.monolithic import DecisionTimeByKind, one_for_all
from omega.sim.offers import Framework
from omega.sim.prefill import StartState
from omega.sim.queue import GiveUpPolicy
from omega.sim.results import Result, of_jobs, of_schedulers, told
from omega.sim.running import Running
from omega.sim.world import World
from omega.workload.arrivals import MS_PER_S, Arrival, Workload
from omega.workload.machine_events import MachineEvent

SAMPLE_S = 1.0
ONE_TRY = replace(LIMITS, tries_max=1, claims_per_transaction_max=LIMITS.tasks_per_job_max)
"""An attempt is one decision on all that is left of a job."""
ONE_JOB_A_LEASE = Settings.model_construct(jobs_per_lease_max=1)  # whatever the environment says
NO_TOKEN = UUID(int=0)
"""Leases are for processes that may die; in virtual time none does."""

Lane = Agent | Framework
"""Who takes jobs of one workload, or of several."""
Advance = Callable[[float], None]
"""Told how many seconds of virtual time have passed."""


class Architecture(StrEnum):
    """How schedulers divide the work and the cell."""

    MONOLITHIC = "monolithic"
    """One scheduler, which takes as long for a batch job as for a service job."""
    MULTI_PATH = "multi-path"
    """One scheduler with a faster path for batch jobs."""
    STATIC_PARTITION = "static-partition"
    """Each workload has machines of its own, and schedulers that see no others."""
    TWO_LEVEL = "two-level"
    """An allocator offers what is free, to one workload's scheduler at a time."""
    SHARED_STATE = "shared-state"
    """Schedulers of each kind, which see all and commit optimistically."""

    @property
    def is_monolithic(self) -> bool:
        """Whether one scheduler takes all jobs."""
        return self in {Architecture.MONOLITHIC, Architecture.MULTI_PATH}


class Use(NamedTuple):
    """CPU of a cell at a moment, in thousandths of a core."""

    there: int
    """Of machines that are up."""
    used: int
    """By tasks."""
    locked: int
    """By offers."""


class Assignment(StrEnum):
    """Which of several schedulers takes a job."""

    DEALT = "dealt"
    """Each the next one, in order of submission, whatever they have to do."""
    LEAST_LOADED = "least-loaded"
    """The one with the fewest jobs that wait or are being decided on, as of a common queue."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """What is simulated."""

    workload: Workload
    architecture: Architecture
    scheduler: Callable[[str], Scheduler]
    """Makes one for a workload, with the conflict rule and the granularity wanted."""
    decision_times: Mapping[str, DecisionTime]
    """By workload; one scheduler with a single path has the same for all."""
    schedulers: Mapping[str, int] = field(default_factory=dict)
    """How many for each workload; one if not said."""
    assignment: Assignment = Assignment.DEALT
    parts: Mapping[str, float] = field(default_factory=dict)
    """Of a static partition: the share of machines of each workload; equal if not said."""
    offering: Offering = field(default_factory=Offering)
    gangs: bool = False
    """Whether each job is placed whole or not at all."""
    give_up: GiveUpPolicy = field(default_factory=GiveUpPolicy)
    limits: Limits = ONE_TRY
    """Of an attempt: one try as in the open simulator, or several at once, as live."""
    horizon_s: float = 21_600.0
    seed: int = 0
    compiled: bool = False
    """Whether jobs of one plain group, where they are drawn, are placed and claimed by compiled
    loops: with the same results, if the extra `fast` is there."""
    audited: bool = False
    """Whether a shadow state is kept, and compared with the cell at every change."""

    def __post_init__(self) -> None:
        assert not (self.machine_events and self.architecture is Architecture.TWO_LEVEL), (
            "machine events are not simulated with offers"
        )

    @property
    def machine_events(self) -> tuple[MachineEvent, ...]:
        """What happens to machines up to the horizon."""
        events = self.workload.machine_events
        return tuple(event for event in events if event.time_s <= self.horizon_s)

    @property
    def is_compiled(self) -> bool:
        """Whether anything is compiled: not where each change is audited or machines change."""
        return self.compiled and not self.audited and not self.machine_events

    def run(self, advance: Advance = lambda _: None) -> Result:
        """Simulate, from an idle start to the horizon."""
        return self.begin(advance).finish()

    def begin(self, advance: Advance = lambda _: None) -> "Run":
        """Return it about to begin, for whoever wants to look on."""
        return Run(self, advance)


class Run:
    """An experiment under way."""

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
        self._lanes = self._make_lanes(names)
        """By workload, those that take its jobs."""
        self._jobs: dict[str, list[SimulatedJob]] = {name: [] for name in names}
        self._turns = {name: cycle(lanes) for name, lanes in self._lanes.items()}
        self._arrivals = enumerate(experiment.workload.arrivals, start=1)
        self._expect_arrival()
        self._sample(1)
        self.engine.sample(SAMPLE_S, self._sample)

    @property
    def use(self) -> Use:
        """CPU of all cells, and what is used and locked of it."""
        there = used = locked = 0
        for cell in self.cells:
            there += cell.cpu_there
            used += cell.cpu_used
            locked += cell.cpu_locked
        return Use(there, used, locked)

    @property
    def waiting(self) -> dict[str, int]:
        """How many jobs are in queues, by workload, or by all those that share their queues."""
        names: dict[tuple[Lane, ...], list[str]] = {}
        for name, mine in self._lanes.items():
            names.setdefault(tuple(mine), []).append(name)
        return {
            " and ".join(them): sum(lane.ledger.waiting for lane in lanes)
            for lanes, them in names.items()
        }

    def finish(self) -> Result:
        """Simulate up to the horizon, have audited cells audited once more, and sum up."""
        self.engine.run(self.experiment.horizon_s)
        for cell in self._audited:
            cell.audit()
        return self.result()

    def result(self) -> Result:
        """Sum up."""
        horizon_s = self.experiment.horizon_s
        lanes = list(dict.fromkeys(one for mine in self._lanes.values() for one in mine))
        rows = [told(lane.ledger, horizon_s) for lane in lanes]
        by_lane = dict(zip(lanes, rows, strict=True))
        workloads = {
            name: {**of_schedulers([by_lane[one] for one in mine]), **of_jobs(self._jobs[name])}
            for name, mine in self._lanes.items()
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
            audited=sum(cell.events for cell in self._audited),
        )

    def _expect_arrival(self) -> None:
        """Have the next job arrive when its time comes, if that is before the horizon."""
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
            lane = min(self._lanes[name], key=lambda lane: lane.load)
        else:
            lane = next(self._turns[name])
        self._expect_arrival()
        lane.submit(job)

    def _make_worlds(self, names: Sequence[str]) -> dict[str, World]:
        """Make one cell for all, or of each part of it one."""
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
        """Make a world of these machines; an audited one, if that is wanted."""
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

    def _make_lanes(self, names: Sequence[str]) -> dict[str, list[Lane]]:
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

    def _agent(self, workload: str, process: Process) -> Agent:
        """Make a scheduler; one that is alone on its machines need not look at an old view."""
        experiment = self.experiment
        partitioned = experiment.architecture is Architecture.STATIC_PARTITION
        return Agent(
            process,
            self._worlds[workload],
            sees_the_present=experiment.architecture.is_monolithic
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
            scheduler=one_for_all({one: experiment.scheduler(one) for one in workloads}),
            clock=self._clock,
            settings=ONE_JOB_A_LEASE,
            sink=ignore,
            replica=name,
            run_seed=experiment.seed,
            new_id=lambda: UUID(int=next(self._ids)),
            stop=self._stop,
            decision_time=DecisionTimeByKind(by_kind=experiment.decision_times),
            limits=experiment.limits,
            policy=experiment.give_up.policy,
            attends_to_cell=False,
            driver_draws=experiment.is_compiled,
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
        self._advance(self.engine.now_s)


def _durations_s(spec: JobSpec) -> tuple[float | None, ...]:
    return tuple(
        [
            None if group.duration_ms is None else group.duration_ms / MS_PER_S
            for group in spec.groups
        ]
    )
