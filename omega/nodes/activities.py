"""Elastic jobs on virtual machines: workers process activities, and the job ends with the last one.

Goal     Let a job of many activities end the sooner the more workers it has.
Promise  Reported figures are absolute and only grow: lost replies, restarts and a second set of
         nodes do no harm. Who still runs is read before activities are counted.
Source   docs/decisions/0043-elastic-jobs.md.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from omega.framework.effects import Effects
from omega.model.allocations import Allocations
from omega.model.arrays import Ids, Index, integers
from omega.model.elastic import PhaseProgress
from omega.nodes.calling import called, parts_for_calls
from omega.nodes.elastic_runs import ElasticRun, Worker
from omega.store.protocols import NodeStore

READ_INTERVAL_MS: Final = 6_000
"""Milliseconds of the jobs' time after which workers are read again, if nothing ends before."""

End = Callable[[Ids, Index, Ids], Effects[int]]
"""Ends tasks, given the job, task and start of each; returns their number."""


class Activities:
    """Follows elastic jobs with phases."""

    def __init__(self, end: End, *, speedup: float) -> None:
        self._end = end
        self._speedup = speedup
        self._runs: dict[int, ElasticRun] = {}
        """By elastic job."""
        self._unread = integers()
        """Jobs that may have phases or help such a job, and of which tasks were placed lately."""
        self._ours: set[int] = set()
        """Machines of the allocations received."""
        self._read_due_ms = 0

    def hear(self, allocations: Allocations) -> None:
        """Receive allocations; those without a duration may be of workers."""
        endless = allocations.duration_ms < 0
        if endless.any():
            self._ours.update(allocations.machine[endless].tolist())
            self._unread = np.union1d(self._unread, allocations.job[endless])

    def step(self, now_ms: int) -> Effects[int]:
        """Process activities and report them when that is due; return how many tasks ended."""
        ends = any(run.next_end_ms() <= now_ms for run in self._runs.values())
        is_due = bool(self._runs) and now_ms >= self._read_due_ms
        if not (ends or is_due or len(self._unread)):
            return 0
        self._read_due_ms = now_ms + int(READ_INTERVAL_MS / self._speedup)
        ended = yield from self._read(now_ms)
        return ended

    def _read(self, now_ms: int) -> Effects[int]:
        """Read who runs, count and report activities, and end the jobs that are done."""
        named = np.union1d(self._unread, integers(self._runs))
        told = yield from called("phases", lambda store: store.phases(named))
        self._unread = integers()
        progress = {it.elastic: it for it in told}
        for job in self._runs.keys() - progress.keys():
            del self._runs[job]
        if not progress:
            return 0
        jobs = sorted({*progress, *(job for it in told for job in it.helper_jobs)})
        live = yield from called("allocations_of", lambda store: store.allocations_of(jobs))
        workers = _workers(live)
        changed: list[ElasticRun] = []
        for it in progress.values():
            run = self._run(it, now_ms)
            before = tuple(run.done)
            run.staff([w for job in (it.elastic, *it.helper_jobs) for w in workers.get(job, ())])
            run.advance(now_ms)
            if before != tuple(run.done):
                changed.append(run)
        yield from self._report(changed)
        over = [it for it in progress.values() if self._runs[it.elastic].is_done]
        ended = yield from self._end_all(over, live)
        for it in progress.values():
            run = self._runs[it.elastic]
            if run.is_done or not run.workers:
                del self._runs[it.elastic]
        return ended

    def _run(self, progress: PhaseProgress, now_ms: int) -> ElasticRun:
        run = self._runs.get(progress.elastic)
        if run is None:
            run = ElasticRun(progress, speedup=self._speedup, now_ms=now_ms)
            self._runs[progress.elastic] = run
        return run

    def _report(self, runs: list[ElasticRun]) -> Effects[None]:
        """Report what is done of each phase of these jobs."""
        rows = [
            (run.elastic, phase, run.done[phase], run.busy_ms[phase])
            for run in runs
            for phase in range(len(run.phases))
        ]
        for part in parts_for_calls(len(rows)):
            yield from called("report_phases", _reporting(rows[part]))

    def _end_all(self, over: list[PhaseProgress], live: Allocations) -> Effects[int]:
        """End the tasks of these jobs and of their helpers on the machines known here."""
        jobs = {job for it in over for job in (it.elastic, *it.helper_jobs)}
        mine = np.isin(live.job, list(jobs)) & np.isin(live.machine, list(self._ours))
        job, task, started_ms = live.job[mine], live.task[mine], live.started_ms[mine]
        ended = 0
        for part in parts_for_calls(len(job)):
            ended += yield from self._end(job[part], task[part], started_ms[part])
        return ended


def _workers(live: Allocations) -> dict[int, list[Worker]]:
    """Return the workers of each job."""
    workers: dict[int, list[Worker]] = {}
    columns = (live.job.tolist(), live.task.tolist(), live.started_ms.tolist())
    for worker in zip(*columns, strict=True):
        workers.setdefault(worker[0], []).append(worker)
    return workers


def _reporting(rows: list[tuple[int, int, int, int]]) -> Callable[[NodeStore], None]:
    job, phase, done, busy_ms = (integers(column) for column in zip(*rows, strict=True))
    return lambda store: store.report_phases(job, phase.astype(np.intp), done, busy_ms)
