"""The benchmark of decisions at toy size."""

import numpy as np
import pytest

from benchmarks.placement import POLICIES, Case, Policy
from omega.clock import ManualClock
from omega.errors import InvariantBroken
from omega.model.claims import Claims
from omega.testing.builders import a_cell, a_group, a_view, some_claims
from tests.benchmarks.conftest import PNG, Bench


def test_every_policy_places_jobs_of_every_size(bench: Bench) -> None:
    ran = bench("placement")

    assert {(60, policy, tasks) for policy in POLICIES for tasks in (1, 5)} == {
        (row["machines"], row["policy"], row["tasks"]) for row in ran.rows
    }
    assert all(row["tasks_per_s"] > 0 and row["samples"] >= 3 for row in ran.rows)
    placed = sum(row["tasks"] * row["samples"] for row in ran.rows)
    assert placed == ran.document["digest"]["tasks placed"]
    assert "On 60 machines, random first fit places" in ran.document["summary"]["finding"]
    assert "postgres" not in ran.document["environment"]
    assert ran.picture.startswith(PNG)


def test_the_seed_alone_decides_what_is_placed(bench: Bench) -> None:
    checksum = "claims on 60 machines, crc32"
    first, again, other = (
        bench("placement", "--seed", seed).document["digest"][checksum] for seed in ("1", "1", "2")
    )

    assert first == again
    assert first != other


def test_placing_leaves_the_view_as_it_was() -> None:
    view = a_view(a_cell(2))
    before = view.free.copy()

    _, claims = Case(Policy("batch", a_group()), 3, view).place(
        ManualClock(), np.random.default_rng(0)
    )

    assert 3 == len(claims)
    assert np.array_equal(before, view.free)


@pytest.mark.parametrize(
    "claims",
    [
        Claims.none(),
        some_claims([0], [1]),
        some_claims([0, 0], [1, 2]),
        some_claims([0, 1], [1, 1], cpu_milli=4_000),
    ],
    ids=["none", "too few", "one twice", "no room"],
)
def test_what_is_not_a_placement_is_noticed(claims: Claims) -> None:
    case = Case(Policy("batch", a_group()), 2, a_view(a_cell(2, cpu_milli=4_000)))

    with pytest.raises(InvariantBroken):
        case.check(claims)
