"""What a round knows of the ones before: shares promised and had, on record between rounds.

Goal     Let any replica go on where the last one stopped, from the memo alone.
Promise  What JSON holds of a record is the record, to the last digit. A memo that this program did
         not write, or cannot read, is an empty record: shares are then promised anew.
Source   Gavel (OSDI 2020), section 5; docs/decisions/0028-rounds-on-the-shared-cell.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Final

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from omega.model.arrays import Ids, Mask, Score, integers
from schedulers.ml_gpu.history import HistoryMemo, JobHistory
from schedulers.ml_gpu.learning import ObservedRates
from schedulers.ml_gpu.problem import NOBODY, NOWHERE, Shares
from schedulers.ml_gpu.rounds import Ledger
from schedulers.ml_gpu.throughputs import Rates

UNKNOWN: Final = NOWHERE - 1
AMOUNT_MAX: Final = 1e15
"""More seconds, or steps a second, than there will be."""
SPEED_UP_MIN: Final = 1e-6
"""Bounds a quotient that wrong reports could make anything."""
CREDIT_S_MIN: Final = 1e-6
"""Less than the credit of the shortest rounds."""
_Whole = Annotated[int, Field(ge=0, lt=2**63)]
_Type = Annotated[int, Field(ge=UNKNOWN, lt=2**31)]
_Amount = Annotated[float, Field(ge=0, le=AMOUNT_MAX)]


class _Memo(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    types: list[str]
    gpus: list[_Whole]
    jobs: list[_Whole]
    share: list[list[_Amount]]
    received_s: list[list[_Amount]]
    deficit_s: list[list[Annotated[float, Field(ge=-AMOUNT_MAX, le=AMOUNT_MAX)]]]
    is_promised: list[bool]
    since_ms: list[_Whole]
    done: list[_Whole]
    run_ms: list[_Whole]
    on: list[_Type]
    seen: list[tuple[str, _Whole, list[_Amount | None]]]
    promised_by: list[list[_Amount]]
    charged_ms: list[_Whole]
    reset_ms: _Whole | None
    policy: str
    is_due: bool
    round: _Whole = 0
    history: HistoryMemo = HistoryMemo()
    credit_s: Annotated[float, Field(ge=CREDIT_S_MIN, le=AMOUNT_MAX)]
    speed_up: Annotated[float, Field(ge=SPEED_UP_MIN, le=1 / SPEED_UP_MIN)] = 1.0
    tenants: str = ""


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
    done: Ids = field(default_factory=integers)
    """Steps that each had made by the last round ..."""
    run_ms: Ids = field(default_factory=integers)
    """... and the time in which ..."""
    on: Ids = field(default_factory=integers)
    """... and the type on which each ran then: NOWHERE, or another negative number if nobody
    knows."""
    history: JobHistory
    """What each has been through."""
    round: int = 0
    """The number of the round that noted this."""
    promised_by: Rates
    """The rates that each was last promised its share by: (jobs, types)."""
    learnt: ObservedRates
    charged_ms: Ids = field(default_factory=integers)
    """Up to when what each has had has been counted, by the store's clock."""
    reset_ms: int | None = None
    """When shares were last promised; None: never."""
    policy: str = ""
    """The one that promised them."""
    tenants: str = ""
    """A digest of the weights and parents of tenants by which shares were promised."""
    is_due: bool = True
    """Whether something has changed since."""
    speed_up: float = 1.0
    """Seconds of the nodes that run jobs, and of rates, in one of the store's: above 1 only for
    virtual nodes."""
    away: "Record | None" = None
    """Of jobs that nobody can plan now, and that may come back."""

    @classmethod
    def empty(cls, types: Sequence[str], credit_s: float) -> "Record":
        """Return the record of nobody."""
        ledger = Ledger.empty(len(types), credit_s)
        return cls(
            types=tuple(types),
            gpus=(),
            ledger=ledger,
            promised_by=np.zeros((0, len(types))),
            history=JobHistory.new(0, len(types)),
            learnt=ObservedRates(tuple(types), {}),
        )

    @classmethod
    def of(cls, memo: Mapping[str, object], types: Sequence[str], credit_s: float) -> "Record":
        """Read a memo, for these types: of one that is new, nothing was promised or had."""
        if not memo:
            return cls.empty(types, credit_s)
        try:
            told = _Memo.model_validate(dict(memo))
            ledger = _ledger(told, types)
            promised_by = _widened(told, told.promised_by, types, 0.0)
            learnt = _learnt(told, types)
            history = JobHistory.of(
                told.history,
                len(told.jobs),
                len(types),
                lambda rows: _widened(told, rows, types, 0.0),
            )
        except (ValidationError, ValueError):
            return cls.empty(types, credit_s)
        return cls(
            types=tuple(types),
            gpus=tuple(told.gpus) if told.types == list(types) else (),
            ledger=ledger,
            since_ms=integers(told.since_ms),
            done=integers(told.done),
            run_ms=integers(told.run_ms),
            on=integers(told.on if told.types == list(types) else [UNKNOWN] * len(told.on)),
            promised_by=promised_by,
            history=history,
            round=told.round,
            learnt=learnt,
            charged_ms=integers(told.charged_ms),
            reset_ms=told.reset_ms,
            policy=told.policy,
            tenants=told.tenants,
            speed_up=told.speed_up,
            is_due=told.is_due,
        )

    def memo(self) -> dict[str, object]:
        """Return the record as JSON has it.

        Amounts are cut at the bounds: a stranger's memo may have had them there.
        """
        ledger = self.ledger
        parts = [self] if self.away is None else [self, self.away]
        ledgers = [part.ledger for part in parts]
        return _Memo(
            types=list(self.types),
            gpus=list(self.gpus),
            jobs=np.concatenate([part.first for part in ledgers]).tolist(),
            share=_table(part.share for part in ledgers),
            received_s=_table(part.received_s for part in ledgers),
            deficit_s=_table(part.deficit_s for part in ledgers),
            is_promised=np.concatenate([part.is_promised for part in ledgers]).tolist(),
            since_ms=np.concatenate([part.since_ms for part in parts]).tolist(),
            done=np.concatenate([part.done for part in parts]).tolist(),
            run_ms=np.concatenate([part.run_ms for part in parts]).tolist(),
            on=np.concatenate([part.on for part in parts]).tolist(),
            promised_by=_table(part.promised_by for part in parts),
            seen=[
                (model, gpus, [None if np.isnan(rate) else rate for rate in rates.tolist()])
                for (model, gpus), rates in sorted(self.learnt.seen.items())
            ],
            charged_ms=np.concatenate([part.charged_ms for part in parts]).tolist(),
            reset_ms=self.reset_ms,
            policy=self.policy,
            tenants=self.tenants,
            speed_up=self.speed_up,
            is_due=self.is_due,
            round=self.round,
            history=self._whole_history().memo(),
            credit_s=ledger.credit_s,
        ).model_dump()

    def _whole_history(self) -> JobHistory:
        return self.history if self.away is None else self.history.and_(self.away.history)

    def among(self, jobs: Ids, away: Ids, now_ms: int) -> "Record":
        """Return the record of these jobs, ascending: others are forgotten, new ones join.

        Those that are away are kept apart.
        """
        absent = np.setdiff1d(self.ledger.first, jobs)
        gone = np.setdiff1d(absent, away)
        new = np.setdiff1d(jobs, self.ledger.first)
        stays = np.isin(self.ledger.first, jobs)
        aside = np.isin(self.ledger.first, away) & ~stays
        order = np.argsort(np.append(self.ledger.first[stays], new), kind="stable")
        none = np.zeros(len(new), np.int64)
        return replace(
            self,
            ledger=_in_order(self.ledger.without(absent).joined_by(new), order),
            since_ms=np.append(self.since_ms[stays], np.full(len(new), now_ms))[order],
            charged_ms=np.append(self.charged_ms[stays], np.full(len(new), now_ms))[order],
            done=np.append(self.done[stays], none)[order],
            run_ms=np.append(self.run_ms[stays], none)[order],
            on=np.append(self.on[stays], np.full(len(new), UNKNOWN))[order],
            promised_by=np.vstack([self.promised_by[stays], np.zeros((len(new), len(self.types)))])[
                order
            ],
            history=self.history.rows(stays)
            .and_(JobHistory.new(len(new), len(self.types)))
            .rows(order),
            away=self._only(aside),
            is_due=self.is_due or bool(len(gone) or len(new)),
        )

    def _only(self, which: Mask) -> "Record":
        return replace(
            self,
            ledger=self.ledger.without(self.ledger.first[~which]),
            since_ms=self.since_ms[which],
            charged_ms=self.charged_ms[which],
            done=self.done[which],
            run_ms=self.run_ms[which],
            on=self.on[which],
            promised_by=self.promised_by[which],
            history=self.history.rows(which),
            away=None,
        )

    def age_s(self, now_ms: int) -> Score:
        """Return for how long each job has been known, in seconds of the store's clock."""
        return np.asarray(np.maximum(now_ms - self.since_ms, 0) / 1_000)

    def measured(self, ran_s: Score, had_s: Score) -> "Record":
        """Return the record with the speed-up of nodes on which jobs ran so long in so much time.

        `ran_s` (jobs,) is what nodes reported, `had_s` (jobs,) by the store's clock. If nothing was
        reported, the speed-up is as before.
        """
        told = ran_s > 0
        if not told.any() or not had_s[told].any():
            return self
        speed_up = float(ran_s[told].sum() / had_s[told].sum())
        return replace(self, speed_up=min(max(speed_up, SPEED_UP_MIN), 1 / SPEED_UP_MIN))


def _ledger(told: _Memo, types: Sequence[str]) -> Ledger:
    """Return the ledger with a column for each of these types; raise ValueError if it has holes."""
    jobs = integers(told.jobs)
    per_job = (
        *(told.is_promised, told.since_ms, told.charged_ms, told.done, told.run_ms, told.on),
        told.promised_by,
    )
    if any(len(column) != len(jobs) for column in per_job):
        raise ValueError("columns differ in length")
    if len(set(told.jobs)) < len(jobs) or len(set(told.types)) < len(told.types):
        raise ValueError("a job or a type is there twice")
    return Ledger(
        first=jobs,
        second=np.full(len(jobs), NOBODY),
        share=_widened(told, told.share, types, 0.0),
        received_s=_widened(told, told.received_s, types, told.credit_s),
        deficit_s=_widened(told, told.deficit_s, types, 0.0),
        is_promised=np.array(told.is_promised, np.bool_),
        credit_s=told.credit_s,
    )


def _widened(
    told: _Memo, rows: Sequence[Sequence[float]], types: Sequence[str], otherwise: float
) -> Shares:
    """Return a table with a column for each of these types."""
    table = np.array(rows, np.float64).reshape(len(told.jobs), len(told.types))
    return _columns(table, told.types, types, otherwise)


def _columns(table: Rates, before: Sequence[str], types: Sequence[str], otherwise: float) -> Rates:
    places = [before.index(type_) if type_ in before else -1 for type_ in types]
    padded = np.append(table, np.full((len(table), 1), otherwise), axis=1)
    return np.asarray(padded[:, places])


def _learnt(told: _Memo, types: Sequence[str]) -> ObservedRates:
    seen = {}
    for model, gpus, rates in told.seen:
        row = np.array([[np.nan if rate is None else rate for rate in rates]], np.float64)
        seen[model, gpus] = _columns(row.reshape(1, len(told.types)), told.types, types, np.nan)[0]
    return ObservedRates(tuple(types), seen)


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


def _table(parts: Iterable[Rates]) -> list[list[float]]:
    """Return the rows of all parts, as JSON has them."""
    rows: list[list[float]] = np.clip(np.vstack(list(parts)), -AMOUNT_MAX, AMOUNT_MAX).tolist()
    return rows


def _rows(table: Rates, order: Ids) -> Rates:
    return np.asarray(table[order])
