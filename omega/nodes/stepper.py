"""Jobs in steps on virtual machines: a gang makes steps while all its tasks run.

Goal     Let a job end when its steps are made, however often it is interrupted.
Promise  Reported figures are absolute and only grow: lost replies, restarts and a second set of
         nodes do no harm. A job without a known rate makes no steps; this is reported once.
Source   docs/decisions/0027-jobs-in-steps.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from omega.events import RateUnknown, Sink
from omega.framework.effects import Effects
from omega.framework.rates import Gang, GangMachine, RateModel
from omega.model.allocations import Allocations
from omega.model.arrays import Ids, Index, Mask, integers
from omega.model.machines import Snapshot
from omega.model.progress import JobProgress
from omega.model.resources import DEVICES
from omega.nodes.calling import called, parts_for_calls
from omega.nodes.gang_runs import NO_RUNS, begun
from omega.store.protocols import NodeStore

READ_INTERVAL_MS: Final = 6_000
"""Milliseconds of the jobs' time between two reports: what an interruption costs at most."""

End = Callable[[Ids, Index, Ids], Effects[int]]
"""Ends tasks, given the job, task and start of each; returns their number."""


@dataclass(frozen=True, kw_only=True)
class StepRates:
    """The rates of jobs, and what an interruption costs them."""

    model: RateModel | None = None
    """None: no rate is known, and no job makes a step."""
    restart_s: float = 0.0
    """Seconds of the jobs' time without steps after an interruption."""


NO_RATES: Final = StepRates()


class Stepper:
    """Follows gangs that make steps."""

    def __init__(
        self,
        sink: Sink,
        end: End,
        *,
        rates: StepRates,
        speedup: float,
    ) -> None:
        self._sink = sink
        self._end = end
        self._rates = rates
        self._speedup = speedup
        self._runs = NO_RUNS
        self._unread = integers()
        """Jobs that may be in steps and of which tasks were placed since the last read."""
        self._ours: set[int] = set()
        """Machines of the allocations received: gangs on other machines are not counted."""
        self._warned: set[str] = set()
        self._seen_from_ms: int | None = None
        self._read_due_ms = 0

    def hear(self, allocations: Allocations) -> None:
        """Receive allocations; those without a duration may be of jobs in steps."""
        endless = allocations.duration_ms < 0
        if not endless.any():
            return
        self._ours.update(allocations.machine[endless].tolist())
        self._unread = np.union1d(self._unread, allocations.job[endless])

    def step(self, now_ms: int) -> Effects[int]:
        """Count and report steps when that is due; return how many tasks ended."""
        if self._seen_from_ms is None:
            self._seen_from_ms = now_ms
        over = self._runs.steps_at(now_ms, self._speedup) >= self._runs.wanted
        if not len(self._unread) and now_ms < self._read_due_ms and not over.any():
            return 0
        self._read_due_ms = now_ms + int(READ_INTERVAL_MS / self._speedup)
        ended = yield from self._read(now_ms, self._seen_from_ms)
        return ended

    def _read(self, now_ms: int, seen_from_ms: int) -> Effects[int]:
        """Read the progress of all gangs, report steps, and end the jobs that are done."""
        followed = np.union1d(self._runs.job, self._unread)
        if not len(followed):
            return 0
        progress = yield from called("progress", lambda store: store.progress(followed))
        self._unread = integers()
        model = self._rates.model
        if model is None:
            if len(progress):
                self._warn("jobs in steps make none without rates: see --rates")
            return 0

        continues = self._since(progress, self._runs.job) == self._runs.since_ms
        self._runs = self._runs.only(continues)
        begins = (progress.since_ms >= 0) & ~np.isin(progress.job, self._runs.job)
        begins &= progress.done < progress.wanted
        if begins.any():
            yield from self._begin(progress, begins, model, seen_from_ms)
        done = yield from self._report(now_ms)
        over = np.union1d(progress.job[progress.done >= progress.wanted], done)
        self._runs = self._runs.only(~np.isin(self._runs.job, over))
        if not len(over):
            return 0
        ended = yield from self._end_all(over)
        return ended

    @staticmethod
    def _since(progress: JobProgress, job: Ids) -> Ids:
        """Return since when all tasks of each job run; -1 if they do not or it was not read."""
        since_ms = np.full(len(job), -1)
        known = np.isin(job, progress.job)
        since_ms[known] = progress.since_ms[np.searchsorted(progress.job, job[known])]
        return since_ms

    def _begin(
        self, progress: JobProgress, begins: Mask, model: RateModel, seen_from_ms: int
    ) -> Effects[None]:
        """Begin runs of gangs all of whose tasks run, each at the rate of its machines."""
        job = progress.job[begins].tolist()
        live = yield from called("allocations_of", lambda store: store.allocations_of(job))
        cell = yield from called("snapshot", lambda store: store.snapshot())
        rate = np.zeros(len(progress))
        for at in np.flatnonzero(begins).tolist():
            mine = live.job == progress.job[at]
            # The gang may have moved between the two reads; the next read then begins its run.
            is_same = np.count_nonzero(mine) == progress.tasks[at]
            if not is_same or live.started_ms[mine].max() != progress.since_ms[at]:
                begins[at] = False
                self._unread = np.union1d(self._unread, progress.job[[at]])
            elif not self._ours.issuperset(live.machine[mine].tolist()):
                begins[at] = False
            else:
                rate[at] = self._rate(model, _gang(progress.kind[at], live.only(mine), cell, model))
        self._runs = self._runs.and_(
            begun(
                progress.job[begins],
                progress.since_ms[begins],
                rate[begins],
                (progress.done[begins], progress.run_ms[begins], progress.wanted[begins]),
                seen_from_ms=seen_from_ms,
                restart_ms=self._rates.restart_s * 1_000 / self._speedup,
            )
        )

    def _rate(self, model: RateModel, gang: Gang) -> float:
        """Return the rate of a gang; warn once if none is known for its kind."""
        rate = model.steps_per_s(gang)
        if 0 < rate < np.inf:
            return rate
        types = {
            " ".join(
                machine.attributes.get(name, f"machines without {name}")
                for name in model.attributes
            )
            for machine in gang.machines
        }
        of = ", ".join(sorted(types - {""}))
        on = f"{gang.gpus} GPUs of {of}" if of else f"{gang.gpus} GPUs"
        self._warn(f"no rate is known of {gang.kind} on {on}: it makes no steps")
        return 0.0

    def _report(self, now_ms: int) -> Effects[Ids]:
        """Report the steps and time of all runs; return the jobs that are done."""
        job, runs = self._runs.job, self._runs
        steps = runs.steps_at(now_ms, self._speedup)
        run_ms = runs.run_ms_at(now_ms, self._speedup)
        for part in parts_for_calls(len(job)):
            yield from called("report_progress", _reporting(job[part], steps[part], run_ms[part]))
        return job[steps >= runs.wanted]

    def _end_all(self, over: Ids) -> Effects[int]:
        """End the tasks of these jobs on the machines known here."""
        named = over.tolist()
        live = yield from called("allocations_of", lambda store: store.allocations_of(named))
        ours = np.isin(live.machine, list(self._ours))
        job, task, started_ms = live.job[ours], live.task[ours], live.started_ms[ours]
        ended = 0
        for part in parts_for_calls(len(job)):
            ended += yield from self._end(job[part], task[part], started_ms[part])
        return ended

    def _warn(self, why: str) -> None:
        if why not in self._warned:
            self._warned.add(why)
            self._sink(RateUnknown(why))


def _gang(kind: str, live: Allocations, cell: Snapshot, model: RateModel) -> Gang:
    """Return what the rate of a gang may depend on."""
    rows = cell.rows.where(np.unique(live.machine))
    columns = {name: cell.catalogue.column(name) for name in model.attributes}
    machines = []
    for row in rows.tolist():
        values = {
            name: cell.catalogue.value(column, int(cell.codes[row, column]))
            for name, column in columns.items()
            if column is not None
        }
        machines.append(
            GangMachine(
                gpus=int(np.count_nonzero(cell.rows.capacity[row, DEVICES])),
                attributes={name: value for name, value in values.items() if value is not None},
            )
        )
    return Gang(kind, int(np.count_nonzero(live.amounts[:, DEVICES])), machines)


def _reporting(job: Ids, steps: Ids, run_ms: Ids) -> Callable[[NodeStore], None]:
    return lambda store: store.report_progress(job, steps, run_ms)
