"""Holdings in a memory store: what jobs held over a time, and which hold room idly.

Goal     Answer audits as the Postgres store does.
Promise  Sums are exact. Only as many ended tasks count as `EndedTasks` keeps.
Source   docs/decisions/0041-audits.md; functions/holdings.sql.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from omega.lifecycle.states import FINAL
from omega.limits import LIMITS
from omega.model.arrays import Amounts, Ids, Index
from omega.model.machines import MachineState
from omega.model.quotas import Budget, QuotaScope, cost
from omega.store.holdings import RESOURCES, US_PER_MS, Holding, Holdings, IdleCause, IdleJob
from omega.store.memory.ended_tasks import EndCause
from omega.store.memory.forced_eviction import ForcedEvictions
from omega.store.memory.job_records import UNPLACED, JobRecord
from omega.store.memory.jobs import milliseconds


@dataclass(frozen=True)
class Runs:
    """Some runs of tasks of one job, and what they held together."""

    job: JobRecord
    number: int
    held_us: tuple[int, ...]
    evicted: int = 0
    lost: int = 0


class MemoryHoldings(ForcedEvictions):
    """What jobs hold, as audits see it."""

    def holdings(self, over_ms: int) -> Holdings:
        """Return what jobs held in the last so many milliseconds, by tenant and kind."""
        assert over_ms > 0
        until_ms = milliseconds(self._clock.now())
        since_ms = until_ms - over_ms
        runs: Counter[tuple[QuotaScope, str]] = Counter()
        held: dict[tuple[QuotaScope, str], list[int]] = defaultdict(lambda: [0] * len(RESOURCES))
        for run in self._runs_within(since_ms, until_ms):
            for whose in (
                (QuotaScope.TENANT, run.job.spec.tenant),
                (QuotaScope.SCHEDULER, run.job.spec.scheduler),
            ):
                runs[whose] += run.number
                for at, us in enumerate(run.held_us):
                    held[whose][at] += us
        by = [Holding(*whose, runs[whose], tuple(held[whose])) for whose in runs]
        capacity = self._whole()
        largest = {scope: _largest(by, scope, capacity) for scope in QuotaScope}
        holders = Counter(one.scope for one in by)
        return Holdings(
            since_ms=since_ms,
            until_ms=until_ms,
            capacity=capacity,
            by=[one for its in largest.values() for one in its],
            left_out={
                scope: holders[scope] - len(its)
                for scope, its in largest.items()
                if holders[scope] > len(its)
            },
        )

    def idle_jobs(self, idle_ms: int) -> list[IdleJob]:
        """Return jobs that have held room for so long without getting on, the longest first."""
        latest_ms = milliseconds(self._clock.now()) - idle_ms
        found = [
            idle
            for job in self._jobs.values()
            if job.state not in FINAL and (idle := self._idle(job)) is not None
            if idle.since_ms <= latest_ms
        ]
        return sorted(found, key=lambda idle: (idle.since_ms, idle.job))

    def _whole(self) -> tuple[int, ...]:
        """Return the capacity of the machines that are not gone, of each of RESOURCES."""
        here = self._machines.state != MachineState.GONE
        return _resources(cost(self._machines.capacity[here].sum(axis=0)))

    def _runs_within(self, since_ms: int, until_ms: int) -> Iterator[Runs]:
        """Yield what ran in the time: each running task, and each group's tasks that ended."""
        yield from self._live_within(since_ms, until_ms)
        yield from self._ended_within(since_ms)

    def _live_within(self, since_ms: int, until_ms: int) -> Iterator[Runs]:
        live = self._allocations.live()
        charged = cost(live.amounts)
        lasted = until_ms - np.maximum(live.started_ms, since_ms)
        for at in range(len(live)):
            yield Runs(self._jobs[int(live.job[at])], 1, _held_us(charged[at], int(lasted[at])))

    def _ended_within(self, since_ms: int) -> Iterator[Runs]:
        rows = self._ended.rows
        rows = rows[rows["ended_ms"] > since_ms]
        rows = rows[np.argsort(rows["job"], kind="stable")]
        lasted = rows["ended_ms"] - np.maximum(rows["started_ms"], since_ms)
        numbers, first = np.unique(rows["job"], return_index=True)
        for number, its in zip(numbers.tolist(), np.split(rows, first[1:]), strict=False):
            job = self._jobs[number]
            lasted, mine = lasted[len(its) :], lasted[: len(its)]
            group = _groups_of(job, its["task"])
            for at in np.unique(group).tolist():
                asked, theirs = job.spec.groups[at], group == at
                amounts = cost(asked.demand)
                amounts[Budget.GPU_SLICES] = asked.gpus * asked.gpu_slices
                causes = Counter(its["cause"][theirs].tolist())
                yield Runs(
                    job,
                    int(theirs.sum()),
                    _held_us(amounts, int(mine[theirs].sum())),
                    evicted=causes[EndCause.EVICTED],
                    lost=causes[EndCause.LOST],
                )

    def _idle(self, job: JobRecord) -> IdleJob | None:
        """Return what a job holds idly; None if it holds nothing, or gets on."""
        slots: Index = job.slot[job.running]
        unplaced = int(np.count_nonzero(job.slot == UNPLACED))
        no_step = job.spec.work is not None and len(slots) == job.spec.tasks and not job.steps
        if not len(slots) or not (unplaced or no_step):
            return None
        rows = self._allocations.rows[slots]
        lost_ms = [] if job.lost_s is None else [milliseconds(job.lost_s)]
        return IdleJob(
            job=job.id,
            name=job.spec.name,
            tenant=job.spec.tenant,
            scheduler=job.spec.scheduler,
            cause=IdleCause.UNPLACED_SIBLINGS if unplaced else IdleCause.NO_STEP,
            running=len(slots),
            unplaced=unplaced,
            since_ms=max([int(rows["started_ms"].max()), *lost_ms]),
            held=_resources(cost(rows["amounts"].sum(axis=0))),
        )


def _largest(by: Iterable[Holding], scope: QuotaScope, capacity: tuple[int, ...]) -> list[Holding]:
    """Return what tenants, or kinds, held, by name; of too many those of the largest shares."""

    def share(one: Holding) -> float:
        parts = zip(one.held_us, capacity, strict=True)
        return max((us / whole for us, whole in parts if whole), default=0.0)

    largest = sorted(
        (one for one in by if one.scope is scope), key=lambda one: (-share(one), one.name)
    )
    return sorted(largest[: LIMITS.holders_max], key=attrgetter("name"))


def _groups_of(job: JobRecord, task: Ids) -> Index:
    edges = np.cumsum([group.tasks for group in job.spec.groups])
    return np.searchsorted(edges, task, side="right")


def _held_us(amounts: Amounts, lasted_ms: int) -> tuple[int, ...]:
    return tuple(amount * lasted_ms * US_PER_MS for amount in _resources(amounts))


def _resources(amounts: Amounts) -> tuple[int, ...]:
    return tuple(int(amounts[resource]) for resource in RESOURCES)
