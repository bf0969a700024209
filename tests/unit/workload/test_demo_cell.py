"""The demonstration's cell and what runs on it."""

import numpy as np
import pytest

from omega.model.arrays import every_kind
from omega.model.resources import DEVICES, Kind
from omega.workload.demo_cell import CPU_SHAPES, GPU_SHAPES, demo_machines, demo_prefill


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_every_tenth_machine_has_gpus_of_some_model() -> None:
    machines = demo_machines(2_000, rng())
    gpus = np.count_nonzero(machines.capacity[:, DEVICES], axis=1)
    models = machines.attributes["gpu_model"]

    assert 200 == np.count_nonzero(gpus)
    assert {0, 4, 8} == set(gpus.tolist())
    assert [bool(count) for count in gpus] == [model is not None for model in models]
    assert {model for model, _ in GPU_SHAPES} == {model for model in models if model}


def test_the_cell_is_mixed_and_has_failure_domains() -> None:
    machines = demo_machines(2_000, rng())

    assert len(CPU_SHAPES) + len(GPU_SHAPES) == len(np.unique(machines.capacity, axis=0))
    assert 50 == len(set(machines.attributes["rack"]))
    assert 3 == len(set(machines.attributes["zone"]))
    assert 3 == len(set(machines.attributes["platform"]))
    assert 2_000 == len(set(machines.names))


def test_a_rack_lies_in_one_zone() -> None:
    attributes = demo_machines(500, rng()).attributes
    pairs = set(zip(attributes["rack"], attributes["zone"], strict=True))

    assert len(set(attributes["rack"])) == len(pairs)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
def test_about_the_share_asked_for_is_taken_and_all_fits(share: float) -> None:
    machines = demo_machines(2_000, rng())
    used = demo_prefill(machines, share, churn_s=10, rng=rng(1)).used(2_000)
    taken = used.sum(axis=0) / np.maximum(machines.capacity.sum(axis=0), 1)

    assert every_kind(used <= machines.capacity).all()
    assert taken[Kind.CPU_MILLI] == pytest.approx(share, abs=0.06)
    assert used[:, DEVICES].sum() / machines.capacity[:, DEVICES].sum() == pytest.approx(
        share, rel=0.3
    )


def test_machines_differ_in_how_full_they_are() -> None:
    machines = demo_machines(1_000, rng())
    used = demo_prefill(machines, 0.5, churn_s=10, rng=rng(1)).used(1_000)
    shares = used[:, Kind.CPU_MILLI] / machines.capacity[:, Kind.CPU_MILLI]

    assert np.percentile(shares, 10) < 0.3
    assert np.percentile(shares, 90) > 0.65


def test_some_machines_have_all_their_gpus_free_and_some_none() -> None:
    machines = demo_machines(1_000, rng())
    taken = demo_prefill(machines, 0.5, churn_s=10, rng=rng(1)).used(1_000)[:, DEVICES]
    gpus = np.count_nonzero(machines.capacity[:, DEVICES], axis=1)
    in_use = np.count_nonzero(taken, axis=1)[gpus > 0]

    assert np.count_nonzero(in_use == 0) > 10
    assert np.count_nonzero(in_use == gpus[gpus > 0]) > 10


def test_services_stay_and_batch_ends() -> None:
    machines = demo_machines(1_000, rng())
    jobs = demo_prefill(machines, 0.5, churn_s=10, rng=rng(1)).jobs

    assert {"batch", "service", "ml-gpu"} == {job.scheduler for job in jobs}
    for job in jobs:
        stays = {group.duration_ms is None for group in job.groups}
        assert job.scheduler == "ml-gpu" or stays == {job.scheduler == "service"}


def test_a_share_of_nothing_is_no_task() -> None:
    assert 0 == len(demo_prefill(demo_machines(50, rng()), 0.0, churn_s=9, rng=rng()))
