"""Jobs in steps on virtual machines: gangs that make steps while they run whole.

Goal     Let a job end when its steps are made, whatever interrupts it on the way.
Promise  What is reported is absolute and only grows: lost replies, restarts and a second set of
         nodes do no harm. What has no rate makes no steps, and is told once.
Source   docs/decisions/0027-jobs-in-steps.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from omega.events import RateUnknown, Sink
from omega.framework.effects import Steps
from omega.framework.rates import Gang, GangMachine, RateModel
from omega.limits import LIMITS
from omega.model.allocations import Allocations
from omega.model.arrays import Ids, Index, Mask, integers
from omega.model.machines import Snapshot
from omega.model.progress import JobProgress
from omega.model.resources import DEVICES
from omega.nodes.asking import asked
from omega.nodes.gang_runs import NO_RUNS, begun
from omega.store.protocols import NodeStore

LOOK_MS: Final = 6_000
"""Of the jobs' time, between two looks: as much work as an interruption costs at most."""

End = Callable[[Ids, Index, Ids], Steps[int]]
"""Ends tasks, given job, task and start of each; returns how many were asked for."""


@dataclass(frozen=True, kw_only=True)
class StepRates:
    """How fast jobs make steps."""

    model: RateModel | None = None
    """None: nobody knows, and none makes a step."""
    restart_s: float = 0.0
    """What it costs to begin again after an interruption, in the jobs' time."""


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
        self._heard = integers()
        """Jobs that may be in steps and of which something was placed, not yet looked at."""
        self._ours: set[int] = set()
        """Machines that we have heard of: we speak for no others."""
        self._told: set[str] = set()
        self._seen_from_ms: int | None = None
        self._look_at_ms = 0

    def hear(self, allocations: Allocations) -> None:
        """Take in allocations; those that have no end by time may be of jobs in steps."""
        endless = allocations.duration_ms < 0
        if not endless.any():
            return
        self._ours.update(allocations.machine[endless].tolist())
        self._heard = np.union1d(self._heard, allocations.job[endless])

    def step(self, now_ms: int) -> Steps[int]:
        """Count and report steps where it is time to; return how many tasks ended."""
        if self._seen_from_ms is None:
            self._seen_from_ms = now_ms
        over = self._runs.steps_at(now_ms, self._speedup) >= self._runs.wanted
        if not len(self._heard) and now_ms < self._look_at_ms and not over.any():
            return 0
        self._look_at_ms = now_ms + int(LOOK_MS / self._speedup)
        ended = yield from self._look(now_ms, self._seen_from_ms)
        return ended

    def _look(self, now_ms: int, seen_from_ms: int) -> Steps[int]:
        """See which gangs run, how far they have come, and which are done."""
        followed = np.union1d(self._runs.job, self._heard)
        if not len(followed):
            return 0
        told = yield from asked("progress", lambda store: store.progress(followed))
        self._heard = integers()
        model = self._rates.model
        if model is None:
            if len(told):
                self._warn("jobs in steps make none without rates: see --rates")
            return 0

        goes_on = self._since(told, self._runs.job) == self._runs.since_ms
        self._runs = self._runs.only(goes_on)
        begins = (told.since_ms >= 0) & ~np.isin(told.job, self._runs.job)
        begins &= told.done < told.wanted
        if begins.any():
            yield from self._begin(told, begins, model, seen_from_ms)
        done = yield from self._report(now_ms)
        over = np.union1d(told.job[told.done >= told.wanted], done)
        self._runs = self._runs.only(~np.isin(self._runs.job, over))
        if not len(over):
            return 0
        ended = yield from self._end_all(over)
        return ended

    @staticmethod
    def _since(told: JobProgress, job: Ids) -> Ids:
        """Return since when these jobs run whole; -1 for those that do not, or were not told of."""
        since_ms = np.full(len(job), -1)
        known = np.isin(job, told.job)
        since_ms[known] = told.since_ms[np.searchsorted(told.job, job[known])]
        return since_ms

    def _begin(
        self, told: JobProgress, begins: Mask, model: RateModel, seen_from_ms: int
    ) -> Steps[None]:
        """Follow gangs that have begun to run, each at the rate of its machines."""
        job = told.job[begins].tolist()
        live = yield from asked("allocations_of", lambda store: store.allocations_of(job))
        cell = yield from asked("snapshot", lambda store: store.snapshot())
        rate = np.zeros(len(told))
        for at in np.flatnonzero(begins).tolist():
            mine = live.job == told.job[at]
            # Between the two reads it may have moved: then the next look finds out.
            is_same = np.count_nonzero(mine) == told.tasks[at]
            if not is_same or live.started_ms[mine].max() != told.since_ms[at]:
                begins[at] = False
                self._heard = np.union1d(self._heard, told.job[[at]])
            elif not self._ours.issuperset(live.machine[mine].tolist()):
                begins[at] = False
            else:
                rate[at] = self._rate(model, _gang(told.kind[at], live.only(mine), cell, model))
        self._runs = self._runs.and_(
            begun(
                told.job[begins],
                told.since_ms[begins],
                rate[begins],
                (told.done[begins], told.run_ms[begins], told.wanted[begins]),
                seen_from_ms=seen_from_ms,
                restart_ms=self._rates.restart_s * 1_000 / self._speedup,
            )
        )

    def _rate(self, model: RateModel, gang: Gang) -> float:
        """Return the rate of one gang, and complain once of a kind that has none."""
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

    def _report(self, now_ms: int) -> Steps[Ids]:
        """Say how far all gangs have come that run; return the jobs that are done."""
        job, runs = self._runs.job, self._runs
        steps = runs.steps_at(now_ms, self._speedup)
        run_ms = runs.run_ms_at(now_ms, self._speedup)
        for part in _parts(len(job)):
            yield from asked("report_progress", _reporting(job[part], steps[part], run_ms[part]))
        return job[steps >= runs.wanted]

    def _end_all(self, over: Ids) -> Steps[int]:
        """End what runs of these jobs on our machines."""
        named = over.tolist()
        live = yield from asked("allocations_of", lambda store: store.allocations_of(named))
        ours = np.isin(live.machine, list(self._ours))
        job, task, started_ms = live.job[ours], live.task[ours], live.started_ms[ours]
        ended = 0
        for part in _parts(len(job)):
            ended += yield from self._end(job[part], task[part], started_ms[part])
        return ended

    def _warn(self, why: str) -> None:
        if why not in self._told:
            self._told.add(why)
            self._sink(RateUnknown(why))


def _gang(kind: str, live: Allocations, cell: Snapshot, model: RateModel) -> Gang:
    """Return a gang as its rate may depend on it."""
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


def _parts(number: int) -> Iterator[slice]:
    """Divide so many into calls."""
    for first in range(0, number, LIMITS.tasks_per_release_max):
        yield slice(first, first + LIMITS.tasks_per_release_max)
