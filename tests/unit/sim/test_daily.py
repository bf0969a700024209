"""Medians of daily values, computed by hand for ledgers that change at known times."""

from collections.abc import Callable, Sequence

import pytest

from omega.sim.daily import DAY_S, DailyLedgers
from omega.sim.engine import Engine, Order
from omega.sim.ledger import Ledger

HALF_DAY_S = DAY_S / 2


def count(ledger: Ledger, *, useful_s: float, accepted: int, conflicted: int) -> Callable[[], None]:
    def book() -> None:
        ledger.useful_s += useful_s
        ledger.accepted += accepted
        ledger.conflicted += conflicted

    return book


def daily(
    days: float, ledgers: Sequence[Ledger], bookings: Sequence[tuple[float, Callable[[], None]]]
) -> DailyLedgers:
    engine = Engine()
    kept = DailyLedgers(engine, ledgers, days * DAY_S)
    for at_days, book in bookings:
        engine.at(at_days * DAY_S, Order.DECISION, book)
    engine.run(days * DAY_S)
    return kept


def test_a_run_of_one_whole_day_has_no_daily_measures() -> None:
    ledger = Ledger("batch-0")

    kept = daily(1.9, [ledger], [(0.5, count(ledger, useful_s=9.0, accepted=1, conflicted=0))])

    assert {"batch": {}} == kept.measures({"batch": [ledger]})


def test_the_median_is_of_whole_days_and_the_mad_of_their_distances_from_it() -> None:
    """Busy for a tenth, a half and three tenths of a day; what comes after counts nowhere."""
    ledger = Ledger("batch-0")
    shares = [(0.5, 0.1, 4, 1), (1.5, 0.5, 4, 2), (2.5, 0.3, 4, 4), (3.2, 0.9, 1, 9)]
    bookings = [
        (at, count(ledger, useful_s=share * DAY_S, accepted=accepted, conflicted=conflicted))
        for at, share, accepted, conflicted in shares
    ]

    measures = daily(3.5, [ledger], bookings).measures({"batch": [ledger]})["batch"]

    assert 3 == measures["days"]
    assert pytest.approx(0.3) == measures["busy_daily_median"]
    assert pytest.approx(0.2) == measures["busy_daily_mad"]
    assert 0.5 == measures["conflict_fraction_daily_median"]
    assert 0.25 == measures["conflict_fraction_daily_mad"]


def test_what_happens_at_midnight_counts_for_the_day_before() -> None:
    ledger = Ledger("batch-0")
    book = count(ledger, useful_s=HALF_DAY_S, accepted=1, conflicted=0)

    measures = daily(2, [ledger], [(1.0, book)]).measures({"batch": [ledger]})["batch"]

    assert (0.25, 0.25) == (measures["busy_daily_median"], measures["busy_daily_mad"])
    assert 0.0 == measures["conflict_fraction_daily_median"], "the day without any is left out"


def test_schedulers_of_one_workload_are_taken_together_and_others_apart() -> None:
    first, second, other = Ledger("batch-0"), Ledger("batch-1"), Ledger("service-0")
    bookings = [
        (0.5, count(first, useful_s=0.2 * DAY_S, accepted=1, conflicted=0)),
        (0.6, count(second, useful_s=0.4 * DAY_S, accepted=1, conflicted=1)),
        (1.5, count(other, useful_s=0.8 * DAY_S, accepted=0, conflicted=3)),
    ]

    kept = daily(2, [first, second, other], bookings)
    measures = kept.measures({"batch": [first, second], "service": [other]})

    assert pytest.approx(0.15) == measures["batch"]["busy_daily_median"]
    assert 0.5 == measures["batch"]["conflict_fraction_daily_median"]
    assert pytest.approx(0.4) == measures["service"]["busy_daily_median"]
    assert measures["service"]["conflict_fraction_daily_median"] is None
