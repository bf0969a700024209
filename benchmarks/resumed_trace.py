"""A trace from a later time on: tasks that have arrived by then and still run are at the start.

The product's schedulers place these tasks, kind by kind, in the trace's order, on a store in
memory. Tasks that do not fit are left out.
"""

from collections.abc import Mapping
from dataclasses import replace
from threading import Event

import numpy as np

from benchmarks.rival import MS_PER_S
from omega.clock import ManualClock
from omega.config import Settings
from omega.events import ignore
from omega.framework.registry import find_scheduler
from omega.framework.runner import SchedulerProcess
from omega.model.allocations import Allocations
from omega.model.arrays import Ids
from omega.model.jobs import JobSpec
from omega.store.memory.store import MemoryStore
from omega.workload.arrivals import Arrival, Prefill, Workload
from omega.workload.tasks import NO_END, SCHEDULERS, Tasks, prefill_of


def resumed_trace(trace: Workload, percent: int, settings: Settings, seed: int) -> Workload:
    """Return the rest of the trace when so many percent of its jobs have arrived."""
    first = len(trace.arrivals) * percent // 100
    now_s = trace.arrivals[first].submit_s
    before = [left for one in trace.arrivals[:first] if (left := _left(one, now_s)) is not None]
    clock = ManualClock()
    store = MemoryStore(clock)
    machines = store.add_machines(trace.machines)
    ids = store.submit(before)
    for kind in sorted({spec.scheduler for spec in before}):
        process = SchedulerProcess(
            scheduler=find_scheduler(kind)(),
            store=store,
            open_store=lambda: store,
            clock=clock,
            settings=settings,
            sink=ignore,
            replica="0",
            run_seed=seed,
            stop=Event(),
        )
        while process.step():
            pass
    running = store.allocations()
    return replace(
        trace,
        prefill=_prefill(running, dict(zip(ids, before, strict=True)), machines),
        arrivals=tuple(Arrival(one.submit_s - now_s, one.spec) for one in trace.arrivals[first:]),
    )


def _left(arrival: Arrival, now_s: float) -> JobSpec | None:
    """Return the groups of a job that still run, with the time left; None if it has ended."""
    passed_ms = round((now_s - arrival.submit_s) * MS_PER_S)
    groups = tuple(
        group
        if group.duration_ms is None
        else replace(group, duration_ms=group.duration_ms - passed_ms)
        for group in arrival.spec.groups
        if group.duration_ms is None or group.duration_ms > passed_ms
    )
    return replace(arrival.spec, groups=groups, minimum=0) if groups else None


def _prefill(running: Allocations, specs: Mapping[int, JobSpec], machines: Ids) -> Prefill:
    """Return the running tasks as few jobs; the owners of tasks do not matter in a contest."""
    mine = [specs[job] for job in running.job.tolist()]
    columns = Tasks(
        owner=np.zeros_like(running.job),
        scheduler=np.array([SCHEDULERS.index(spec.scheduler) for spec in mine], dtype=np.int32),
        precedence=np.array([spec.precedence for spec in mine], dtype=np.int64),
        amounts=running.amounts,
        different_machines=np.zeros(len(mine), dtype=np.bool_),
        duration_ms=np.where(running.duration_ms < 0, NO_END, running.duration_ms),
    )
    at = np.searchsorted(machines, running.machine).astype(np.intp)
    return prefill_of(columns, at, lambda _: "running") if mine else Prefill.none()
