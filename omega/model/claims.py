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

from omega.model.arrays import Amounts, Ids, Index, Sequences, freeze
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

    def __post_init__(self) -> None:
        assert len(self.task) == len(self.machine) == len(self.seen) == len(self.shape)
        assert self.shapes.shape[1:] == (KINDS,)
        assert (self.shapes >= 0).all(), "a claim takes; it never gives"
        freeze(self.task, self.machine, self.seen, self.shape, self.shapes)

    def __len__(self) -> int:
        return len(self.task)

    @property
    def demand(self) -> Amounts:
        """What each claim asks for: (claims, kinds)."""
        return self.shapes[self.shape]

    @classmethod
    def none(cls) -> "Claims":
        """Return no claims: there is no room, or nothing to place."""
        return cls.of([])

    @classmethod
    def of(cls, parts: Sequence["Claims"]) -> "Claims":
        """Join claims, in order."""
        first_shape = np.cumsum([0, *(len(part.shapes) for part in parts)])[:-1]
        return cls(
            task=_joined(part.task for part in parts),
            machine=_joined(part.machine for part in parts),
            seen=_joined(part.seen for part in parts),
            shape=_joined(
                part.shape + first for part, first in zip(parts, first_shape, strict=True)
            ),
            shapes=np.concatenate(
                [np.zeros((0, KINDS), dtype=np.int64), *(part.shapes for part in parts)]
            ),
        )


def _joined(arrays: Iterable[Ids]) -> Ids:
    return np.concatenate([np.zeros(0, dtype=np.int64), *arrays])


@dataclass(frozen=True)
class JobPart:
    """One job's stretch of a transaction."""

    job: int
    token: UUID
    """Token of the lease under which the job was planned."""
    minimum: int
    """Grants below which the whole stretch is refused; 0 for incremental."""
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
    jobs: tuple[JobPart, ...]
    claims: Claims

    def __post_init__(self) -> None:
        edges = [0, *(part.claims.stop for part in self.jobs)]
        assert [part.claims.start for part in self.jobs] == edges[:-1], "stretches must adjoin"
        assert edges[-1] == len(self.claims)
        assert len({part.job for part in self.jobs}) == len(self.jobs), "a job has one stretch"
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
            JobPart(job, token, minimum, slice(first, last))
            for (job, token, minimum, _), (first, last) in zip(parts, pairwise(edges), strict=True)
        )
        return cls(id, scheduler, replica, rule, jobs, Claims.of([claims for *_, claims in parts]))
