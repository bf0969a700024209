"""Where a cell's machines come from."""

from pathlib import Path

import numpy as np
import pytest

from omega.cli.options import read_trace_options
from omega.errors import BadInput
from omega.terminal.rng import rng_from_seed
from omega.workload.sources import read_source


def test_a_synthetic_cell_has_so_many_machines() -> None:
    workload = read_source("synthetic:30", rng_from_seed(1))

    assert (30, 0, 0) == (len(workload.machines), len(workload.prefill), len(workload.arrivals))


def test_the_same_seed_draws_the_same_cell() -> None:
    one, again, other = (
        read_source("synthetic:50", rng_from_seed(seed)).machines.capacity for seed in (1, 1, 2)
    )

    assert (one == again).all()
    assert not np.array_equal(one, other)


def test_a_list_of_machines_is_a_source(tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("name,cpu_milli,memory_mib\na,1,1\nb,1,1\n")

    assert 2 == len(read_source(str(tmp_path / "two.csv"), rng_from_seed(0)).machines)


def test_a_traces_folder_is_a_source(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn1,1000,1024,2,T4\n")
    (tmp_path / "pods_default.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
        "deletion_time,scheduled_time\np1,500,512,1,500,,LS,Running,0,10,1\n"
    )

    workload = read_source(str(tmp_path), rng_from_seed(0), {"times": "replay"})

    assert (1, 1) == (len(workload.machines), len(workload.arrivals))


@pytest.mark.parametrize(
    "source", ["synthetic:", "synthetic:0", "synthetic:x", "synthetic:9999999"]
)
def test_a_synthetic_cell_needs_a_number(source: str) -> None:
    with pytest.raises(BadInput, match="a number of machines from 1 to 1,000,000"):
        read_source(source, rng_from_seed(0))


def test_what_is_not_there_is_said_with_what_could_be() -> None:
    with pytest.raises(BadInput, match=r"name a trace's folder, a \.csv or \.yaml file"):
        read_source("nowhere", rng_from_seed(0))


def test_a_folder_without_a_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no known trace"):
        read_source(str(tmp_path), rng_from_seed(0))


def test_options_are_pairs() -> None:
    assert {"pods": "gpuspec33", "a_b": "c=d"} == read_trace_options(["pods=gpuspec33", "a-b=c=d"])
    for pair in ("pods", "=x", "pods="):
        with pytest.raises(BadInput, match="does not read as NAME=VALUE"):
            read_trace_options([pair])
