"""Laws are found again in what was drawn from them, also where ends were not seen."""

import numpy as np
import pytest

from omega.model.arrays import Score
from omega.workload.laws import (
    PARAMETRIC,
    Empirical,
    Exponential,
    Law,
    LogNormal,
    Observed,
    Weibull,
    distance,
)

JOBS = 4_000
LAWS: list[Law] = [Exponential(20.0), LogNormal(2.0, 1.5), Weibull(0.6, 30.0)]


def seen(values: Score, censored_from: float = np.inf) -> Observed:
    return Observed(np.minimum(values, censored_from), values > censored_from)


def drawn(law: Law) -> Score:
    return law.quantile(np.random.default_rng(1).random(JOBS))


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
@pytest.mark.parametrize("censored_from", [np.inf, 25.0])
def test_a_law_is_found_again(law: Law, censored_from: float) -> None:
    observed = seen(drawn(law), censored_from)
    fitted = {one.name: one.fitted(observed) for one in PARAMETRIC}
    off = {name: distance(observed, one) for name, one in fitted.items()}

    assert law.parameters == pytest.approx(fitted[law.name].parameters, rel=0.08)
    assert off[law.name] < 0.025
    assert all(off[name] > 0.03 for name in off if name not in {law.name, "weibull"})


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_a_quantile_is_where_the_share_is_reached(law: Law) -> None:
    shares = np.array([0.01, 0.5, 0.99])

    assert shares == pytest.approx(law.cdf(law.quantile(shares)))


def test_a_weibull_law_of_shape_1_is_exponential() -> None:
    values = np.array([0.1, 1.0, 10.0])

    assert Exponential(3.0).cdf(values) == pytest.approx(Weibull(1.0, 3.0).cdf(values))


def test_far_beyond_the_scale_all_is_below() -> None:
    assert [1.0] == Weibull(400.0, 1.0).cdf(np.array([1e9])).tolist()


def test_what_was_not_seen_to_end_was_at_risk_until_then() -> None:
    """By hand: of five, one ends at 1; of the four left, one at 2; of two left, one at 4."""
    observed = Observed(
        np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([False, False, True, False, True])
    )
    at, shares = observed.steps()

    assert [1.0, 2.0, 4.0] == at.tolist()
    assert [0.2, 0.4, 0.7] == pytest.approx(shares.tolist())
    assert 4.0 == observed.quantile(0.5)
    assert observed.quantile(0.9) is None


def test_the_empirical_law_is_what_was_seen() -> None:
    observed = Observed(np.array([1.0, 1.0, 4.0, 2.0]), np.zeros(4, np.bool_))
    law = Empirical.fitted(observed)

    assert 0.0 == distance(observed, law)
    assert [0.0, 0.5, 0.5, 0.75, 1.0, 1.0] == law.cdf(np.array([0.5, 1, 1.5, 2, 4, 9])).tolist()
    assert [1.0, 1.0, 2.0, 4.0] == law.quantile(np.array([0.1, 0.5, 0.6, 0.9])).tolist()


def test_the_distance_counts_both_sides_of_a_step() -> None:
    observed = Observed(np.array([1.0]), np.zeros(1, np.bool_))
    law = Exponential(1 / np.log(4.0))  # three in four are up to 1

    assert 0.75 == pytest.approx(distance(observed, law), abs=1e-6)
    assert 0.25 == pytest.approx(distance(observed, law, whole=True))


@pytest.mark.parametrize("law", PARAMETRIC, ids=lambda law: law.name)
def test_values_that_are_all_the_same_have_a_law(law: type[Exponential]) -> None:
    observed = Observed(np.full(5, 7.0), np.zeros(5, np.bool_))

    assert 7.0 == pytest.approx(float(law.fitted(observed).quantile(np.array([0.6]))[0]), rel=0.1)
