"""Preferences: machines that meet more of them come first, and room is never left unused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omega.cell.view import View
from omega.model.arrays import Counts
from omega.model.jobs import Constraint, LeasedJob, Operator, Preference
from omega.placement.best_fit import best_fit
from omega.placement.feasibility import Choose, room
from omega.placement.first_fit import first_fit
from omega.placement.groups import draw_groups, place_groups
from omega.placement.preferences import choose_preferred, weights_met
from omega.testing.builders import a_cell, a_job, a_view
from schedulers.batch import BatchScheduler
from schedulers.service import ServiceScheduler
from tests.fixtures.doses import examples

IN_B = Preference(Constraint("zone", Operator.IN, ("b",)))
IN_C = Preference(Constraint("zone", Operator.IN, ("c",)), 3)
SSD = Preference(Constraint("ssd", Operator.EXISTS), 2)


def zones(*names: str | None) -> View:
    """Return machines of four cores, in these zones."""
    return a_view(a_cell(len(names), attributes={"zone": names}))


def by_machine(view: View, job: LeasedJob, choose: Choose = first_fit, seed: int = 1) -> list[int]:
    claims = place_groups(view, job, choose, np.random.default_rng(seed))
    return np.bincount(view.where(claims.machine), minlength=len(view)).tolist()


def test_machines_that_are_preferred_come_first() -> None:
    assert [0, 4, 0] == by_machine(zones("a", "b", "a"), a_job(4, preferences=(IN_B,)))


def test_what_finds_no_room_there_goes_elsewhere() -> None:
    first, *others = by_machine(zones("b", "a", "a"), a_job(6, preferences=(IN_B,)))

    assert (4, 2) == (first, sum(others))


def test_weights_are_summed() -> None:
    cell = a_cell(4, attributes={"zone": ["a", "b", "c", "b"], "ssd": ["x", "x", None, None]})
    view, job = a_view(cell), a_job(9, preferences=(IN_B, IN_C, SSD))

    assert [2, 3, 3, 1] == weights_met(room(view, job, 0)).tolist()
    given = by_machine(view, job)
    assert (4, 4, 1, 0) == (given[1], given[2], given[0], given[3])


def test_among_equals_the_scheduler_chooses() -> None:
    view = a_view(
        a_cell(4, attributes={"zone": ["a", "b", "b", "b"]}), used={3: {"cpu_milli": 2_000}}
    )

    assert [0, 0, 2, 0] == by_machine(view, a_job(2, preferences=(IN_B,)), best_fit)


def test_without_preferences_nothing_is_drawn_differently() -> None:
    view, job = zones("a", "b", "a", "b"), a_job(5)
    its_room = room(view, job, 0)
    rngs = (np.random.default_rng(3) for _ in range(2))

    chosen = choose_preferred(its_room, 5, first_fit, next(rngs))

    assert first_fit(its_room, 5, next(rngs)).tolist() == chosen.tolist()


@pytest.mark.parametrize("scheduler", [BatchScheduler(), ServiceScheduler()])
def test_batch_and_service_tasks_run_where_they_prefer_to(
    scheduler: BatchScheduler | ServiceScheduler,
) -> None:
    view = zones(*["a"] * 8, "b", *["a"] * 8)

    claims = scheduler.place(view, a_job(4, preferences=(IN_B,)), np.random.default_rng(1))

    assert [8] * 4 == view.where(claims.machine).tolist()


def test_spreading_stays_within_what_is_preferred() -> None:
    cell = a_cell(4, attributes={"zone": ["a", "b", "b", "b"], "rack": ["1", "1", "2", "3"]})
    job = a_job(3, preferences=(IN_B,), spread_over="rack")

    claims = ServiceScheduler().place(a_view(cell), job, np.random.default_rng(1))

    assert [1, 2, 3] == sorted(a_view(cell).where(claims.machine).tolist())


def no_choice(room_: object, wanted: int, rng: np.random.Generator) -> Counts:
    raise AssertionError("there is no choice")


def test_no_choice_is_asked_for_where_all_is_taken() -> None:
    assert [4, 4] == by_machine(zones("a", "b"), a_job(8, preferences=(IN_B,)), no_choice)


in_a_zone = st.sampled_from(["a", "b", "c"]).map(
    lambda zone: Constraint("zone", Operator.IN, (zone,))
)
some_preferences = st.lists(st.builds(Preference, in_a_zone, st.integers(1, 3)), max_size=4)


@examples(200)
@given(
    where=st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=8),
    tasks=st.integers(1, 20),
    wanted=some_preferences.map(tuple),
    draws=st.booleans(),
)
def test_a_machine_is_used_only_if_those_preferred_are_full(
    where: list[str | None],
    tasks: int,
    wanted: tuple[Preference, ...],
    draws: bool,  # noqa: FBT001
) -> None:
    view, job = zones(*where), a_job(tasks, preferences=wanted)
    rng = np.random.default_rng(1)
    claims = draw_groups(view, job, rng) if draws else place_groups(view, job, first_fit, rng)
    given_ = np.bincount(view.where(claims.machine), minlength=len(view))
    met = weights_met(room(view, job, 0))

    assert min(tasks, 4 * len(where)) == len(claims)
    used = met[given_ > 0]
    better = met[:, np.newaxis] > used
    assert (given_[better.any(axis=1)] == 4).all()


def test_a_group_with_preferences_is_not_plain() -> None:
    """Compiled loops of simulations place plain jobs, and know no preferences."""
    group = a_job().spec.groups[0]

    assert group.is_plain
    assert not replace(group, preferences=(IN_B,)).is_plain
