"""What a round knows of the ones before: shares promised and had, on record between rounds.

Goal     Let any replica go on where the last one stopped, from the memo alone.
Promise  What JSON holds of a record is the record, to the last digit. A memo that this program did
         not write, or cannot read, is an empty record: shares are then promised anew.
Source   Gavel (OSDI 2020), section 5; docs/decisions/0028-rounds-on-the-shared-cell.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from omega.model.arrays import Ids, Score, integers
from omega.workload.throughputs import Rates
from schedulers.ml_gpu.problem import NOBODY, Shares
from schedulers.ml_gpu.rounds import Ledger


class _Memo(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    types: list[str]
    gpus: list[int]
    jobs: list[int]
    share: list[list[float]]
    received_s: list[list[float]]
    deficit_s: list[list[float]]
    is_promised: list[bool]
    since_ms: list[int]
    began_ms: int
    reset_ms: int | None
    is_due: bool
    credit_s: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Record:
    """What was promised to whom, and what has been had."""

    types: tuple[str, ...]
    gpus: tuple[int, ...]
    """GPUs of each type when shares were last promised."""
    ledger: Ledger
    """Units are jobs, by id."""
    since_ms: Ids = field(default_factory=integers)
    """When each job was first seen, by the store's clock."""
    began_ms: int = 0
    """The last round."""
    reset_ms: int | None = None
    """When shares were last promised; None: never."""
    is_due: bool = True
    """Whether something has changed since."""
    away: "Record | None" = None
    """Of jobs that nobody can plan now, and that may come back."""

    @classmethod
    def empty(cls, types: Sequence[str], credit_s: float) -> "Record":
        """Return the record of nobody."""
        ledger = Ledger.empty(len(types), credit_s)
        return cls(types=tuple(types), gpus=(), ledger=ledger)

    @classmethod
    def of(cls, memo: Mapping[str, object], types: Sequence[str], credit_s: float) -> "Record":
        """Read a memo, for these types: of one that is new, nothing was promised or had."""
        if not memo:
            return cls.empty(types, credit_s)
        try:
            told = _Memo.model_validate(dict(memo))
            ledger = _ledger(told, types)
        except (ValidationError, ValueError):
            return cls.empty(types, credit_s)
        return cls(
            types=tuple(types),
            gpus=tuple(told.gpus) if told.types == list(types) else (),
            ledger=ledger,
            since_ms=integers(told.since_ms),
            began_ms=told.began_ms,
            reset_ms=told.reset_ms,
            is_due=told.is_due,
        )

    def memo(self) -> dict[str, object]:
        """Return the record as JSON has it."""
        ledger = self.ledger
        parts = [self] if self.away is None else [self, self.away]
        ledgers = [part.ledger for part in parts]
        return _Memo(
            types=list(self.types),
            gpus=list(self.gpus),
            jobs=np.concatenate([part.first for part in ledgers]).tolist(),
            share=np.vstack([part.share for part in ledgers]).tolist(),
            received_s=np.vstack([part.received_s for part in ledgers]).tolist(),
            deficit_s=np.vstack([part.deficit_s for part in ledgers]).tolist(),
            is_promised=np.concatenate([part.is_promised for part in ledgers]).tolist(),
            since_ms=np.concatenate([part.since_ms for part in parts]).tolist(),
            began_ms=self.began_ms,
            reset_ms=self.reset_ms,
            is_due=self.is_due,
            credit_s=ledger.credit_s,
        ).model_dump()

    def among(self, jobs: Ids, away: Ids, now_ms: int) -> "Record":
        """Return the record of these jobs, ascending: others are forgotten, new ones join.

        Those that are away are kept apart.
        """
        absent = np.setdiff1d(self.ledger.first, jobs)
        gone = np.setdiff1d(absent, away)
        new = np.setdiff1d(jobs, self.ledger.first)
        stays = np.isin(self.ledger.first, jobs)
        ledger = self.ledger.without(absent).joined_by(new)
        aside = np.isin(self.ledger.first, away) & ~stays
        apart = self.ledger.without(self.ledger.first[~aside])
        since_ms = np.append(self.since_ms[stays], np.full(len(new), now_ms))
        order = np.argsort(ledger.first, kind="stable")
        return replace(
            self,
            ledger=_in_order(ledger, order),
            since_ms=since_ms[order],
            away=replace(self, ledger=apart, since_ms=self.since_ms[aside], away=None),
            is_due=self.is_due or bool(len(gone) or len(new)),
        )

    def age_s(self, now_ms: int) -> Score:
        """Return for how long each job has been known."""
        return np.asarray((now_ms - self.since_ms) / 1_000)


def _ledger(told: _Memo, types: Sequence[str]) -> Ledger:
    """Return the ledger with a column for each of these types; raise ValueError if it has holes."""
    jobs = integers(told.jobs)
    if not (len(jobs) == len(told.is_promised) == len(told.since_ms)):
        raise ValueError("columns differ in length")
    columns = [told.types.index(type_) if type_ in told.types else -1 for type_ in types]

    def widened(rows: list[list[float]], otherwise: float) -> Shares:
        table = np.array(rows, np.float64).reshape(len(jobs), len(told.types))
        padded = np.append(table, np.full((len(jobs), 1), otherwise), axis=1)
        return np.asarray(padded[:, columns])

    return Ledger(
        first=jobs,
        second=np.full(len(jobs), NOBODY),
        share=widened(told.share, 0.0),
        received_s=widened(told.received_s, told.credit_s),
        deficit_s=widened(told.deficit_s, 0.0),
        is_promised=np.array(told.is_promised, np.bool_),
        credit_s=told.credit_s,
    )


def _in_order(ledger: Ledger, order: Ids) -> Ledger:
    return Ledger(
        ledger.first[order],
        ledger.second[order],
        _rows(ledger.share, order),
        _rows(ledger.received_s, order),
        _rows(ledger.deficit_s, order),
        ledger.is_promised[order],
        ledger.credit_s,
    )


def _rows(table: Rates, order: Ids) -> Rates:
    return np.asarray(table[order])
