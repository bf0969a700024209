"""Rates learnt while jobs run, and lent by kinds like them."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from omega.model.arrays import Score
from omega.workload.throughputs import PairRates, Rates, Throughputs, read_throughputs
from schedulers.ml_gpu.estimates import (
    drawn,
    filled,
    first_rates,
    kept_beside,
    lent,
    match,
    observe,
    observe_pairs,
)
from tests.fixtures.doses import examples

NONE = np.nan
RATES = np.array([[4.0, 1.0], [2.0, 3.0]])


def test_a_job_begins_with_the_rates_of_its_kind_or_of_the_kind_that_it_is_like() -> None:
    kind, like = np.array([1, -1, -1]), np.array([0, 0, -1])

    rates = first_rates(RATES, kind, like, np.full((3, 2), NONE))

    assert [[2.0, 3.0], [4.0, 1.0], [1.0, 1.0]] == rates.tolist()


def test_what_is_said_of_one_job_comes_first() -> None:
    said = np.array([[NONE, 9.0], [NONE, NONE]])

    rates = first_rates(RATES, np.array([0, 0]), np.array([-1, -1]), said)

    assert [[4.0, 9.0], [4.0, 1.0]] == rates.tolist()


def test_each_round_counts_for_half() -> None:
    rates = RATES
    for steps in (360.0, 720.0):
        rates = observe(rates, np.array([1]), np.array([0]), np.array([steps]), np.array([360.0]))

    assert [[4.0, 1.0], [1.75, 3.0]] == rates.tolist()


def test_a_job_without_time_has_shown_nothing() -> None:
    nothing = np.array([0.0])

    assert np.array_equal(RATES, observe(RATES, np.array([0]), np.array([0]), nothing, nothing))


def a_pair(mine: float, theirs: float) -> PairRates:
    beside = np.zeros((2, 2, 1))
    beside[0, 1], beside[1, 0] = mine, theirs
    return PairRates(beside)


def seen_together(pairs: PairRates, mine: float, theirs: float) -> PairRates:
    zero, one = np.array([0]), np.array([1])
    return observe_pairs(pairs, zero, one, zero, np.array([[mine, theirs]]))


def test_pairs_are_learnt_in_both_directions() -> None:
    pairs = seen_together(a_pair(2.0, 4.0), 1.0, 8.0)

    assert (1.5, 6.0) == (pairs.of[0, 1, 0], pairs.of[1, 0, 0])


@pytest.mark.parametrize("failed", [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0)])
def test_two_that_failed_together_never_fit_again(failed: tuple[float, float]) -> None:
    pairs = seen_together(seen_together(a_pair(2.0, 4.0), *failed), 5.0, 5.0)

    assert not pairs.of.any()


@pytest.mark.parametrize(("part", "expected"), [(0.01, 1), (0.3, 3), (1.0, 10)])
def test_a_part_of_the_references_is_drawn(part: float, expected: int) -> None:
    assert expected == drawn(10, part, np.random.default_rng(1)).sum()


fractions = st.floats(0, 1, width=16)


@st.composite
def references(draw: st.DrawFn) -> PairRates:
    """Few kinds, and more types than kinds or fewer."""
    kinds, types = draw(st.integers(1, 5)), draw(st.integers(1, 7))
    return PairRates(draw(arrays(np.float64, (kinds, kinds, types), elements=fractions)))


@st.composite
def profiled(draw: st.DrawFn) -> tuple[PairRates, Rates]:
    """References, and another kind's profile with gaps."""
    known = draw(references())
    elements = st.one_of(fractions, st.just(NONE))
    return known, draw(arrays(np.float64, known.of.shape[1:], elements=elements))


@examples(200)
@given(references(), st.data())
def test_a_reference_that_is_fully_profiled_is_like_itself(
    known: PairRates, data: st.DataObject
) -> None:
    kind = data.draw(st.integers(0, len(known.of) - 1))

    found = match(known, known.of[kind])

    assert np.allclose(known.of[kind], known.of[found], atol=1e-4)


@examples(200)
@given(profiled())
def test_what_was_measured_stands_and_the_rest_is_a_fraction(
    case: tuple[PairRates, Rates],
) -> None:
    known, profile = case
    whole, measured = filled(known, profile), ~np.isnan(profile)

    assert np.array_equal(profile[measured], whole[measured])
    assert ((whole >= 0) & (whole <= 1)).all()
    assert 0 <= match(known, profile) < len(known.of)


@examples(200)
@given(profiled(), st.floats(0.5, 8))
def test_what_is_lent_is_in_proportion_to_ones_own_rates(
    case: tuple[PairRates, Rates], rate: float
) -> None:
    known, profile = case
    isolated: Score = np.full(profile.shape[1], rate)
    mine, theirs = lent(known, known, profile, 0, isolated)

    assert (mine <= rate).all()
    assert np.array_equal(mine > 0, theirs > 0)
    measured = ~np.isnan(profile) & (theirs > 0)
    assert np.allclose((profile * rate)[measured], mine[measured])


def singles(folder: Path) -> Throughputs:
    table = read_throughputs(folder / "gavel" / "simulation_throughputs.json")
    return table.of(table.types, [kind for kind in table.kinds if kind[1] == 1])


@pytest.mark.trace
def test_published_kinds_find_themselves(published: Path) -> None:
    table = singles(published)
    kept = kept_beside(table.rates, table.pairs)

    for few in (3, 5, len(table.kinds)):
        known = PairRates(kept.of[:few, :few])
        for kind in range(few):
            assert kind == match(known, known.of[kind])

    itself = 0
    for kind in range(len(table.kinds)):
        gaps = np.where(drawn(26, 0.5, np.random.default_rng(kind)), 0.0, NONE)
        itself += kind == match(kept, kept.of[kind] + gaps[:, np.newaxis])
    assert itself >= 0.9 * len(table.kinds)


def errors(table: Throughputs, part: float, seed: int) -> Score:
    """How far each kind's rates are off, in parts of its own, when the others alone are known."""
    rng, kept = np.random.default_rng(seed), kept_beside(table.rates, table.pairs)
    off = []
    for new in range(len(table.kinds)):
        others = np.delete(np.arange(len(table.kinds)), new)
        known = PairRates(kept.of[np.ix_(others, others)])
        truth = kept.of[new][others]
        profile = np.where(drawn(len(others), part, rng)[:, np.newaxis], truth, NONE)
        like = match(known, profile)
        off.append(np.abs(known.of[like] - truth).ravel())
    return np.concatenate(off)


@pytest.mark.trace
@pytest.mark.parametrize(
    ("part", "median", "nine_in_ten"), [(0.25, 0.07, 0.25), (0.5, 0.055, 0.2), (1.0, 0.05, 0.18)]
)
def test_published_pairs_are_estimated(
    published: Path, part: float, median: float, nine_in_ten: float
) -> None:
    table = singles(published)
    off = np.concatenate([errors(table, part, seed) for seed in range(3)])

    assert np.median(off) <= median
    assert np.percentile(off, 90) <= nine_in_ten
