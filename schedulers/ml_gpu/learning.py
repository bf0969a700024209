"""Rates learnt from the progress of jobs while they run.

Goal     Have policies believe what jobs do, where it differs from what a table says of their kind.
Promise  Arrays in, arrays out. What was never seen is what the table says; of a kind that no table
         has, types that were not tried count like the mean of those that were. Never more than a
         table may say.
Source   Gavel (OSDI 2020), section 6; docs/papers/gavel.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from omega.model.arrays import Index, Mask, Score
from schedulers.ml_gpu.throughputs import RATE_MAX, Kind, Rates, Throughputs

ALPHA: Final = 0.5
"""Weight of the newest rate among all that were seen."""
NEWS: Final = 0.1
"""By how much a rate must differ from the one that shares were promised by, to promise anew."""


@dataclass(frozen=True, eq=False)
class ObservedRates:
    """What was seen of kinds of jobs, in steps/s; NaN where nothing was."""

    types: tuple[str, ...]
    seen: Mapping[Kind, Score]

    def observed(
        self, kinds: Sequence[Kind], kind: Index, on: Index, steps: Score, seconds: Score
    ) -> "ObservedRates":
        """Return what is known once jobs of these kinds have made steps on these types.

        A mean of what equal jobs have just done weighs as much as all that was seen before.
        """
        seen = {name: rates.copy() for name, rates in self.seen.items()}
        ran = (seconds > 0) & (on >= 0)
        for row, type_ in np.unique(np.column_stack([kind[ran], on[ran]]), axis=0).tolist():
            which = ran & (kind == row) & (on == type_)
            rate = float(steps[which].sum() / seconds[which].sum())
            rate = min(max(rate, 0.0), RATE_MAX)  # nodes may report anything
            known = seen.setdefault(kinds[row], np.full(len(self.types), np.nan))
            before = known[type_]
            known[type_] = rate if np.isnan(before) else before + ALPHA * (rate - before)
        return replace(self, seen=seen)

    def known(self, kinds: Sequence[Kind], table: Throughputs | None) -> Mask:
        """Say where a table or a step that was seen tells the rate: (kinds, types)."""
        told = np.zeros((len(kinds), len(self.types)), np.bool_)
        if table is not None:
            told |= table.of(self.types, kinds).rates > 0
        for row, kind in enumerate(kinds):
            if kind in self.seen:
                told[row] |= self.seen[kind] > 0
        return told

    def rates(self, kinds: Sequence[Kind], table: Throughputs | None) -> Rates:
        """Return what is believed of these kinds: (kinds, types)."""
        believed = np.ones((len(kinds), len(self.types)))
        known: Mask = np.zeros(len(kinds), np.bool_)
        if table is not None:
            told = table.of(self.types, kinds).rates
            known = np.asarray(told.any(axis=1))
            believed[known] = told[known]
        for row, kind in enumerate(kinds):
            seen = self.seen.get(kind)
            if seen is None or not (seen > 0).any():
                continue
            otherwise = believed[row] if known[row] else seen[seen > 0].mean()
            believed[row] = np.where(seen > 0, seen, otherwise)
        return believed


def is_news(believed: Rates, promised_by: Rates) -> bool:
    """Say whether rates differ enough from those that shares were promised by."""
    return bool((np.abs(believed - promised_by) > NEWS * promised_by).any())
