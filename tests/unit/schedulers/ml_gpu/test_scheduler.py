"""The ML-GPU scheduler."""

from collections import Counter

import numpy as np

from omega.cell.view import View
from omega.model.claims import Claims
from omega.model.jobs import Constraint, LeasedJob, Operator
from omega.placement.fragmentation import TypicalTasks
from omega.testing.builders import a_cell, a_group, a_job, a_view, join_cells
from schedulers.ml_gpu import MlGpuScheduler


def placed(view: View, job: LeasedJob) -> Claims:
    return MlGpuScheduler().place(view, job, np.random.default_rng(1))


def test_a_gang_is_on_the_fewest_machines() -> None:
    view = a_view(a_cell(6, gpus=4, cpu_milli=64_000), used={3: {"gpu_0": 1_000, "gpu_1": 1_000}})
    on = Counter(placed(view, a_job(10, gpus=1, minimum=10)).machine.tolist())

    assert [2, 4, 4] == sorted(on.values())
    assert 2 == on[3]


def test_a_gang_keeps_to_the_model_that_it_asks_for() -> None:
    models = ["A100", "T4", "T4", "A100"]
    view = a_view(a_cell(4, gpus=4, cpu_milli=64_000, attributes={"gpu_model": models}))
    t4 = (Constraint("gpu_model", Operator.IN, ("T4",)),)

    job = a_job(4, gpus=2, minimum=4, constraints=t4)

    assert [2, 2, 3, 3] == placed(view, job).machine.tolist()


def test_whole_gpus_take_the_smallest_hole() -> None:
    view = a_view(a_cell(3, gpus=4), used={2: {"gpu_0": 1_000, "gpu_3": 1_000}})

    assert [2] == placed(view, a_job(1, gpus=2)).machine.tolist()


def test_fractions_share_a_gpu_that_is_shared_already() -> None:
    view = a_view(a_cell(3, gpus=2), used={3: {"gpu_1": 500}})
    claims = placed(view, a_job(2, cpu_milli=100, gpus=1, gpu_slices=250))

    assert [3, 3] == claims.machine.tolist()
    assert [[0, 500]] == [claims.demand[:, 3:5].sum(axis=0).tolist()]


def test_a_gang_of_fractions_is_on_the_fewest_machines() -> None:
    view = a_view(a_cell(4, gpus=2), used={n: {"gpu_0": 500} for n in (1, 2, 3)})

    assert 1 == len(set(placed(view, a_job(4, gpus=1, gpu_slices=500, minimum=4)).machine))


def test_tasks_without_gpus_stay_off_free_gpus() -> None:
    view = a_view(join_cells(a_cell(2, gpus=4), a_cell(1, first=3)))

    assert [3, 3] == placed(view, a_job(2)).machine.tolist()


def test_a_lone_task_leaves_pairs_to_those_who_ask_for_pairs() -> None:
    """Best fit would break the pair of the second machine, whose processors are busier."""
    view = a_view(
        a_cell(2, gpus=3, cpu_milli=64_000),
        used={1: {"gpu_0": 500}, 2: {"gpu_0": 1_000, "cpu_milli": 60_000}},
    )
    pairs = MlGpuScheduler(
        TypicalTasks.of([a_group(1, gpus=2), a_group(1, gpus=1, gpu_slices=500)])
    )
    job = a_job(1, gpus=1, gpu_slices=500)

    assert [1] == pairs.place(view, job, np.random.default_rng(1)).machine.tolist()


def test_without_typical_tasks_lone_ones_go_where_the_others_go() -> None:
    view = a_view(a_cell(3, gpus=4), used={2: {"gpu_0": 1_000, "gpu_3": 1_000}})
    scheduler = MlGpuScheduler(None)

    claims = scheduler.place(view, a_job(1, gpus=2), np.random.default_rng(1))

    assert [2] == claims.machine.tolist()
