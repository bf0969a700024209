"""An experiment with the live processes: queue, leases, parking, waking, synchronisation.

Goal     Run the live processes in virtual time, and report the same measures as the paper's
         experiments.
Promise  The processes, virtual nodes included, are the live ones with their default settings. The
         cell is a memory store. Schedulers that preempt do so, and evicted jobs queue again. A job
         that is parked at the end counts as given up. The replicas of a kind share one queue; what
         is left in it is counted for the first one. Evicted helpers count for the workload of the
         job that they help, each time as a job of their own. The same seed gives the same result.
Source   docs/decisions/0031-one-process-two-drivers.md; Omega (EuroSys 2013), section 4.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event as Flag
from typing import Any, Final

import numpy as np

from omega.events import Event, HelpersPlaced, JobAttempted, Sink, TransactionJudged, ignore
from omega.framework.scheduler import Scheduler
from omega.lifecycle.states import State
from omega.metrics.evictions import EvictionFold
from omega.model.arrays import Ids, integers
from omega.model.claims import ConflictRule
from omega.model.jobs import JobSpec
from omega.model.machines import MachineState
from omega.model.resources import Kind
from omega.nodes.virtual import VirtualNodes, nothing_else
from omega.sim.experiment import SAMPLE_S, Advance, Architecture, Experiment, Use
from omega.sim.ledger import Ledger, mean, p90, ratio
from omega.sim.results import S_PER_H, Result, of_evictions, of_scheduler, of_schedulers
from omega.sim.virtual import Latency, VirtualProcess, ignore_it
from omega.sim.virtual_cell import VirtualCell
from omega.store.status import JobStatus
from omega.sync.choice import ALONE, Sync
from omega.sync.turns import Turn
from omega.workload.arrivals import MS_PER_S, Arrival
from omega.workload.machine_events import MachineEvent

JOBS_MAX: Final = 2**62
START: Final = "start"
"""The workload that the start state's jobs count in.

Usually it is their kind as well: no scheduler takes it, so tasks that they lose are not placed
again. If an experiment's start state queues again, its jobs keep the kinds that they have."""


@dataclass(frozen=True, kw_only=True)
class SyncConfig:
    """How all schedulers of an experiment keep their views fresh."""

    by: Sync = Sync.DELTA
    gap_s: float = 1.0
    """For partitioned synchronisation: the seconds in which a replica reads the whole cell once."""
    parts: int = 0
    """Into how many parts the cell is divided, a multiple of the schedulers; 0: one for each."""

    def turn(self, number: int, of: int) -> Turn:
        """Return the turn of scheduler `number` of so many."""
        is_partitioned = self.by is Sync.PARTITIONED
        return Turn(number, of, self.gap_s, self.parts) if is_partitioned else ALONE


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What an experiment's processes find around them; by default as in the paper's simulator."""

    latencies: Mapping[str, Latency] = field(default_factory=dict)
    """By kind of scheduler, the seconds that the store takes to answer; none if not given."""
    rules: Mapping[str, Sequence[ConflictRule]] = field(default_factory=dict)
    """By kind of scheduler, the rule of each replica, where replicas differ in it. A kind that is
    named here has its replicas even if no job arrives for it: its start state may queue again."""
    speedup: float = 1.0
    """Seconds of a task's duration that pass in one second."""
    prepare: Callable[[VirtualCell], object] = lambda _: None
    """Is called with the cell once its start state runs, before there are any processes."""


@dataclass(eq=False)
class _Job:
    """What was observed of a job."""

    workload: str
    submitted_s: float
    attempts: int = 0
    """How many are finished."""
    first_wait_s: float | None = None


class LiveRun:
    """An experiment with live processes that is being simulated."""

    def __init__(
        self,
        experiment: Experiment,
        sync: SyncConfig,
        advance: Advance = ignore_it,
        *,
        sink: Sink = ignore,
        surroundings: Surroundings | None = None,
    ) -> None:
        """`advance` is called after each second, `sink` with each event."""
        assert experiment.architecture is Architecture.SHARED_STATE, "processes share one cell"
        self.experiment = experiment
        self._advance = advance
        self._surroundings = surroundings or Surroundings()
        self.sink = sink
        self.processes: dict[str, list[VirtualProcess]] = {}
        """The replicas of each kind of scheduler."""
        self.cell = VirtualCell(experiment.workload.machines, seed=experiment.seed)
        self.cell.store.set_precedence_gap(experiment.precedence_gap)
        self._there = self._used = 0
        self._lost: Counter[str] = Counter()
        """How many tasks were lost with machines, by workload."""
        self.evictions = EvictionFold(self.cell.clock, self._workload_of, self.is_whole)
        self._jobs: dict[int, _Job] = {}
        """The jobs that arrived."""
        self._begin_start_state()
        self._surroundings.prepare(self.cell)
        arrivals = experiment.workload.arrivals
        self._names = sorted(
            {arrival.spec.scheduler for arrival in arrivals} | self._surroundings.rules.keys()
        )
        for arrival in arrivals:
            if arrival.submit_s <= experiment.horizon_s:
                submit = partial(self._submit, self._spec(arrival))
                self.cell.when_jobs_arrive(arrival.submit_s, submit)
        for event in experiment.machine_events:
            self.cell.at(event.time_s, partial(self._change, event))
        nodes = VirtualNodes(ignore, speedup=self._surroundings.speedup)
        self.cell.live(nodes.life(Flag(), nothing_else))
        self._ledgers = self._begin_schedulers(sync)
        self._sample(1)
        self.cell.engine.sample(SAMPLE_S, self._sample)

    @property
    def use(self) -> Use:
        """CPU of the open machines, and what tasks use of it; offers do not exist here."""
        rows = self.cell.store.snapshot().rows
        is_open = rows.state == MachineState.OPEN
        there, used = (
            int(amounts[is_open, Kind.CPU_MILLI].sum()) for amounts in (rows.capacity, rows.used)
        )
        return Use(there, used, 0)

    @property
    def arrived(self) -> list[JobStatus]:
        """The jobs that have arrived, as they are now, by id."""
        found = [self.cell.store.job(job) for job in sorted(self._jobs)]
        return [status for status in found if status is not None]

    @property
    def waiting(self) -> dict[str, int]:
        """How many jobs are pending or being planned, by workload."""
        return {name: len(self._of(name, State.PENDING, State.PLANNING)) for name in self._names}

    def finish(self) -> Result:
        """Simulate up to the horizon, check every invariant of the cell, and return the result."""
        self.cell.run(self.experiment.horizon_s)
        self.cell.check()
        return self.result()

    def result(self) -> Result:
        """Return the result up to now."""
        rows: dict[str, list[dict[str, Any]]] = {}
        for name, ledgers in self._ledgers.items():
            ledgers[0].waiting = self.waiting[name]
            ledgers[0].abandoned = len(self._of(name, State.PARKED))
            rows[name] = [of_scheduler(ledger, self.experiment.horizon_s) for ledger in ledgers]
        workloads = {
            name: {**of_schedulers(rows[name]), **self._of_jobs(name)} for name in self._ledgers
        }
        start = self._of_evictions(START)
        evicted = {name: one["tasks_evicted"] for name, one in workloads.items()}
        all_evicted = sum(evicted.values()) + start["tasks_evicted"]
        return Result(
            schedulers=[row for mine in rows.values() for row in mine],
            workloads=workloads,
            utilisation=ratio(self._used, self._there),
            locked=0.0,
            events=self.cell.engine.executed,
            tasks_placed=sum(one["tasks_placed"] for one in workloads.values()),
            tasks_lost=self._lost.total() - self._lost[START],
            start_tasks_lost=self._lost[START],
            tasks_evicted=sum(evicted.values()),
            start_tasks_evicted=start["tasks_evicted"],
            evictions_per_hour=all_evicted / self.experiment.horizon_s * S_PER_H,
            start=start,
            audited=0,
        )

    def _begin_schedulers(self, sync: SyncConfig) -> dict[str, list[Ledger]]:
        """Start all replicas; return their ledgers by workload."""
        experiment, ledgers = self.experiment, dict[str, list[Ledger]]()
        replicas = [
            (name, number)
            for name in self._names
            for number in range(experiment.schedulers.get(name, 1))
        ]
        for turn, (name, number) in enumerate(replicas):
            ledger = Ledger(f"{name}-{number}")
            ledgers.setdefault(name, []).append(ledger)
            scheduler = self._scheduler(name, number)
            process = self.cell.schedule(
                scheduler,
                f"{number}",
                sync=sync.by,
                turn=sync.turn(turn, len(replicas)),
                decision_time=experiment.decision_times[name],
                sink=_LedgerSink(self, ledger, in_rounds=scheduler.rounds is not None),
                thinks=partial(self._think, ledger),
                latency=self._surroundings.latencies.get(name),
            )
            self.processes.setdefault(name, []).append(process)
        return ledgers

    def _scheduler(self, name: str, number: int) -> Scheduler:
        """Make a replica of a kind, with its rule."""
        scheduler = self.experiment.scheduler(name)
        scheduler.kind = name
        if rules := self._surroundings.rules.get(name):
            scheduler.rule = rules[number]
        return scheduler

    def _think(self, ledger: Ledger, seconds: float) -> None:
        ledger.begin(seconds, before_s=self.experiment.horizon_s - self.cell.clock.now())

    def attempted(self, event: JobAttempted, *, in_rounds: bool) -> None:
        """Count an attempt that is over, and the wait before the first one.

        A round's decision time is divided among its jobs: it does not tell when the round began.
        """
        job = self._jobs.get(event.job)
        if job is None:
            return  # of the start state
        job.attempts += 1
        if job.first_wait_s is None:
            job.first_wait_s = (
                self._waited_for_lease_s(event.job)
                if in_rounds
                else self.cell.clock.now() - event.thought_s - job.submitted_s
            )

    def _waited_for_lease_s(self, job: int) -> float | None:
        status = self.cell.store.job(job)
        if status is None or status.first_leased_ms is None:
            return None
        return (status.first_leased_ms - status.submitted_ms) / MS_PER_S

    def _begin_start_state(self) -> None:
        prefill = self.experiment.workload.prefill
        jobs = prefill.jobs
        if not self.experiment.start_queues_again:
            jobs = tuple(replace(spec, scheduler=START) for spec in jobs)
        self.cell.start(replace(prefill, jobs=jobs))

    def _workload_of(self, job: int) -> str:
        """Return the workload of a job; helpers count for the job that they help."""
        status = self.cell.store.job(job)
        if status is not None and status.parent is not None:
            job = status.parent
        return self._jobs[job].workload if job in self._jobs else START

    def is_whole(self, job: int) -> bool:
        """Return whether none of a job's tasks lacks a place."""
        status = self.cell.store.job(job)
        return status is not None and status.placed == status.tasks

    def _submit(self, spec: JobSpec) -> None:
        (job,) = self.cell.store.submit([spec])
        self._jobs[job] = _Job(spec.scheduler, self.cell.clock.now())

    def _spec(self, arrival: Arrival) -> JobSpec:
        """Return the spec to submit: with durations, and as a gang if that is wanted."""
        spec = arrival.spec
        if arrival.durations_s:
            groups = tuple(
                replace(group, duration_ms=round(it * MS_PER_S))
                for group, it in zip(spec.groups, arrival.durations_s, strict=True)
            )
            spec = replace(spec, groups=groups)
        return replace(spec, minimum=spec.tasks) if self.experiment.gangs else spec

    def _change(self, event: MachineEvent) -> None:
        """Change a machine as an operator's commands would."""
        machine, store = event.machine + 1, self.cell.store
        if event.capacity is not None:
            # What it runs goes on until it ends, as in the paper's experiments.
            horizon_ms = round(self.experiment.horizon_s * MS_PER_S)
            store.resize(machine, event.capacity, notice_ms=horizon_ms)
        state = MachineState.OPEN if event.up else MachineState.DOWN
        store.set_state(integers([machine]), state)
        if not event.up:
            self._lose_tasks(integers([machine]))

    def _lose_tasks(self, machine: Ids) -> None:
        """Evict what runs on a machine that is down; count it for the workloads that lose it."""
        store = self.cell.store
        there = np.unique(store.allocations_on(machine).job).tolist()
        before = {job: self._placed(job) for job in there}
        store.lose_tasks(machine)
        for job, placed in before.items():
            self._lost[self._workload_of(job)] += placed - self._placed(job)

    def _placed(self, job: int) -> int:
        status = self.cell.store.job(job)
        return 0 if status is None else status.placed

    def _of(self, name: str, *states: State) -> list[JobStatus]:
        """Return the jobs of a workload that arrived and are in one of these states, or in any."""
        every = self.cell.store.jobs
        found = [every(state=one, scheduler=name, jobs_max=JOBS_MAX) for one in states or (None,)]
        return [job for jobs in found for job in jobs if job.id in self._jobs]

    def _of_jobs(self, name: str) -> dict[str, Any]:
        """Return the measures of a workload's jobs, by the names of `results.of_jobs`.

        A measure is None where it is not known: waits between attempts.
        """
        jobs = self._of(name)
        seen = [self._jobs[job.id] for job in jobs]
        attempted = [one for one in seen if one.attempts]
        first = [one.first_wait_s for one in attempted if one.first_wait_s is not None]
        whole = sum(job.placed == job.tasks for job in jobs)
        return {
            "jobs": len(jobs),
            "jobs_attempted": len(attempted),
            "jobs_scheduled": whole,
            "jobs_unfinished": len(jobs) - whole,
            "jobs_abandoned": sum(job.state is State.PARKED for job in jobs),
            "tasks": sum(job.tasks for job in jobs),
            "tasks_placed": sum(job.placed for job in jobs),
            "tasks_lost": self._lost[name],
            **self._of_evictions(name),
            "wait_mean_s": mean(first),
            "wait_p90_s": p90(first),
            "wait_until_scheduled_mean_s": None,
            "wait_until_scheduled_p90_s": None,
            "attempts_mean": mean([float(one.attempts) for one in attempted]),
            "attempts_max": max((one.attempts for one in attempted), default=0),
        }

    def _of_evictions(self, name: str) -> dict[str, Any]:
        """Return the measures of evictions of a workload's jobs."""
        return of_evictions(self.evictions, name, [*self._names, START], self.experiment.horizon_s)

    def _sample(self, samples: int) -> None:
        use = self.use
        self._there += samples * use.there
        self._used += samples * use.used
        self._advance(self.cell.clock.now())


class _LedgerSink:
    """Receives the events of one process, and counts them in its ledger."""

    def __init__(self, run: LiveRun, ledger: Ledger, *, in_rounds: bool) -> None:
        self._run = run
        self._ledger = ledger
        self._in_rounds = in_rounds
        self._claimed = False
        """Whether the current attempt has claimed something."""

    def __call__(self, event: Event) -> None:
        self._run.sink(event)
        self._run.evictions(event)
        match event:
            case TransactionJudged():
                self._ledger.judge_event(event)
                self._claimed = True
            case JobAttempted():
                self._run.attempted(event, in_rounds=self._in_rounds)
                # In a round only tries that claim something count as tries of the job.
                claimed = event.tries > 0 if self._in_rounds else self._claimed
                self._ledger.found_no_room += not claimed
                self._claimed = False
            case HelpersPlaced():
                self._claimed = False  # that was no attempt at a job
            case _:
                pass
