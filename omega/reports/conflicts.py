"""The matrix of conflicts between schedulers: who refused whom.

Goal     Show which schedulers get into each other's way, from what the database recorded.
Promise  A refused claim is charged to the last other transaction that was granted a claim on that
         machine before it. A refusal that no other scheduler causes, such as by a quota, is charged
         to nobody. Nothing is counted twice; what a reader missed is said. Memory is bounded.
Source   Omega (EuroSys 2013), section 5.2; docs/decisions/0052-the-page.md.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from omega.limits import LIMITS
from omega.model.arrays import Ids
from omega.model.outcomes import ACCEPTED, Verdict
from omega.store.watching import Judged

Replica = tuple[str, str]
"""The kind of a scheduler, and the name of one of its replicas."""

NOBODY: Final = -1
"""In place of the position of one who refused: no other scheduler's claim is the cause."""
UNKNOWN: Final = -2
"""The claim that took the room, or changed the sequence, is not among those that were read."""

GANG: Final = -3
"""It would have been granted; too few others of its gang were."""

BY_OTHERS: Final = (Verdict.STALE, Verdict.OVERCOMMIT, Verdict.PRECEDENCE)
"""Verdicts that an earlier claim on the machine causes."""

REPLICAS_MAX: Final = 1_000
"""Replicas that are told apart; later ones are counted together."""
LATER_ONES: Final[Replica] = ("others", "")
BUCKET_S: Final = 30.0
BUCKETS: Final = 20
WINDOW_S: Final = BUCKET_S * BUCKETS
"""What a matrix of late is about."""
REMEMBERED_MAX: Final = 4 * LIMITS.judged_per_read_max
"""Transactions that are known again if a read repeats them."""

Cell = tuple[int, int, int]
"""Who was refused, who had been granted (or NOBODY, UNKNOWN, GANG), and the verdict."""


@dataclass(frozen=True)
class ConflictMatrix:
    """Refused claims by who was refused and who had been granted, over some time."""

    replicas: tuple[Replica, ...]
    cells: Mapping[Cell, int]
    """Refused claims; positions are of `replicas`."""
    granted: Mapping[int, int]
    """Claims granted, by position."""

    def by_kind(self) -> "ConflictMatrix":
        """Return the same with the replicas of a kind as one."""
        kinds = tuple(dict.fromkeys(kind for kind, _ in self.replicas))
        place = [kinds.index(kind) for kind, _ in self.replicas]
        cells: Counter[Cell] = Counter()
        for (loser, winner, verdict), claims in self.cells.items():
            cells[place[loser], winner if winner < 0 else place[winner], verdict] += claims
        granted: Counter[int] = Counter()
        for replica, claims in self.granted.items():
            granted[place[replica]] += claims
        return ConflictMatrix(tuple((kind, "") for kind in kinds), cells, granted)

    def row(self) -> dict[str, object]:
        """Return the matrix as JSON types: only those who claimed, by name."""
        met = {who for cell in self.cells for who in cell[:2] if who >= 0} | set(self.granted)
        order = sorted(met, key=lambda at: self.replicas[at])
        place = {at: number for number, at in enumerate(order)}
        place |= {it: it for it in (NOBODY, UNKNOWN, GANG)}
        return {
            "names": [list(self.replicas[at]) for at in order],
            "granted": [self.granted.get(at, 0) for at in order],
            "cells": sorted(
                [place[loser], place[winner], Verdict(verdict).name.lower(), claims]
                for (loser, winner, verdict), claims in self.cells.items()
            ),
        }


@dataclass(frozen=True)
class JudgedCounts:
    """What has been counted so far, as a value that does not change any more."""

    transactions: Mapping[str, int]
    """By kind of scheduler."""
    conflicted: Mapping[str, int]
    claims: Mapping[tuple[str, str], int]
    """By kind and verdict, each kind with every verdict."""
    missed: int
    """Reads that left out transactions that no other read returned."""


NOTHING_JUDGED: Final = JudgedCounts({}, {}, {}, 0)


class ConflictTally:
    """Counts refusals by who refused whom, read by read."""

    def __init__(self) -> None:
        self._replicas: dict[Replica, int] = {}
        self._last = np.full(0, UNKNOWN, dtype=np.int32)
        """By machine id, who was granted a claim there last."""
        self._seen: dict[UUID, None] = {}
        self._buckets: deque[tuple[float, Counter[Cell], Counter[int]]] = deque(maxlen=BUCKETS)
        self._cells: Counter[Cell] = Counter()
        self._granted: Counter[int] = Counter()
        self.transactions: Counter[str] = Counter()
        """By kind, transactions that were judged ..."""
        self.conflicted: Counter[str] = Counter()
        """... and those of which a claim was refused, for more than a quota."""
        self.missed = 0
        """How many reads left out transactions that no other read returned."""

    def note(self, judged: Judged, now_s: float) -> None:
        """Count the transactions that were not counted before."""
        if not judged.are_all and self._seen and judged.id[0] not in self._seen:
            self.missed += 1
        new = np.array([it not in self._seen for it in judged.id], dtype=np.bool_)
        self._seen.update(dict.fromkeys(judged.id))
        for known in list(self._seen)[: max(0, len(self._seen) - REMEMBERED_MAX)]:
            del self._seen[known]
        if not new.any():
            return
        who = [self._place(it) for it in zip(judged.scheduler, judged.replica, strict=True)]
        sizes = np.diff(judged.ends, prepend=0)
        of = np.repeat(np.arange(len(judged)), sizes)
        kept = new[of]
        verdict = judged.verdict[kept]
        kinds = [kind for kind, _ in self._replicas]
        self._count_transactions([kinds[at] for at in who], new, of[kept], verdict)
        replica = np.array(who, dtype=np.int32)[of[kept]]
        # Only of these the machines are sure to exist: claims may name any number.
        real = np.isin(verdict, (ACCEPTED, *BY_OTHERS))
        winner = np.full(len(verdict), NOBODY, dtype=np.int32)
        winner[verdict == Verdict.GANG_BROKEN] = GANG
        winner[real] = self._winners(
            of[kept][real], judged.machine[kept][real], replica[real], verdict[real] == ACCEPTED
        )
        self._add(replica, winner, verdict, now_s)

    def recent(self, now_s: float) -> ConflictMatrix:
        """Return the matrix of about the last WINDOW_S seconds."""
        buckets = [it for it in self._buckets if it[0] > now_s - WINDOW_S]
        return ConflictMatrix(
            tuple(self._replicas),
            sum((cells for _, cells, _ in buckets), Counter()),
            sum((granted for *_, granted in buckets), Counter()),
        )

    def total(self) -> ConflictMatrix:
        """Return the matrix of all that was read."""
        return ConflictMatrix(tuple(self._replicas), self._cells.copy(), self._granted.copy())

    def counts(self) -> JudgedCounts:
        """Return what has been counted: kinds beyond REPLICAS_MAX replicas as one kind."""
        conflicted = {kind: self.conflicted[kind] for kind in self.transactions}
        return JudgedCounts(dict(self.transactions), conflicted, self._claims(), self.missed)

    def _claims(self) -> dict[tuple[str, str], int]:
        """Return the number of claims by kind and verdict, each kind with every verdict."""
        replicas = list(self._replicas)
        counted: dict[tuple[str, str], int] = {
            (kind, verdict.name.lower()): 0
            for kind in dict.fromkeys(kind for kind, _ in replicas)
            for verdict in Verdict
        }
        for (loser, _, verdict), claims in self._cells.items():
            counted[replicas[loser][0], Verdict(verdict).name.lower()] += claims
        for at, claims in self._granted.items():
            counted[replicas[at][0], Verdict.ACCEPTED.name.lower()] += claims
        return counted

    def _place(self, replica: Replica) -> int:
        if replica not in self._replicas and len(self._replicas) >= REPLICAS_MAX:
            replica = LATER_ONES
        return self._replicas.setdefault(replica, len(self._replicas))

    def _count_transactions(
        self,
        kinds: Sequence[str],
        new: NDArray[np.bool_],
        of: NDArray[np.intp],
        verdict: NDArray[np.int8],
    ) -> None:
        refused = ~np.isin(verdict, (ACCEPTED, Verdict.QUOTA))
        conflicted = np.zeros(len(kinds), dtype=np.bool_)
        conflicted[of[refused]] = True
        of_quotas = np.zeros(len(kinds), dtype=np.bool_)
        of_quotas[of[verdict == Verdict.QUOTA]] = True
        others = np.zeros(len(kinds), dtype=np.bool_)
        others[of[refused & (verdict != Verdict.GANG_BROKEN)]] = True
        conflicted &= ~of_quotas | others
        self.transactions.update(_those(kinds, new))
        self.conflicted.update(_those(kinds, conflicted))

    def _winners(
        self,
        of: NDArray[np.intp],
        machine: Ids,
        replica: NDArray[np.int32],
        granted: NDArray[np.bool_],
    ) -> NDArray[np.int32]:
        """Return for each claim who was granted one on its machine by an earlier transaction."""
        if not len(machine):
            return np.zeros(0, dtype=np.int32)
        highest = int(machine.max())
        if highest >= len(self._last):
            more = np.full(highest + 1 - len(self._last), UNKNOWN, dtype=np.int32)
            self._last = np.concatenate([self._last, more])
        # Claims of one transaction on one machine are one visit; they go by machine, then in order.
        order = np.lexsort((of, machine))
        is_first = np.ones(len(order), dtype=np.bool_)
        is_first[1:] = (np.diff(machine[order]) != 0) | (np.diff(of[order]) != 0)
        visit = np.cumsum(is_first) - 1
        at = order[is_first]
        takes = np.zeros(len(at), dtype=np.bool_)
        np.logical_or.at(takes, visit, granted[order])
        # The last visit that was granted something, before this one and of the same machine.
        latest = np.maximum.accumulate(np.where(takes, np.arange(len(at)), -1))
        before = np.concatenate([[-1], latest[:-1]]).astype(np.intp)
        here = machine[at]
        is_same = (before >= 0) & (here[before] == here)
        winner = np.where(is_same, replica[at[before]], self._last[here]).astype(np.int32)
        self._last[here[takes]] = replica[at[takes]]  # of several the last is kept
        of_claim = np.empty(len(order), dtype=np.int32)
        of_claim[order] = winner[visit]
        return of_claim

    def _add(
        self,
        replica: NDArray[np.int32],
        winner: NDArray[np.int32],
        verdict: NDArray[np.int8],
        now_s: float,
    ) -> None:
        if not self._buckets or now_s - self._buckets[-1][0] >= BUCKET_S:
            self._buckets.append((now_s, Counter(), Counter()))
        _, cells, granted = self._buckets[-1]
        is_granted = verdict == ACCEPTED
        given = Counter(replica[is_granted].tolist())
        refused = ~is_granted
        columns = replica[refused], winner[refused], verdict[refused]
        taken = Counter(zip(*(column.tolist() for column in columns), strict=True))
        for counter in (granted, self._granted):
            counter.update(given)
        for each in (cells, self._cells):
            each.update(taken)


def _those(names: Iterable[str], mask: NDArray[np.bool_]) -> Counter[str]:
    return Counter(name for name, is_one in zip(names, mask.tolist(), strict=True) if is_one)
