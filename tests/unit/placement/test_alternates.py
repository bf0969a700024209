"""Alternates: on which other machines a claim is tried."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omega.cell.view import View
from omega.model.claims import Claims
from omega.model.jobs import Constraint, LeasedJob, Operator, Preference
from omega.model.machines import MachineState
from omega.placement.alternates import with_alternates, with_random_alternates
from omega.placement.best_fit import best_fit, spread
from omega.placement.feasibility import room_on
from omega.placement.groups import draw_groups, place_groups
from omega.testing.builders import a_cell, a_group, a_job, a_spec, a_view
from omega.testing.scheduler_contract import faults

Place = Callable[[View, LeasedJob, int, np.random.Generator], Claims]


def at_random(view: View, job: LeasedJob, number: int, rng: np.random.Generator) -> Claims:
    return with_random_alternates(view, job, draw_groups(view, job, rng), number, rng)


def by_best_fit(view: View, job: LeasedJob, number: int, rng: np.random.Generator) -> Claims:
    claims = place_groups(view, job, best_fit, rng)
    return with_alternates(view, job, claims, best_fit, number, rng)


def by_spread(view: View, job: LeasedJob, number: int, rng: np.random.Generator) -> Claims:
    claims = place_groups(view, job, spread, rng)
    return with_alternates(view, job, claims, spread, number, rng)


WAYS = pytest.mark.parametrize("place", [at_random, by_best_fit])


def others(claims: Claims) -> dict[int, list[int]]:
    """Return the alternates of each claim, in order."""
    found: dict[int, list[int]] = {claim: [] for claim in range(len(claims))}
    of = claims.alternates
    for claim, machine in zip(of.claim.tolist(), of.machine.tolist(), strict=True):
        found[claim].append(machine)
    return found


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


@WAYS
def test_each_claim_has_as_many_other_machines_as_are_asked_for(place: Place) -> None:
    view = a_view(a_cell(40, cpu_milli=1_000), sequence={n: 10 * n for n in range(1, 41)})
    claims = place(view, a_job(5), 3, rng())

    named = Counter(claims.alternates.machine.tolist())
    assert {3} == {len(set(machines)) for machines in others(claims).values()}
    assert 15 == named.total() == len(named), "there is a free machine for each alternate"
    assert not named.keys() & {*claims.machine.tolist()}
    assert (claims.alternates.seen == 10 * claims.alternates.machine).all()
    assert (view.free == view.capacity).all()


@WAYS
def test_none_are_named_unless_they_are_asked_for(place: Place) -> None:
    assert not len(place(a_view(a_cell(9)), a_job(5), 0, rng()).alternates)
    assert not len(place(a_view(a_cell(0)), a_job(5), 2, rng()).alternates)


@WAYS
def test_claims_are_what_they_would_be_without_alternates(place: Place) -> None:
    view = a_view(a_cell(30, cpu_milli=2_000))

    assert [place(view, a_job(20), number, rng()).machine.tolist() for number in (0, 2)] == [
        place(view, a_job(20), 0, rng()).machine.tolist()
    ] * 2


@WAYS
def test_machines_without_room_beside_the_claims_are_not_named(place: Place) -> None:
    """One of four machines is full, one closed; the claims take all but one place."""
    view = a_view(
        a_cell(5, cpu_milli=1_000), used={1: {"cpu_milli": 1}}, state={2: MachineState.DRAINING}
    )
    for seed in range(8):
        claims = place(view, a_job(2), 2, rng(seed))

        (left,) = {3, 4, 5} - {*claims.machine.tolist()}
        assert {0: [left], 1: [left]} == others(claims)


@WAYS
def test_room_that_other_groups_of_the_job_claim_is_not_named(place: Place) -> None:
    view = a_view(a_cell(3, cpu_milli=1_000))
    job = a_job(spec=a_spec(groups=[a_group(1), a_group(1, memory_mib=1)]))
    for seed in range(4):
        claims = place(view, job, 2, rng(seed))

        (left,) = {1, 2, 3} - {*claims.machine.tolist()}
        assert {0: [left], 1: [left]} == others(claims)


@WAYS
def test_room_that_earlier_jobs_were_given_is_not_named(place: Place) -> None:
    view = a_view(a_cell(3, cpu_milli=1_000))
    with view.tentative():
        first = place(view, a_job(1), 0, rng())
        view.assume_claims(first)
        second = place(view, a_job(1, job=2), 2, rng())

        assert 2 == len({*first.machine.tolist(), *second.machine.tolist()})
        assert len({*others(second)[0], *first.machine.tolist(), *second.machine.tolist()}) == 3
        assert not {*others(second)[0]} & {*first.machine.tolist()}


def test_the_first_alternate_is_the_next_best_machine() -> None:
    used = {2: {"cpu_milli": 5_000}, 5: {"cpu_milli": 4_000}, 3: {"cpu_milli": 3_000}}
    view = a_view(a_cell(6, cpu_milli=8_000), used=used)
    claims = by_best_fit(view, a_job(3), 2, rng())

    assert [2, 2, 2] == claims.machine.tolist()
    assert {claim: [5, 3] for claim in range(3)} == others(claims)


def test_alternates_at_random_differ_by_seed() -> None:
    view = a_view(a_cell(200))
    first, second = (
        set(at_random(view, a_job(20), 1, rng(seed)).alternates.machine.tolist()) for seed in (1, 2)
    )

    assert len(first) > 10
    assert first != second


def test_the_whole_cell_is_searched_where_few_machines_have_room() -> None:
    full = {n: {"cpu_milli": 4_000} for n in range(1, 999)}
    view = a_view(a_cell(1_000, cpu_milli=4_000), used=full)

    claims = at_random(view, a_job(2), 1, rng(3))

    assert {999, 1_000} >= {*claims.alternates.machine.tolist()} - {*claims.machine.tolist()}
    assert set(claims.machine.tolist()) in ({999}, {1_000}) or not len(claims.alternates)


@WAYS
def test_constraints_hold_for_alternates(place: Place) -> None:
    view = a_view(a_cell(20, attributes={"rack": ["a", "b"] * 10}))
    only_a = (Constraint("rack", Operator.IN, ("a",)),)
    claims = place(view, a_job(4, constraints=only_a), 2, rng())

    assert len(claims.alternates)
    assert {1} == {machine % 2 for machine in claims.alternates.machine.tolist()}


@WAYS
@pytest.mark.parametrize(("full", "preferred"), [(0, 3), (1, 2)])
def test_alternates_are_on_the_machines_that_are_preferred_most_of_those_with_room(
    place: Place, full: int, preferred: int
) -> None:
    """Of 300 machines six are preferred; claims take three of these."""
    view = a_view(
        a_cell(300, cpu_milli=1_000, attributes={"zone": ["a"] * 294 + ["b"] * 6}),
        used={300 - n: {"cpu_milli": 1_000} for n in range(full)},
    )
    in_b = Preference(Constraint("zone", Operator.IN, ("b",)))
    claims = place(view, a_job(3, preferences=(in_b,)), 2, rng())

    first, second = zip(*others(claims).values(), strict=True)
    assert all(machine > 294 for machine in claims.machine.tolist())
    assert preferred == sum(machine > 294 for machine in first)
    assert not any(machine > 294 for machine in second), "the preferred ones are named already"


@WAYS
def test_no_two_claims_for_different_machines_name_the_same_one(place: Place) -> None:
    view = a_view(a_cell(12))
    job = a_job(6, different_machines=True, runs_on={0: 2, 1: 4})
    for number in (1, 2, 3):
        claims = place(view, job, number, rng(number))

        named = [*claims.machine.tolist(), *claims.alternates.machine.tolist()]
        assert len(named) == len(set(named))
        assert not {2, 4} & set(named)
        assert min(6, 4 * number) == len(claims.alternates)


def test_an_alternate_is_in_the_failure_domain_of_the_claim() -> None:
    racks = ["a"] * 5 + ["b"] * 5 + ["c"] * 1
    view = a_view(a_cell(11, cpu_milli=1_000, attributes={"rack": racks}))
    claims = by_spread(view, a_job(6, spread_over="rack"), 2, rng())

    rack_of = dict(enumerate(racks, start=1))
    for claim, machines in others(claims).items():
        own = rack_of[int(claims.machine[claim])]
        assert {own} >= {rack_of[machine] for machine in machines}
        assert (0 if own == "c" else 2) == len(machines)


def test_groups_with_gpus_have_none_and_groups_beside_them_do() -> None:
    view = a_view(a_cell(8, gpus=2))
    job = a_job(spec=a_spec(groups=[a_group(2, gpus=1), a_group(3)]))
    claims = by_best_fit(view, job, 1, rng())

    assert {0: 0, 1: 0, 2: 1, 3: 1, 4: 1} == {n: len(m) for n, m in others(claims).items()}
    asked = claims.shapes[claims.alternates.shape]
    assert (job.spec.groups[1].demand == asked).all()


@given(
    free=st.lists(st.integers(0, 4), min_size=1, max_size=12),
    tasks=st.integers(1, 9),
    number=st.integers(1, 4),
    different=st.booleans(),
    seed=st.integers(0, 99),
)
def test_every_alternate_could_be_granted_when_its_claim_alone_is_refused(
    free: list[int],
    tasks: int,
    number: int,
    different: bool,  # noqa: FBT001 - a parameter of the test
    seed: int,
) -> None:
    used = {n: {"cpu_milli": 4_000 - 1_000 * left} for n, left in enumerate(free, start=1)}
    view = a_view(a_cell(len(free), cpu_milli=4_000), used=used)
    job = a_job(tasks, different_machines=different)
    for place in (at_random, by_best_fit):
        claims = place(view, job, number, rng(seed))

        assert [] == faults(view, job, claims)
        assert len(claims.alternates) <= number * len(claims)
        with view.tentative():
            view.assume_claims(claims)
            at = view.where(claims.alternates.machine)
            assert (room_on(view, job, 0, at) > 0).all()
        assert not {*claims.alternates.machine.tolist()} & {*claims.machine.tolist()}
        left = {n for n, cores in enumerate(free, start=1) if cores} - {*claims.machine.tolist()}
        assert bool(left) == bool(len(claims.alternates)) or not len(claims)
