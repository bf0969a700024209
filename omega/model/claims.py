"""Claims and transactions: the requests that a scheduler commits.

Goal     The one form in which every scheduler states its decisions.
Promise  Frozen arrays, one entry per claim; claims of one job are adjacent, in the
         order in which they are judged.
Source   Omega (EuroSys 2013), section 3.4; docs/decisions/0003-the-commit-rule.md.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate, pairwise
from uuid import UUID

import numpy as np

from omega.model.arrays import Amounts, Ids, Index, Sequences, all_true, freeze
from omega.model.resources import KINDS


class ConflictRule(Enum):
    """When a claim conflicts with changes made since the claimant's view was read."""

    FIT = "fit"  # the machine lacks room now
    SEQUENCE = "sequence"  # it lacks room now, or its sequence has changed since it was read


class Granularity(Enum):
    """What one refused claim does to the job's other claims in the transaction."""

    INCREMENTAL = "incremental"  # nothing
    ALL_OR_NOTHING = "all-or-nothing"  # they are refused too


@dataclass(frozen=True, eq=False)
class Alternates:
    """Other machines for claims that are refused on their own machine, tried in this order."""

    claim: Index
    """Position of the claim; ascending. The alternates of one claim are in order of preference."""
    machine: Ids
    seen: Sequences
    """The machine's sequence number in the view that placement used."""
    shape: Index
    """Row of `Claims.shapes` for that machine. It may differ from the claim's own, because other
    GPU slots may be free there."""

    def __post_init__(self) -> None:
        assert len(self.claim) == len(self.machine) == len(self.seen) == len(self.shape)
        assert (np.diff(self.claim) >= 0).all()
        freeze(self.claim, self.machine, self.seen, self.shape)

    def __len__(self) -> int:
        return len(self.claim)


@dataclass(frozen=True, eq=False)
class Evictions:
    """Placed tasks that claims evict.

    Each runs on its claim's machine, or belongs to its claim's job. A claim that evicts its own
    task moves it.
    """

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
    """Claims of one job, as placement makes them, or of several jobs, joined."""

    task: Index
    machine: Ids
    seen: Sequences
    """The machine's sequence number in the view that placement used."""
    shape: Index
    """Which row of `shapes` each claim asks for."""
    shapes: Amounts
    """The demands to which `shape` points, (shapes, resource kinds). A group without GPUs has one
    row. Each GPU slot of a machine is a kind of its own, so tasks of a group with GPUs may have
    several. Rows may be equal where parts were joined."""
    alternates: Alternates = NO_ALTERNATES
    evictions: Evictions = NO_EVICTIONS

    def __post_init__(self) -> None:
        assert len(self.task) == len(self.machine) == len(self.seen) == len(self.shape)
        assert self.shapes.shape[1:] == (KINDS,)
        assert all_true(self.shapes >= 0), "a claim takes; it never gives"
        assert _distinct(self.machine, self.alternates), "a claim names a machine once"
        freeze(self.task, self.machine, self.seen, self.shape, self.shapes)

    def __len__(self) -> int:
        return len(self.task)

    @property
    def machines(self) -> Ids:
        """Every machine named, those of claims first, then those of alternates; not distinct."""
        if not len(self.alternates):
            return self.machine
        return np.concatenate([self.machine, self.alternates.machine])

    def shape_on(self, machine: Ids) -> Index:
        """Return which row of `shapes` each claim asks for on the machine where it landed.

        `machine` (claims,) has for each claim its own machine or one of its alternates.
        """
        shape = self.shape.copy()
        there = self.alternates.machine == machine[self.alternates.claim]
        shape[self.alternates.claim[there]] = self.alternates.shape[there]
        return shape

    def seen_on(self, machine: Ids) -> Sequences:
        """Return the sequence presented for the machine where each claim landed: (claims,)."""
        seen = self.seen.copy()
        there = self.alternates.machine == machine[self.alternates.claim]
        seen[self.alternates.claim[there]] = self.alternates.seen[there]
        return seen

    @property
    def demand(self) -> Amounts:
        """What each claim asks for on its own machine: (claims, kinds)."""
        return self.shapes.take(self.shape, axis=0)

    def demand_on(self, machine: Ids) -> Amounts:
        """Return what each claim asks for on the machine where it landed: (claims, kinds)."""
        if not len(self.alternates):
            return self.demand
        return self.shapes.take(self.shape_on(machine), axis=0)

    @classmethod
    def none(cls) -> "Claims":
        """Return no claims, for when there is no room or nothing to place."""
        return cls.of([])

    @classmethod
    def of(cls, parts: Sequence["Claims"]) -> "Claims":
        """Return the claims of all parts, joined in order."""
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
    """Return whether no claim names a machine twice, so that `shape_on` is unambiguous."""
    if not len(alternates):
        return True
    claims = np.concatenate([np.arange(len(machine)), alternates.claim])
    named = np.column_stack([claims, np.concatenate([machine, alternates.machine])])
    return len(np.unique(named, axis=0)) == len(named)


def _joined(arrays: Iterable[Ids]) -> Ids:
    return np.concatenate([np.zeros(0, np.int64), *arrays])


def _firsts(lengths: Iterable[int]) -> list[int]:
    """Return where each of several arrays of these lengths begins once they are joined."""
    return [0, *accumulate(lengths)][:-1]


@dataclass(frozen=True)
class JobSlice:
    """One job's slice of a transaction."""

    job: int
    token: UUID
    """Token of the lease under which the job was planned."""
    grants_min: int
    """If fewer claims than this would be granted, all of the job's are refused. The judge applies
    the minimum of the job's gang as well, by itself."""
    claims: slice
    """The job's claims within the transaction."""


@dataclass(frozen=True, eq=False)
class Transaction:
    """Claims submitted together, judged strictly in order, grouped by job."""

    id: UUID
    """Made by the scheduler. Committing the same id again returns the recorded verdicts, with the
    machines' rows as they are at that repeated call."""
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
        assert all(part.grants_min >= 0 for part in self.jobs)

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
        """Return a transaction of (job, lease token, grants_min, claims) for each job, in order."""
        edges = accumulate((len(claims) for *_, claims in parts), initial=0)
        jobs = tuple(
            JobSlice(job, token, grants_min, slice(first, last))
            for (job, token, grants_min, _), (first, last) in zip(
                parts, pairwise(edges), strict=True
            )
        )
        return cls(id, scheduler, replica, rule, jobs, Claims.of([claims for *_, claims in parts]))
