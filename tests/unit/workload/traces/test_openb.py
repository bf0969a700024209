"""openb: nodes become machines, pods become jobs of one task."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from omega.errors import BadInput
from omega.model.jobs import Constraint, Operator, TaskGroup
from omega.model.resources import DEVICES, GPU_SLICES, Kind
from omega.workload.arrivals import Workload
from omega.workload.traces.openb import OPENB


def load(folder: Path, **options: str) -> Workload:
    return OPENB.load(folder, np.random.default_rng(0), **options)


def test_nodes_become_machines_with_gpu_slots_and_a_model(samples: Path) -> None:
    machines = load(samples / "openb").machines

    assert ("node-a", "node-b", "node-c") == machines.names
    assert [None, "T4", "A10"] == list(machines.attributes["gpu_model"])
    assert [32_000, 64_000, 96_000] == machines.capacity[:, Kind.CPU_MILLI].tolist()
    assert [0, 2, 8] == np.count_nonzero(machines.capacity[:, DEVICES], axis=1).tolist()
    assert GPU_SLICES == machines.capacity[1, Kind.GPU_1]
    assert 0 == machines.capacity[1, Kind.GPU_2]


def test_pods_come_in_order_of_creation_and_run_on(samples: Path) -> None:
    workload = load(samples / "openb")

    assert ["pod-first", "pod-web", "pod-late", "pod-never"] == [
        arrival.spec.name for arrival in workload.arrivals
    ]
    assert {0.0} == {arrival.submit_s for arrival in workload.arrivals}
    assert {None} == {arrival.spec.groups[0].duration_ms for arrival in workload.arrivals}


def test_gpus_go_to_ml_gpu_and_the_rest_by_quality_of_service(samples: Path) -> None:
    arrivals = load(samples / "openb").arrivals

    assert ["batch", "service", "ml-gpu", "ml-gpu"] == [a.spec.scheduler for a in arrivals]
    assert (
        TaskGroup(tasks=1, cpu_milli=4_000, memory_mib=8_192, gpus=1, gpu_slices=500)
        == arrivals[2].spec.groups[0]
    )
    assert 4 == arrivals[3].spec.groups[0].gpus


def test_a_replay_has_the_times_of_the_trace(samples: Path) -> None:
    arrivals = load(samples / "openb", times="replay").arrivals

    assert [0.0, 100.0, 200.0, 300.0] == [arrival.submit_s for arrival in arrivals]
    assert [60_000, 40_000, 590_000, 50_000] == [a.spec.groups[0].duration_ms for a in arrivals]


def test_the_models_that_a_pod_allows_become_one_constraint(samples: Path) -> None:
    arrivals = load(samples / "openb", pods="gpuspec33").arrivals

    assert () == arrivals[0].spec.groups[0].constraints
    assert (Constraint("gpu_model", Operator.IN, ("T4", "A10")),) == (
        arrivals[1].spec.groups[0].constraints
    )


def test_a_list_of_pods_that_is_not_there_is_named(samples: Path, tmp_path: Path) -> None:
    for name in ("nodes.csv", "pods_gpuspec33.csv"):
        shutil.copy(samples / "openb" / name, tmp_path)

    with pytest.raises(BadInput, match="no list of pods default"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("1,500,", "1,0,", "gpu_milli"),
        ("1,500,", "2,500,", "gpu_milli"),
        ("1,500,", "9,1000,", "num_gpu"),
        ("4000,8192", "four,8192", "cpu_milli"),
        ("LS,Running,300", "XL,Running,300", "qos"),
        ("300,900,310", "300,305,310", "deletion_time"),
        ("pod-late", "", "name"),
    ],
)
def test_a_malformed_pod_is_named_by_line_and_column(
    samples: Path, tmp_path: Path, old: str, new: str, field: str
) -> None:
    shutil.copy(samples / "openb" / "nodes.csv", tmp_path)
    text = (samples / "openb" / "pods_default.csv").read_text()
    (tmp_path / "pods_default.csv").write_text(text.replace(old, new))

    with pytest.raises(BadInput) as caught:
        load(tmp_path)

    assert (2, field) == (caught.value.line, caught.value.field)


def test_a_node_that_comes_twice_is_named(samples: Path, tmp_path: Path) -> None:
    shutil.copy(samples / "openb" / "pods_default.csv", tmp_path)
    (tmp_path / "nodes.csv").write_text(
        (samples / "openb" / "nodes.csv").read_text().replace("node-c", "node-a")
    )

    with pytest.raises(BadInput, match="line 4, field sn: 'node-a' is there already"):
        load(tmp_path)


@pytest.mark.trace
def test_the_published_cluster_and_pods_are_all_there(published: Path) -> None:
    workload = load(published / "openb")
    groups = [arrival.spec.groups[0] for arrival in workload.arrivals]

    assert 1_523 == len(workload.machines)
    assert 6_212_000 == workload.machines.capacity[:, DEVICES].sum()
    assert 125_514_000 == workload.machines.capacity[:, Kind.CPU_MILLI].sum()
    assert 8_152 == workload.tasks
    assert 1_088 == sum(group.gpus == 0 for group in groups)
    assert 3_078 == sum(group.gpus == 1 and group.gpu_slices < GPU_SLICES for group in groups)
    assert 75 == sum(group.gpus > 1 for group in groups)


@pytest.mark.trace
def test_a_third_of_the_published_gpu_pods_insists_on_models(published: Path) -> None:
    workload = load(published / "openb", pods="gpuspec33", times="replay")

    assert 2_388 == sum(bool(a.spec.groups[0].constraints) for a in workload.arrivals)
    assert 12_537_496_000 == max(a.spec.groups[0].duration_ms or 0 for a in workload.arrivals)
