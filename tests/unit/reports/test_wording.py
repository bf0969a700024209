"""Figures as a person reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omega.reports.wording import amounts, clock, count, duration, fraction, share, things


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, "-"),
        (0, "0"),
        (0.25, "0.2"),
        (3.0, "3"),
        (9.87, "9.9"),
        (12_345.6, "12,346"),
        (12_345_678, "12.3 M"),
    ],
)
def test_a_count_keeps_a_digit_where_it_is_small(number: float | None, text: str) -> None:
    assert text == count(number)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (0.0012, "1.2 ms"),
        (0.0123, "12 ms"),
        (0.9996, "1.0 s"),
        (1.25, "1.2 s"),
        (42, "42 s"),
        (600, "10 min"),
        (86_400, "24 h"),
    ],
)
def test_a_duration_has_two_digits_that_mean_something(seconds: float | None, text: str) -> None:
    assert text == duration(seconds)


@given(st.floats(0, 3e9))
def test_nothing_is_wider_than_its_column(number: float) -> None:
    assert len(count(number)) <= 9
    assert number > 3.6e7 or len(duration(number)) <= 8


@pytest.mark.parametrize(
    ("part", "text"), [(None, "-"), (0.0, "0%"), (0.04, "4.0%"), (0.57, "57%"), (1.0, "100%")]
)
def test_a_share_is_a_percentage(part: float | None, text: str) -> None:
    assert text == share(part)


def test_a_conflict_fraction_may_exceed_one() -> None:
    assert ["-", "0.34", "1.20"] == [fraction(None), fraction(0.341), fraction(1.2)]


def test_a_clock_shows_minutes_and_seconds() -> None:
    assert ["00:00", "01:05", "100:00"] == [clock(-1), clock(65.9), clock(6_000)]


def test_one_thing_is_not_plural() -> None:
    assert ["1 job", "0 jobs", "2,000 jobs"] == [things(n, "job") for n in (1, 0, 2_000)]


@pytest.mark.parametrize(
    ("named", "text"),
    [
        ({}, "nothing"),
        ({"cpu_milli": 1_000, "memory_mib": 0}, "1 core"),
        ({"cpu_milli": 128_000_500, "memory_mib": 512}, "128,000.5 cores, 0.5 GiB"),
        ({"disk_mib": 10_240, "gpu_0": 500, "gpu_7": 1_000}, "10 GiB of disk, 1.5 GPUs"),
        ({"gpu_3": 1_000}, "1 GPU"),
    ],
)
def test_amounts_are_told_in_their_units(named: dict[str, int], text: str) -> None:
    assert text == amounts(named)
