"""Claims and transactions: what a scheduler asks of the cell.

Goal     The one form in which every scheduler states its decisions.
Promise  Frozen arrays, one entry a claim; claims of one job are adjacent and in order.
Source   Omega (EuroSys 2013), section 3.4; docs/decisions/0003-the-commit-rule.md.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate, pairwise
from uuid import UUID

import numpy as np

from omega.model.arrays import Amounts, Ids, Index, Sequences, freeze, holds
from omega.model.resources import KINDS


class ConflictRule(Enum):
    """When a claim conflicts with what others have done since its view was read."""

    FIT = "fit"  # the machine lacks room now
    SEQUENCE = "sequence"  # the machine was claimed on or changed at all


class Granularity(Enum):
    """What one refused claim does to its siblings."""

    INCREMENTAL = "incremental"
    ALL_OR_NOTHING = "all-or-nothing"  # of the job's claims in this transaction


@dataclass(frozen=True, eq=False)
class Alternates:
    """Other machines for claims that are refused on theirs, tried in this order."""

    claim: Index
    """Position of the claim; ascending, and in order of preference within a claim."""
    machine: Ids
    seen: Sequences
    shape: Index
    """Amounts asked for on that machine: another machine may mean other device slots."""

    def __post_init__(self) -> None:
        assert len(self.claim) == len(self.machine) == len(self.seen) == len(self.shape)
        assert (np.diff(self.claim) >= 0).all()
        freeze(self.claim, self.machine, self.seen, self.shape)

    def __len__(self) -> int:
        return len(self.claim)


@dataclass(frozen=True, eq=False)
class Evictions:
    """Allocations that make room for claims: on the claim's own machine, or of its own job."""

    claim: Index
    """Position of the claim that needs the room; ascending."""
    job: Ids
    task: Index

    def __post_init__(self) -> None:
        assert len(self.claim) == len(self.job) == len(self.task)
        assert (np.diff(self.claim) >= 0).all()
        freeze(self.claim, self.job, self.task)

    def __len__(self) -> int:
        return len(self.claim)


NO_ALTERNATES = Alternates(*(np.zeros(0, np.int64) for _ in range(4)))
NO_EVICTIONS = Evictions(*(np.zeros(0, np.int64) for _ in range(3)))


@dataclass(frozen=True, eq=False)
class Claims:
    """The claims that placement makes for one job."""

    task: Index
    machine: Ids
    seen: Sequences
    """The machine's sequence in the view that placement looked at."""
    shape: Index
    """Which row of `shapes` each claim asks for."""
    shapes: Amounts
    """The distinct amounts: a group without GPUs has one row, however many its tasks."""
    alternates: Alternates = NO_ALTERNATES
    evictions: Evictions = NO_EVICTIONS

    def __post_init__(self) -> None:
        assert len(self.task) == len(self.machine) == len(self.seen) == len(self.shape)
        assert self.shapes.shape[1:] == (KINDS,)
        assert holds(self.shapes >= 0), "a claim takes; it never gives"
        assert _distinct(self.machine, self.alternates), "a claim names a machine once"
        freeze(self.task, self.machine, self.seen, self.shape, self.shapes)

    def __len__(self) -> int:
        return len(self.task)

    @property
    def machines(self) -> Ids:
        """Every machine named, alternates included; repeated where it is named again."""
        return np.concatenate([self.machine, self.alternates.machine])

    def shape_on(self, machine: Ids) -> Index:
        """Return which row of `shapes` each claim asks for on these, its own or alternates."""
        shape = self.shape.copy()
        there = self.alternates.machine == machine[self.alternates.claim]
        shape[self.alternates.claim[there]] = self.alternates.shape[there]
        return shape

    @property
    def demand(self) -> Amounts:
        """What each claim asks for: (claims, kinds)."""
        return self.shapes.take(self.shape, axis=0)

    @classmethod
    def none(cls) -> "Claims":
        """Return no claims: there is no room, or nothing to place."""
        return cls.of([])

    @classmethod
    def of(cls, parts: Sequence["Claims"]) -> "Claims":
        """Join claims, in order."""
        if len(parts) == 1:
            return parts[0]
        first_shape = _firsts(len(part.shapes) for part in parts)
        first_claim = _firsts(len(part) for part in parts)
        return cls(
            task=_joined(part.task for part in parts),
            machine=_joined(part.machine for part in parts),
            seen=_joined(part.seen for part in parts),
            shape=_joined(
                part.shape + first for part, first in zip(parts, first_shape, strict=True)
            ),
            shapes=np.concatenate([np.zeros((0, KINDS), np.int64), *(p.shapes for p in parts)]),
            alternates=Alternates(
                claim=_joined(
                    part.alternates.claim + first
                    for part, first in zip(parts, first_claim, strict=True)
                ),
                machine=_joined(part.alternates.machine for part in parts),
                seen=_joined(part.alternates.seen for part in parts),
                shape=_joined(
                    part.alternates.shape + first
                    for part, first in zip(parts, first_shape, strict=True)
                ),
            ),
            evictions=Evictions(
                claim=_joined(
                    part.evictions.claim + first
                    for part, first in zip(parts, first_claim, strict=True)
                ),
                job=_joined(part.evictions.job for part in parts),
                task=_joined(part.evictions.task for part in parts),
            ),
        )


def _distinct(machine: Ids, alternates: Alternates) -> bool:
    """Say whether the machines of each claim differ: where it lands then tells what it took."""
    if not len(alternates):
        return True
    claims = np.concatenate([np.arange(len(machine)), alternates.claim])
    named = np.column_stack([claims, np.concatenate([machine, alternates.machine])])
    return len(np.unique(named, axis=0)) == len(named)


def _joined(arrays: Iterable[Ids]) -> Ids:
    return np.concatenate([np.zeros(0, np.int64), *arrays])


def _firsts(lengths: Iterable[int]) -> list[int]:
    """Return where each of several arrays begins once they are joined."""
    return [0, *accumulate(lengths)][:-1]


@dataclass(frozen=True)
class JobSlice:
    """One job's slice of a transaction."""

    job: int
    token: UUID
    """Token of the lease under which the job was planned."""
    minimum: int
    """Grants below which all claims of the job are refused; 0 for incremental."""
    claims: slice
    """Which claims of the transaction are the job's."""


@dataclass(frozen=True, eq=False)
class Transaction:
    """Claims submitted together, judged strictly in order, grouped by job."""

    id: UUID
    """Made by the scheduler: committing the same id again gives the recorded outcome."""
    scheduler: str
    replica: str
    rule: ConflictRule
    jobs: tuple[JobSlice, ...]
    claims: Claims

    def __post_init__(self) -> None:
        edges = [0, *(part.claims.stop for part in self.jobs)]
        assert [part.claims.start for part in self.jobs] == edges[:-1], "slices must adjoin"
        assert edges[-1] == len(self.claims)
        assert len({part.job for part in self.jobs}) == len(self.jobs), "a job has one slice"
        assert all(part.minimum >= 0 for part in self.jobs)

    @classmethod
    def of(
        cls,
        parts: Sequence[tuple[int, UUID, int, Claims]],
        *,
        id: UUID,  # noqa: A002 - the field's name; a call reads Transaction.of(..., id=...)
        scheduler: str,
        replica: str,
        rule: ConflictRule = ConflictRule.FIT,
    ) -> "Transaction":
        """Build a transaction from (job, lease token, minimum, claims), in order."""
        edges = accumulate((len(claims) for *_, claims in parts), initial=0)
        jobs = tuple(
            JobSlice(job, token, minimum, slice(first, last))
            for (job, token, minimum, _), (first, last) in zip(parts, pairwise(edges), strict=True)
        )
        return cls(id, scheduler, replica, rule, jobs, Claims.of([claims for *_, claims in parts]))
