"""The pause between two reads."""

import pytest

from omega.framework.read_pause import PAUSE_S_MAX, next_read_s


@pytest.mark.parametrize(
    ("took_s", "gap_s", "pause_s"),
    [
        (0.0, 0.05, 0.05),
        (0.001, 0.05, 0.05),
        (0.01, 0.05, 0.2),
        (10.0, 0.05, PAUSE_S_MAX),
        (10.0, 60.0, 60.0),
    ],
)
def test_it_is_the_gap_or_longer_where_reads_take_long_but_not_for_ever(
    took_s: float, gap_s: float, pause_s: float
) -> None:
    assert 100.0 + pause_s == pytest.approx(next_read_s(100.0 - took_s, 100.0, gap_s))
