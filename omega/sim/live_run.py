"""An experiment whose jobs wait as they do live: queue, leases, parking, waking, synchronisation.

Goal     Run in virtual time just what would run on a live cell, and say what came of it by the same
         names as for the paper's experiments.
Promise  The processes, virtual nodes included, are those that run live; the cell is a memory store.
         A job that is parked at the end counts as given up. One seed, one result.
Source   docs/decisions/0031-one-process-two-drivers.md; Omega (EuroSys 2013), section 4.
"""

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from threading import Event as Flag
from typing import Any

from omega.events import Event, JobAttempted, TasksLost, TransactionJudged
from omega.lifecycle.states import State
from omega.model.arrays import integers
from omega.model.jobs import JobSpec
from omega.model.machines import MachineState
from omega.model.resources import COLUMNS, Kind
from omega.nodes.virtual import VirtualNodes, nothing_else
from omega.sim.experiment import SAMPLE_S, Advance, Architecture, Experiment, Use
from omega.sim.ledger import Ledger, mean, p90, ratio
from omega.sim.results import Result, of_schedulers, told
from omega.sim.virtual_cell import VirtualCell
from omega.store.status import JobStatus
from omega.sync.choice import ALONE, Sync
from omega.sync.partitioned import Turn
from omega.workload.arrivals import MS_PER_S, Arrival
from omega.workload.machine_events import MachineEvent

CPU = COLUMNS[Kind.CPU_MILLI]


@dataclass(frozen=True, kw_only=True)
class Synchronising:
    """How all schedulers of an experiment keep their views fresh."""

    by: Sync = Sync.DELTA
    gap_s: float = 1.0
    """Of partitioned synchronisation: in so long each has read everything once."""


class LiveRun:
    """Such an experiment under way."""

    def __init__(self, experiment: Experiment, sync: Synchronising, advance: Advance) -> None:
        assert experiment.architecture is Architecture.SHARED_STATE, "processes share one cell"
        self.experiment = experiment
        self._advance = advance
        self._cell = VirtualCell(experiment.workload.machines, seed=experiment.seed)
        self._there = self._used = 0
        self._tasks_lost = 0
        self._submitted: dict[str, list[int]] = {}
        """Jobs by workload."""
        self._start = self._cell.start(experiment.workload.prefill)
        self._expected = Counter(
            one.spec.scheduler
            for one in experiment.workload.arrivals
            if one.submit_s <= experiment.horizon_s
        )
        for arrival in experiment.workload.arrivals:
            if arrival.submit_s <= experiment.horizon_s:
                self._cell.at(arrival.submit_s, partial(self._submit, self._spec(arrival)))
        for event in experiment.machine_events:
            self._cell.at(event.time_s, partial(self._change, event))
        nodes = VirtualNodes(self._hear, speedup=1.0)
        self._cell.live(nodes.life(Flag(), nothing_else))
        self._ledgers = self._begin_schedulers(sync)
        self._sample(1)
        self._cell.engine.sample(SAMPLE_S, self._sample)

    @property
    def use(self) -> Use:
        """CPU of machines that are up, and what tasks use of it; nobody locks any."""
        use = self._cell.store.use()
        return Use(use.capacity[CPU], use.used[CPU], 0)

    @property
    def waiting(self) -> dict[str, int]:
        """How many jobs wait or are planned, by workload."""
        jobs, most = self._cell.store.jobs, len(self.experiment.workload.arrivals)
        return {
            name: sum(
                len(jobs(state=state, scheduler=name, jobs_max=most))
                for state in (State.PENDING, State.PARKED)
            )
            for name in sorted(self._expected)
        }

    def finish(self) -> Result:
        """Simulate up to the horizon, check every invariant of the cell, and sum up."""
        self._cell.run(self.experiment.horizon_s)
        self._cell.check()
        return self.result()

    def result(self) -> Result:
        """Sum up."""
        waiting = self.waiting
        rows: dict[str, list[dict[str, Any]]] = {}
        for name, ledgers in self._ledgers.items():
            for ledger in ledgers:
                ledger.waiting = waiting.get(name, 0) if ledger is ledgers[0] else 0
            rows[name] = [told(ledger, self.experiment.horizon_s) for ledger in ledgers]
        workloads = {
            name: {**of_schedulers(rows[name]), **self._of_jobs(name)} for name in self._ledgers
        }
        return Result(
            schedulers=[row for mine in rows.values() for row in mine],
            workloads=workloads,
            utilisation=ratio(self._used, self._there),
            locked=0.0,
            events=self._cell.engine.executed,
            tasks_placed=sum(one["tasks_placed"] for one in workloads.values()),
            tasks_lost=self._tasks_lost,
            start_tasks_lost=0,
            audited=0,
        )

    def _begin_schedulers(self, sync: Synchronising) -> dict[str, list[Ledger]]:
        """Let all replicas begin to work; return what each did with its time."""
        experiment, ledgers = self.experiment, dict[str, list[Ledger]]()
        replicas = [
            (name, number)
            for name in sorted(self._expected)
            for number in range(experiment.schedulers.get(name, 1))
        ]
        for turn, (name, number) in enumerate(replicas):
            ledger = Ledger(f"{name}-{number}")
            ledgers.setdefault(name, []).append(ledger)
            scheduler = experiment.scheduler(name)
            scheduler.kind = name
            is_partitioned = sync.by is Sync.PARTITIONED
            self._cell.schedule(
                scheduler,
                f"{number}",
                sync=sync.by,
                turn=Turn(turn, len(replicas), sync.gap_s) if is_partitioned else ALONE,
                decision_time=experiment.decision_times[name],
                sink=partial(self._book, ledger),
            )
        return ledgers

    def _book(self, ledger: Ledger, event: Event) -> None:
        """Book what a process did."""
        if isinstance(event, TransactionJudged):
            ledger.judge_event(event)
        elif isinstance(event, JobAttempted):
            ledger.begun += 1
            ledger.thought_s += event.thought_s
            ledger.found_no_room += event.left > 0 and not event.placed
        else:
            self._hear(event)

    def _hear(self, event: Event) -> None:
        if isinstance(event, TasksLost):
            self._tasks_lost += event.tasks

    def _submit(self, spec: JobSpec) -> None:
        self._submitted.setdefault(spec.scheduler, []).extend(self._cell.store.submit([spec]))

    def _spec(self, arrival: Arrival) -> JobSpec:
        """Return what is submitted: with its durations, and as a gang if that is wanted."""
        spec = arrival.spec
        if arrival.durations_s:
            groups = tuple(
                replace(group, duration_ms=round(it * MS_PER_S))
                for group, it in zip(spec.groups, arrival.durations_s, strict=True)
            )
            spec = replace(spec, groups=groups)
        return replace(spec, minimum=spec.tasks) if self.experiment.gangs else spec

    def _change(self, event: MachineEvent) -> None:
        machine, store = event.machine + 1, self._cell.store
        if event.capacity is not None:
            store.resize(machine, event.capacity, notice_ms=0)
        state = MachineState.OPEN if event.up else MachineState.DOWN
        store.set_state(integers([machine]), state)

    def _of_jobs(self, name: str) -> dict[str, Any]:
        """Return what became of a workload's jobs, by the names of `results.of_jobs`."""
        ids = self._submitted.get(name, [])
        jobs = [job for one in ids if (job := self._cell.store.job(one)) is not None]
        attempted = [job for job in jobs if job.attempts]
        first = [wait for job in attempted if (wait := _first_wait_s(job)) is not None]
        attempts = [float(job.attempts) for job in attempted]
        whole = sum(job.placed == job.tasks for job in jobs)
        return {
            "jobs": len(jobs),
            "jobs_attempted": len(attempted),
            "jobs_scheduled": whole,
            "jobs_unfinished": len(jobs) - whole,
            "jobs_abandoned": sum(job.state is State.PARKED for job in jobs),
            "tasks": sum(job.tasks for job in jobs),
            "tasks_placed": sum(job.placed for job in jobs),
            "wait_mean_s": mean(first),
            "wait_p90_s": p90(first),
            "attempts_mean": mean(attempts),
            "attempts_max": max((job.attempts for job in attempted), default=0),
        }

    def _sample(self, samples: int) -> None:
        use = self.use
        self._there += samples * use.there
        self._used += samples * use.used
        self._advance(self._cell.clock.now())


def _first_wait_s(job: JobStatus) -> float | None:
    if job.first_leased_ms is None:
        return None
    return (job.first_leased_ms - job.submitted_ms) / MS_PER_S
