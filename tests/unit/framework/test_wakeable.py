"""Which of many parked jobs fit a view together."""

from dataclasses import replace

import numpy as np
import pytest

from omega.cell.view import View
from omega.clock import ManualClock
from omega.framework import wakeable as module
from omega.framework.wakeable import wakeable
from omega.lifecycle.states import ParkReason
from omega.model.arrays import integers
from omega.model.elastic import Workers
from omega.model.jobs import JobSpec
from omega.store.leases import ParkedJob
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_cell, a_group, a_spec


def a_view(machines: int = 2, *, cpu_milli: int = 4_000, gpus: int = 0) -> View:
    store = MemoryStore(ManualClock())
    store.add_machines(a_cell(machines, cpu_milli=cpu_milli, gpus=gpus))
    return View(store.snapshot())


def parked(*specs: JobSpec, placed: int = 0) -> list[ParkedJob]:
    """Return jobs, numbered from 0, whose first tasks run on machine 1."""
    return [
        ParkedJob(
            id=number,
            spec=spec,
            reason=ParkReason.NO_ROOM,
            unplaced=np.arange(placed, spec.tasks),
            placed_task=np.arange(placed),
            placed_machine=integers([1] * placed),
            placed=placed,
            running=placed,
            generation=0,
        )
        for number, spec in enumerate(specs)
    ]


def test_nobody_fits_a_full_cell_and_nobody_is_among_nobody() -> None:
    assert [] == wakeable(a_view(), parked(a_spec(cpu_milli=5_000)))
    assert [] == wakeable(a_view(), [])


@pytest.mark.parametrize("jobs", [1, 7, 8, 9, 1_000])
def test_alike_jobs_fit_until_the_room_is_taken(jobs: int) -> None:
    assert list(range(min(jobs, 8))) == wakeable(a_view(), parked(*[a_spec()] * jobs))


def test_alike_elastic_jobs_fit_as_others_do() -> None:
    elastic = replace(a_spec(2), workers=Workers(2))

    assert [0, 1, 2, 3] == wakeable(a_view(), parked(*[elastic] * 9))


def test_the_view_is_left_as_it_was() -> None:
    view = a_view()
    before = view.free.copy()
    wakeable(view, parked(*[a_spec()] * 3))

    assert (before == view.free).all()


def test_a_job_may_fit_with_a_part_of_its_tasks() -> None:
    # Three take two of the eight cores each and the fourth too; the fifth has none left.
    assert [0, 1, 2, 3] == wakeable(a_view(), parked(*[a_spec(2)] * 5))
    # Three each: the third takes what is left, two.
    assert [0, 1, 2] == wakeable(a_view(), parked(*[a_spec(3)] * 5))


def test_a_gang_fits_only_with_all_that_it_lacks() -> None:
    assert [0, 1] == wakeable(a_view(), parked(*[a_spec(3, minimum=3)] * 5))
    assert [0, 1, 2] == wakeable(a_view(), parked(*[a_spec(3, minimum=2)] * 5))
    assert [0, 1, 2, 3] == wakeable(a_view(), parked(*[a_spec(3, minimum=3)] * 5, placed=1))


def test_a_gang_of_two_groups_takes_the_room_of_both() -> None:
    gang = a_spec(groups=[a_group(1, cpu_milli=3_000), a_group(1)], minimum=2)

    assert [0, 1] == wakeable(a_view(), parked(*[gang] * 5))


def test_jobs_of_different_shapes_take_turns() -> None:
    small, large = a_spec(), a_spec(cpu_milli=2_000)

    assert [0, 1, 2, 3, 4, 6] == wakeable(a_view(), parked(*[small, large] * 50))


def test_a_small_job_fits_beside_a_large_one_that_does_not() -> None:
    assert [1, 3] == wakeable(a_view(1), parked(*[a_spec(cpu_milli=5_000), a_spec(2)] * 9))


def test_room_for_others_is_not_taken() -> None:
    with_a_gpu = a_spec(groups=[a_group(1, cpu_milli=0, gpus=1)])

    assert [0, 1, 2, 3, 5, 7] == wakeable(a_view(1, gpus=2), parked(*[with_a_gpu, a_spec()] * 9))


def test_a_task_does_not_fit_where_its_sibling_must_not_be() -> None:
    apart = a_spec(groups=[a_group(2, different_machines=True)])

    assert [] == wakeable(a_view(1), parked(apart, placed=1))
    assert [0] == wakeable(a_view(2), parked(apart, placed=1))
    assert [0] == wakeable(a_view(1), parked(a_spec(2), placed=1))


def test_after_so_many_shapes_jobs_are_only_asked_to_fit_beside_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "BATCHES_MAX", 1)
    counted, beside_it, too_large = (a_spec(cpu_milli=cpu) for cpu in (2_500, 1_500, 1_600))

    assert [0, 1, 3] == wakeable(a_view(1), parked(counted, beside_it, too_large, beside_it))
