"""From a choice of machines to the claims of a whole job."""

import numpy as np
import pytest

from omega.cell.view import View
from omega.model.arrays import Counts, integers
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.placement.best_fit import fill
from omega.placement.feasibility import Room, room
from omega.placement.groups import claims_for, pack, place_groups, waiting_groups
from omega.testing.builders import a_cell, a_group, a_job, a_spec, a_view, join_cells
from omega.testing.scheduler_contract import faults


def in_order(its_room: Room, wanted: int, _: np.random.Generator) -> Counts:
    return fill(np.arange(len(its_room.at)), its_room.tasks, wanted)


def placed(view: View, job: LeasedJob) -> Claims:
    return place_groups(view, job, in_order, np.random.default_rng(1))


def test_groups_without_unplaced_tasks_are_not_waiting() -> None:
    groups = [a_group(2), a_group(1), a_group(3)]
    job = a_job(spec=a_spec(groups=groups), runs_on={2: 1, 3: 1})

    assert [0, 2] == waiting_groups(job)


def test_a_job_that_is_placed_claims_nothing() -> None:
    assert 0 == len(placed(a_view(), a_job(2, runs_on={0: 1, 1: 1})))


def test_claims_take_tasks_in_order_and_carry_what_was_seen() -> None:
    view = a_view(a_cell(3), sequence={1: 5, 3: 8})
    its_room = room(view, a_job(6, runs_on={0: 2, 3: 2}), 0)
    claims = claims_for(its_room, integers([1, 0, 2]), None)

    assert [1, 2, 4] == claims.task.tolist()
    assert [1, 3, 3] == claims.machine.tolist()
    assert [5, 8, 8] == claims.seen.tolist()
    assert 1 == len(claims.shapes)


def test_the_choice_is_asked_for_only_where_there_is_one() -> None:
    def never(its_room: Room, wanted: int, rng: np.random.Generator) -> Counts:
        raise AssertionError

    view = a_view(a_cell(2, cpu_milli=2_000))

    assert 4 == len(place_groups(view, a_job(4), never, np.random.default_rng(1)))
    with pytest.raises(AssertionError):
        place_groups(view, a_job(3), never, np.random.default_rng(1))


def test_a_choice_that_forgets_tasks_is_caught() -> None:
    def lazily(its_room: Room, wanted: int, rng: np.random.Generator) -> Counts:
        return in_order(its_room, wanted - 1, rng)

    with pytest.raises(AssertionError, match="all that are wanted"):
        place_groups(a_view(), a_job(3), lazily, np.random.default_rng(1))


def test_later_groups_see_what_earlier_ones_took() -> None:
    view = a_view(a_cell(2, cpu_milli=4_000))
    job = a_job(spec=a_spec(groups=[a_group(5), a_group(5)]))
    claims = placed(view, job)

    assert [0, 1, 2, 3, 4, 5, 6, 7] == claims.task.tolist()
    assert [] == faults(view, job, claims)


def test_a_group_without_room_does_not_hold_up_the_others() -> None:
    job = a_job(spec=a_spec(groups=[a_group(1, cpu_milli=99_000), a_group(2)]))

    assert [1, 2] == placed(a_view(), job).task.tolist()


def test_a_gang_is_packed_where_the_choice_would_waste_the_room() -> None:
    small_then_large = join_cells(a_cell(1, cpu_milli=2_000), a_cell(1, cpu_milli=1_000, first=2))
    view = a_view(small_then_large)
    groups = [a_group(1, cpu_milli=1_000), a_group(1, cpu_milli=2_000)]

    assert 1 == len(placed(view, a_job(spec=a_spec(groups=groups))))
    assert [2, 1] == placed(view, a_job(spec=a_spec(groups=groups, minimum=2))).machine.tolist()


def test_packing_tries_easy_groups_first_where_hard_ones_leave_too_little() -> None:
    view = a_view(a_cell(1, cpu_milli=4_000))
    groups = [a_group(1, cpu_milli=3_000), a_group(3, cpu_milli=1_000)]

    assert 3 == len(pack(view, a_job(spec=a_spec(groups=groups, minimum=3))))


def test_packing_does_not_depend_on_chance() -> None:
    view = a_view(a_cell(4, gpus=2))
    groups = [a_group(3, gpus=1), a_group(5, gpus=1, gpu_slices=400), a_group(3)]
    job = a_job(spec=a_spec(groups=groups, minimum=11))
    plain = pack(view, job)

    for seed in range(20):
        packed = pack(view, job, np.random.default_rng(seed))

        assert plain.machine.tolist() == packed.machine.tolist()
        assert [] == faults(view, job, packed)
