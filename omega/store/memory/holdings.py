"""Holdings in a memory store: what jobs held over a time, and which hold room idly.

Goal     Answer audits as the Postgres store does.
Promise  Sums are exact. Only as many ended tasks count as `EndedTasks` keeps.
Source   docs/decisions/0041-audits.md; functions/holdings.sql.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from operator import attrgetter

import numpy as np

from omega.lifecycle.states import FINAL
from omega.limits import LIMITS
from omega.model.arrays import Amounts, Ids, Index
from omega.model.machines import MachineState
from omega.model.quotas import Budget, QuotaScope, cost
from omega.store.holdings import RESOURCES, US_PER_MS, Holding, Holdings, IdleCause, IdleJob
from omega.store.memory.forced_eviction import ForcedEvictions
from omega.store.memory.job_records import UNPLACED, JobRecord
from omega.store.memory.jobs import milliseconds


class MemoryHoldings(ForcedEvictions):
    """What jobs hold, as audits see it."""

    def holdings(self, over_ms: int) -> Holdings:
        """Return what jobs held in the last so many milliseconds, by tenant and kind."""
        assert over_ms > 0
        until_ms = milliseconds(self._clock.now())
        since_ms = until_ms - over_ms
        here = self._machines.state != MachineState.GONE
        runs: Counter[tuple[QuotaScope, str]] = Counter()
        held: dict[tuple[QuotaScope, str], list[int]] = defaultdict(lambda: [0] * len(RESOURCES))
        for job, number, lasted_ms, amounts in (
            *self._live_within(since_ms, until_ms),
            *self._ended_within(since_ms),
        ):
            for whose in (
                (QuotaScope.TENANT, job.spec.tenant),
                (QuotaScope.SCHEDULER, job.spec.scheduler),
            ):
                runs[whose] += number
                for at, resource in enumerate(RESOURCES):
                    held[whose][at] += int(amounts[resource]) * lasted_ms * US_PER_MS
        by = [Holding(*whose, runs[whose], tuple(held[whose])) for whose in runs]
        capacity = _resources(cost(self._machines.capacity[here].sum(axis=0)))
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

    def _live_within(
        self, since_ms: int, until_ms: int
    ) -> Iterator[tuple[JobRecord, int, int, Amounts]]:
        """Yield for each running task: its job, 1, how long it has run in the time, its amounts."""
        live = self._allocations.live()
        charged = cost(live.amounts)
        lasted = until_ms - np.maximum(live.started_ms, since_ms)
        for at in range(len(live)):
            yield self._jobs[int(live.job[at])], 1, int(lasted[at]), charged[at]

    def _ended_within(self, since_ms: int) -> Iterator[tuple[JobRecord, int, int, Amounts]]:
        """Yield for each group with ended tasks: its job, how many, how long they ran together."""
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
                asked = job.spec.groups[at]
                amounts = cost(asked.demand)
                amounts[Budget.GPU_SLICES] = asked.gpus * asked.gpu_slices
                yield job, int((group == at).sum()), int(mine[group == at].sum()), amounts

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


def _resources(amounts: Amounts) -> tuple[int, ...]:
    return tuple(int(amounts[resource]) for resource in RESOURCES)
