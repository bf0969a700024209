"""Rates learnt from the progress of jobs."""

import numpy as np
import pytest

from schedulers.ml_gpu.learning import ObservedRates
from schedulers.ml_gpu.throughputs import RATE_MAX

KIND = ("A3C", 1)


@pytest.mark.parametrize(("steps", "rate"), [(500.0, 500.0), (9e18, RATE_MAX), (-5.0, 0.0)])
def test_no_more_is_learnt_than_a_table_may_say(steps: float, rate: float) -> None:
    nothing = ObservedRates(("k80",), {})
    one = np.zeros(1, np.intp)

    learnt = nothing.observed([KIND], one, one, np.array([steps]), np.array([1.0]))

    assert [rate] == learnt.seen[KIND].tolist()
