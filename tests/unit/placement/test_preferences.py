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
from omega.placement.fragmentation import TypicalTasks, place_alone
from omega.placement.gangs import on_fewest_machines
from omega.placement.groups import draw_groups, place_groups
from omega.placement.preferences import choose_preferred, scores
from omega.testing.builders import a_cell, a_group, a_job, a_view
from schedulers.batch import BatchScheduler
from schedulers.ml_gpu.scheduler import MlGpuScheduler
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
    return list(np.bincount(view.where(claims.machine), minlength=len(view)))


def test_machines_that_are_preferred_come_first() -> None:
    assert [0, 4, 0] == by_machine(zones("a", "b", "a"), a_job(4, preferences=(IN_B,)))


def test_what_finds_no_room_there_goes_elsewhere() -> None:
    first, *others = by_machine(zones("b", "a", "a"), a_job(6, preferences=(IN_B,)))

    assert (4, 2) == (first, sum(others))


def test_weights_are_summed() -> None:
    cell = a_cell(4, attributes={"zone": ["a", "b", "c", "b"], "ssd": ["x", "x", None, None]})
    view, job = a_view(cell), a_job(9, preferences=(IN_B, IN_C, SSD))

    assert [2, 3, 3, 1] == scores(room(view, job, 0)).tolist()
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


@pytest.mark.parametrize("scheduler", [BatchScheduler(), ServiceScheduler(), MlGpuScheduler()])
@pytest.mark.parametrize("gpus", [0, 1])
def test_claims_on_preferred_machines_come_first_because_a_quota_grants_in_order(
    scheduler: BatchScheduler | ServiceScheduler | MlGpuScheduler, gpus: int
) -> None:
    cell = a_cell(3, gpus=4, attributes={"zone": ["a", "b", "c"]})
    job = a_job(12, preferences=(IN_B, IN_C), gpus=gpus)

    claims = scheduler.place(a_view(cell), job, np.random.default_rng(1))

    assert [2] * 4 + [1] * 4 + [0] * 4 == a_view(cell).where(claims.machine).tolist()
    assert sorted(claims.task) == claims.task.tolist()


def test_spreading_stays_within_what_is_preferred() -> None:
    cell = a_cell(4, attributes={"zone": ["a", "b", "b", "b"], "rack": ["1", "1", "2", "3"]})
    job = a_job(3, preferences=(IN_B,), spread_over="rack")

    claims = ServiceScheduler().place(a_view(cell), job, np.random.default_rng(1))

    assert [1, 2, 3] == sorted(a_view(cell).where(claims.machine).tolist())


def test_spreading_counts_what_machines_of_another_score_were_given() -> None:
    cell = a_cell(5, attributes={"rack": ["1", "1", "2", "3", "3"], "ssd": ["x", *[None] * 4]})
    job, view = a_job(6, preferences=(SSD,), spread_over="rack"), a_view(cell)

    rows = view.where(ServiceScheduler().place(view, job, np.random.default_rng(1)).machine)

    assert [4, 1, 1] == [np.isin(rows, rack).sum() for rack in ([0, 1], [2], [3, 4])]


@pytest.mark.parametrize(("minimum", "machines"), [(7, {1, 2}), (0, {0, 1, 2})])
def test_a_gang_is_divided_no_more_than_it_has_to_be(minimum: int, machines: set[int]) -> None:
    cell = a_cell(3, attributes={"ssd": ["x", "x", None]})
    view = a_view(cell, used={1: {"cpu_milli": 2_000}})
    job = a_job(7, minimum=minimum, preferences=(SSD,))

    rows = view.where(place_groups(view, job, on_fewest_machines, np.random.default_rng(1)).machine)

    assert machines == set(rows.tolist())


@pytest.mark.parametrize("typical", [None, TypicalTasks.of([a_group(gpus=1, gpu_slices=500)])])
def test_a_lone_gpu_task_runs_where_it_prefers_to(typical: TypicalTasks | None) -> None:
    cell = a_cell(4, gpus=2, attributes={"zone": ["a", "a", "b", "a"]})
    view, job = a_view(cell), a_job(1, gpus=1, gpu_slices=500, preferences=(IN_B,))
    rng = np.random.default_rng(1)

    claims = (
        MlGpuScheduler().place(view, job, rng)
        if typical is None
        else place_alone(view, job, typical, rng)
    )

    assert [2] == view.where(claims.machine).tolist()


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
    met = scores(room(view, job, 0))

    assert min(tasks, 4 * len(where)) == len(claims)
    used = met[given_ > 0]
    better = met[:, np.newaxis] > used
    assert (given_[better.any(axis=1)] == 4).all()


def test_a_group_with_preferences_is_not_plain() -> None:
    """Compiled loops of simulations place plain jobs, and know no preferences."""
    group = a_job().spec.groups[0]

    assert group.is_plain
    assert not replace(group, preferences=(IN_B,)).is_plain
