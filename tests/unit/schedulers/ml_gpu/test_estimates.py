"""Rates lent by kinds that are alike."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from omega.model.arrays import Score
from schedulers.ml_gpu.estimates import (
    drawn,
    filled,
    kept_beside,
    lent,
    match,
)
from schedulers.ml_gpu.throughputs import PairRates, Rates, Throughputs, read_throughputs
from tests.fixtures.doses import examples

NONE = np.nan


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
