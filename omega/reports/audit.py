"""Audits: who holds more than a policy allows that no commit can judge.

Goal     Compare shares over time, and idle room, with a policy after the fact.
Promise  Shares are exact fractions of the cell's capacity as it is now. What equals its limit is
         not above it. Without a policy nothing is above.
Source   Omega (EuroSys 2013), section 3.4; dominant shares as in DRF (NSDI 2011), section 4;
         docs/decisions/0041-audits.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from omega.model.quotas import Budget, QuotaScope
from omega.store.holdings import RESOURCES, US_PER_MS, Holding, Holdings, IdleJob
from omega.store.protocols import ReaderStore
from omega.workload.audit_policy import AuditPolicy, ShareLimit

Parts = Mapping[Budget, Fraction]
"""Share of each resource that the cell has."""


@dataclass(frozen=True)
class HeldShare:
    """The share of the cell that a tenant, or a kind of scheduler, held over the time."""

    scope: QuotaScope
    name: str
    runs: int
    held_us: tuple[int, ...]
    """Amounts times microseconds, of each of RESOURCES."""
    parts: Parts
    limit: ShareLimit | None

    @property
    def dominant(self) -> Budget | None:
        """The resource of which the share is largest; None on a cell without capacity."""
        return max(self.parts, key=lambda it: (self.parts[it], -it), default=None)

    @property
    def judged(self) -> Budget | None:
        """The resource whose share the limit is about; None if the cell does not have it."""
        of = self.dominant if self.limit is None or self.limit.of is None else self.limit.of
        return of if of in self.parts else None

    @property
    def part(self) -> Fraction | None:
        """The share of the resource that is judged."""
        return None if self.judged is None else self.parts[self.judged]

    @property
    def is_above(self) -> bool:
        """Whether the share is larger than allowed."""
        return self.limit is not None and self.part is not None and self.part > self.limit.at_most

    def row(self) -> dict[str, object]:
        """Return the share as JSON types."""
        judged, limit = self.judged, self.limit
        return {
            "check": self.scope.value,
            "name": self.name,
            "runs": self.runs,
            "held_us": {it.column: us for it, us in zip(RESOURCES, self.held_us, strict=True)},
            "shares": {it.column: float(part) for it, part in self.parts.items()},
            "of": None if judged is None else judged.column,
            "share": None if self.part is None else float(self.part),
            "at_most": None if limit is None else float(limit.at_most),
            "above": self.is_above,
        }


@dataclass(frozen=True)
class AuditReport:
    """What a cell's jobs held over a time, beside what a policy allows."""

    holdings: Holdings
    policy: AuditPolicy
    shares: Sequence[HeldShare]
    """Of tenants, then of kinds; the largest first."""
    idle: Sequence[IdleJob]
    """Jobs that hold room idly for longer than the policy allows, the longest first."""

    @classmethod
    def read(cls, store: ReaderStore, policy: AuditPolicy, over_ms: int) -> "AuditReport":
        """Read what was held in the last so many milliseconds, and judge it by a policy."""
        holdings = store.holdings(over_ms)
        # More than the policy allows: one that has held for exactly as long is not above.
        idle = [] if policy.idle_ms is None else store.idle_jobs(policy.idle_ms + 1)
        return cls.judged(holdings, policy, idle)

    @classmethod
    def judged(
        cls, holdings: Holdings, policy: AuditPolicy, idle: Sequence[IdleJob]
    ) -> "AuditReport":
        """Judge what was held, and who holds idly for too long, by a policy."""
        return cls(holdings, policy, _shares(holdings, policy), idle)

    @property
    def above(self) -> int:
        """How much is above the policy."""
        return sum(share.is_above for share in self.shares) + len(self.idle)

    def of(self, scope: QuotaScope) -> list[HeldShare]:
        """Return the shares of tenants, or of kinds of schedulers."""
        return [share for share in self.shares if share.scope is scope]

    def idle_for_ms(self, job: IdleJob) -> int:
        """Return for how long a job had held its room idly by the end of the time."""
        return max(0, self.holdings.until_ms - job.since_ms)

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each share and each idle job, as JSON types."""
        shares = [share.row() for share in self.shares]
        return [*shares, *(self._idle_row(job) for job in self.idle)]

    def summary(self) -> dict[str, object]:
        """Return the window, the capacity and how much is above, as JSON types."""
        capacity = zip(RESOURCES, self.holdings.capacity, strict=True)
        return {
            "since_ms": self.holdings.since_ms,
            "until_ms": self.holdings.until_ms,
            "capacity": {it.column: amount for it, amount in capacity},
            "runs_unknown": self.holdings.unknown,
            "left_out": {scope.value: n for scope, n in self.holdings.left_out.items()},
            "above": self.above,
        }

    def _idle_row(self, job: IdleJob) -> dict[str, object]:
        held = zip(RESOURCES, job.held, strict=True)
        return {
            "check": "idle",
            "job": job.job,
            "name": job.name,
            "tenant": job.tenant,
            "scheduler": job.scheduler,
            "cause": job.cause.value,
            "running": job.running,
            "unplaced": job.unplaced,
            "since_ms": job.since_ms,
            "idle_ms": self.idle_for_ms(job),
            "at_most_ms": self.policy.idle_ms,
            "held": {it.column: amount for it, amount in held},
            "above": True,
        }


def _shares(holdings: Holdings, policy: AuditPolicy) -> list[HeldShare]:
    shares = list(_each(holdings, policy))
    order = list(QuotaScope)
    shares.sort(key=lambda one: (order.index(one.scope), not one.is_above, -_size(one), one.name))
    return shares


def _size(share: HeldShare) -> Fraction:
    return max(share.parts.values(), default=Fraction(0))


def _each(holdings: Holdings, policy: AuditPolicy) -> Iterator[HeldShare]:
    """Yield the share of each tenant and kind that held something or is named in the policy."""
    nothing = (0,) * len(RESOURCES)
    held = {(one.scope, one.name): one for one in holdings.by}
    named = (whose for whose in policy.named if not holdings.left_out.get(whose[0]))
    window_us = (holdings.until_ms - holdings.since_ms) * US_PER_MS
    whole = [capacity * window_us for capacity in holdings.capacity]
    for scope, name in dict.fromkeys((*held, *named)):
        one = held.get((scope, name), Holding(scope, name, 0, nothing))
        parts = {
            resource: Fraction(us, of)
            for resource, us, of in zip(RESOURCES, one.held_us, whole, strict=True)
            if of
        }
        limit = policy.limit_of(scope, name)
        yield HeldShare(scope, name, one.runs, one.held_us, parts, limit)
