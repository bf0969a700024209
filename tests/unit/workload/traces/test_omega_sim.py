"""Job lists of the simulator, on the cells that they are meant for."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from omega.errors import BadInput
from omega.model.jobs import JobSpec, TaskGroup
from omega.model.resources import Kind
from omega.workload.arrivals import Arrival
from omega.workload.recipe import job_list
from omega.workload.synthetic import W2
from omega.workload.traces.omega_sim import OMEGA_SIM, read_job_list, uniform_workload

RNG_SEED = 3


def rng() -> np.random.Generator:
    return np.random.default_rng(RNG_SEED)


def test_rows_become_jobs_by_submission(samples: Path) -> None:
    arrivals = read_job_list(samples / "omega-sim" / "W2.csv")

    assert [1.5, 2.25, 7.0] == [arrival.submit_s for arrival in arrivals]
    assert (
        Arrival(
            7.0,
            JobSpec(
                name="batch-2",
                scheduler="batch",
                groups=(TaskGroup(tasks=1, cpu_milli=500, memory_mib=1_536, duration_ms=500),),
            ),
            durations_s=(0.5,),
        )
        == arrivals[2]
    )
    assert "service" == arrivals[1].spec.scheduler


def test_what_the_recipe_writes_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text(job_list(W2))

    arrivals = read_job_list(path)

    assert 4_599 == len(arrivals)
    assert 91_378 == sum(arrival.spec.tasks for arrival in arrivals)


def test_the_folder_brings_the_cell_of_the_list(samples: Path) -> None:
    workload = OMEGA_SIM.load(samples / "omega-sim", rng())
    used = workload.prefill.used(len(workload.machines))

    assert 1_000 == len(workload.machines)
    assert {4_000} == set(workload.machines.capacity[:, Kind.CPU_MILLI].tolist())
    assert {16_384} == set(workload.machines.capacity[:, Kind.MEMORY_MIB].tolist())
    assert 2_400_000 == used[:, Kind.CPU_MILLI].sum()
    assert 2_400 * 2_048 == used[:, Kind.MEMORY_MIB].sum()
    assert 6 == workload.tasks


def test_a_list_that_is_not_there_is_named(samples: Path) -> None:
    with pytest.raises(BadInput, match="job list W1"):
        OMEGA_SIM.load(samples / "omega-sim", rng(), jobs="W1")


def test_a_prefill_that_does_not_fit_is_refused() -> None:
    with pytest.raises(BadInput, match="5 tasks were to be placed at the start, 4 fit"):
        uniform_workload((), machines=1, cpus=4, memory_gib=16, prefill_tasks=5, rng=rng())


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("1.5,3,", "1.5,0,", "tasks"),
        ("1.5,3,", "1.5,100001,", "tasks"),
        ("1.5,3,", "-1,3,", "submit_s"),
        ("Batch,1.5", "Backup,1.5", "workload"),
        ("10.25", "nan", "duration_s"),
    ],
)
def test_a_malformed_row_is_named_by_line_and_column(
    samples: Path, tmp_path: Path, old: str, new: str, field: str
) -> None:
    path = tmp_path / "list.csv"
    shutil.copy(samples / "omega-sim" / "W2.csv", path)
    path.write_text(path.read_text().replace(old, new))

    with pytest.raises(BadInput) as caught:
        read_job_list(path)

    assert (2, field) == (caught.value.line, caught.value.field)


def test_a_job_that_is_listed_twice_is_named(samples: Path, tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    lines = (samples / "omega-sim" / "W2.csv").read_text().splitlines()
    path.write_text("\n".join([*lines, lines[1]]))

    with pytest.raises(BadInput, match="is there already") as caught:
        read_job_list(path)

    assert (len(lines) + 1, "job_id") == (caught.value.line, caught.value.field)


@pytest.mark.trace
@pytest.mark.parametrize(("jobs", "tasks"), [("W1", 232_650), ("W2", 91_378)])
def test_the_published_lists_have_their_tasks(published: Path, jobs: str, tasks: int) -> None:
    workload = OMEGA_SIM.load(published / "omega-sim", rng(), jobs=jobs)

    assert tasks == workload.tasks
