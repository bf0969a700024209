"""Measures by day: the median of the daily values and their median absolute deviation.

Goal     Report runs of several days as the Omega paper does, which no single day can upset.
Promise  Only whole days count. A run of less than two whole days has no such measures, and costs
         nothing more.
Source   Omega (EuroSys 2013), section 4: busyness and conflict fraction are medians of daily
         values, with the median absolute deviation; waits are means over the whole run.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import fields
from statistics import median
from typing import Any, Final

from omega.sim.engine import Engine, Order
from omega.sim.ledger import Ledger
from omega.sim.results import of_scheduler, of_schedulers

DAY_S: Final = 86_400
DAILY: Final = ("busy", "conflict_fraction")
"""The measures that are taken by day."""


class DailyLedgers:
    """What each scheduler had done by the end of each whole day."""

    def __init__(self, engine: Engine, ledgers: Sequence[Ledger], horizon_s: float) -> None:
        self._ledgers = ledgers
        self._at_end_of_day = [[Ledger(one.name) for one in ledgers]]
        days = int(horizon_s // DAY_S)
        for day in range(1, days + 1) if days > 1 else ():
            engine.at(day * DAY_S, Order.RETRY, self._end_day)

    def measures(self, workloads: Mapping[str, Sequence[Ledger]]) -> dict[str, dict[str, Any]]:
        """Return the daily measures of each workload, which names the ledgers of its schedulers.

        For each measure: its median over the days and its median absolute deviation, None if no day
        has a value. No measures if there were less than two whole days.
        """
        days = len(self._at_end_of_day) - 1
        if days < 2:  # noqa: PLR2004 - a median of one day is that day
            return {name: {} for name in workloads}
        at = {ledger: number for number, ledger in enumerate(self._ledgers)}
        return {
            name: _medians([self._of_day(day, [at[one] for one in mine]) for day in range(days)])
            for name, mine in workloads.items()
        }

    def _end_day(self) -> None:
        self._at_end_of_day.append([copy(ledger) for ledger in self._ledgers])

    def _of_day(self, day: int, schedulers: Sequence[int]) -> dict[str, Any]:
        before, after = self._at_end_of_day[day : day + 2]
        rows = [of_scheduler(_difference(before[each], after[each]), DAY_S) for each in schedulers]
        return of_schedulers(rows)


def _difference(before: Ledger, after: Ledger) -> Ledger:
    """Return what was counted between two states of a ledger."""
    counted = [field.name for field in fields(Ledger) if field.name != "name"]
    return Ledger(
        after.name, **{name: getattr(after, name) - getattr(before, name) for name in counted}
    )


def _medians(days: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the median of each daily measure and its median absolute deviation."""
    measures: dict[str, Any] = {"days": len(days)}
    for name in DAILY:
        values = [day[name] for day in days if day[name] is not None]
        middle = median(values) if values else None
        measures[f"{name}_daily_median"] = middle
        measures[f"{name}_daily_mad"] = (
            median(abs(value - middle) for value in values) if middle is not None else None
        )
    return measures
