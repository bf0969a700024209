"""Usage in a memory store: what tenants, kinds of schedulers or jobs used over a time.

Goal     Answer accounting as the Postgres store does.
Promise  Sums are exact. Only as many ended tasks count as `EndedTasks` keeps.
Source   docs/decisions/0056-usage-and-dashboards.md; functions/usage.sql.
"""

from collections import Counter
from collections.abc import Iterable, Iterator

from omega.limits import LIMITS
from omega.store.holdings import RESOURCES, US_PER_MS
from omega.store.memory.holdings import MemoryHoldings
from omega.store.memory.job_records import JobRecord
from omega.store.memory.jobs import milliseconds
from omega.store.usage import Consumer, Usage, UsageBy, Used


class MemoryUsage(MemoryHoldings):
    """What was used, as accounting sees it."""

    def usage(self, over_ms: int, by: UsageBy) -> Usage:
        """Return what was used in the last so many milliseconds, the largest shares first."""
        assert over_ms > 0
        until_ms = milliseconds(self._clock.now())
        since_ms = until_ms - over_ms
        parts: dict[Consumer, list[Used]] = {}
        for job, used in (*self._used(since_ms, until_ms), *self._waits(since_ms)):
            parts.setdefault(_consumer(job, by), []).append(used)
        summed = {consumer: _sum(its) for consumer, its in parts.items()}
        capacity = self._whole()

        def order(consumer: Consumer) -> tuple[float, str, int]:
            shares = zip(summed[consumer].held_us, capacity, strict=True)
            largest = max((us / whole for us, whole in shares if whole), default=0.0)
            return -largest, "" if consumer.job else consumer.name, consumer.job or 0

        rows = [(consumer, summed[consumer]) for consumer in sorted(summed, key=order)]
        return Usage(
            by=by,
            since_ms=since_ms,
            until_ms=until_ms,
            rows=tuple(rows[: LIMITS.holders_max]),
            total=_sum(summed.values()),
            left_out=max(0, len(rows) - LIMITS.holders_max),
            oldest_ms=next(iter(self._ended.rows["ended_ms"][:1].tolist()), None),
        )

    def _used(self, since_ms: int, until_ms: int) -> Iterator[tuple[JobRecord, Used]]:
        for run in self._runs_within(since_ms, until_ms):
            yield (
                run.job,
                Used(runs=run.number, held_us=run.held_us, evicted=run.evicted, lost=run.lost),
            )

    def _waits(self, since_ms: int) -> Iterator[tuple[JobRecord, Used]]:
        """Yield what jobs waited for their first attempts within the time, or wait now."""
        for job in self._jobs.values():
            if job.parent is not None:
                continue
            if job.first_leased_s is None:
                if job.finished_s is None:
                    yield job, Used(unattempted=1)
            elif milliseconds(job.first_leased_s) > since_ms:
                waited_us = US_PER_MS * milliseconds(job.first_leased_s - job.submitted_s)
                yield job, Used(attempted=1, waited_us=waited_us, waited_longest_us=waited_us)


def _consumer(job: JobRecord, by: UsageBy) -> Consumer:
    spec = job.spec
    match by:
        case UsageBy.TENANT:
            return Consumer(spec.tenant)
        case UsageBy.SCHEDULER:
            return Consumer(spec.scheduler)
        case UsageBy.JOB:
            return Consumer(spec.name, job.id, spec.tenant, spec.scheduler)


def _sum(parts: Iterable[Used]) -> Used:
    counted: Counter[str] = Counter()
    held_us = [0] * len(RESOURCES)
    longest_us = 0
    for part in parts:
        for name in ("runs", "evicted", "lost", "attempted", "waited_us", "unattempted"):
            counted[name] += getattr(part, name)
        held_us = [a + b for a, b in zip(held_us, part.held_us, strict=True)]
        longest_us = max(longest_us, part.waited_longest_us)
    return Used(held_us=tuple(held_us), waited_longest_us=longest_us, **counted)
