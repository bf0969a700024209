"""The tables of google-2011, cell by cell."""

from pathlib import Path

import numpy as np
import pytest

from omega.errors import BadInput
from omega.model.jobs import PRECEDENCE_GAP
from omega.model.resources import Kind
from omega.workload.tasks import SCHEDULERS
from omega.workload.traces.google_tables import (
    NO_MACHINE,
    TASK_EVENTS,
    precedence_of,
    read_events,
    read_jobs,
    read_machines,
    read_start,
)


@pytest.fixture
def folder(samples: Path) -> Path:
    return samples / "google-2011"


def test_the_machines_of_time_0_come_by_id_in_whole_units(folder: Path) -> None:
    machines, ids, _ = read_machines(folder / "machine_events.csv")

    assert [10, 20] == ids.tolist()
    assert ("10", "20") == machines.names
    assert ["P0", "P1"] == list(machines.attributes["platform"])
    assert [32_000, 32_000] == machines.capacity[:, Kind.CPU_MILLI].tolist()
    assert [131_072, 65_536] == machines.capacity[:, Kind.MEMORY_MIB].tolist()


def test_what_becomes_of_machines_is_told_from_the_start_of_the_window(
    folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "machine_events.csv"
    lines = (
        "700,10,update,P0,0.5,0.5",  # nothing new
        "810,20,update,P1,0.25,0.25",
        "820,30,add,P1,0.5,0.5",  # was not there at the start
        "800.25,20,remove,P1,,",
        "803,20,update,P1,0.5,0.125",  # down, it stays so
        "805,20,add,P1,0.5,0.25",
    )
    first = (folder / "machine_events.csv").read_text().splitlines()[:3]
    path.write_text("\n".join((*first, *lines)) + "\n")

    _, _, events = read_machines(path)

    told = [(event.time_s, event.machine, event.up) for event in events]
    assert [(200.25, 1, False), (203.0, 1, False), (205.0, 1, True), (210.0, 1, True)] == told
    assert events[0].capacity is None
    halved, whole, less = (event.capacity for event in events[1:])
    assert halved is not None
    assert whole is not None
    assert less is not None
    assert 2 * halved[Kind.MEMORY_MIB] == whole[Kind.MEMORY_MIB]
    assert 16_000 == less[Kind.CPU_MILLI]


def test_a_machine_that_is_added_twice_is_named(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "machine_events.csv"
    text = (folder / "machine_events.csv").read_text()
    path.write_text(text.replace("0,10,", "0,20,", 1))

    with pytest.raises(BadInput, match="line 3, field machine_id"):
        read_machines(path)


def test_tasks_at_the_start_are_placed_or_pending(folder: Path) -> None:
    start = read_start(folder / "tasks_at_start.csv")

    assert [10, 20, 10, 10, 20, 99, NO_MACHINE, NO_MACHINE] == start.machine.tolist()
    assert [90, 90, 10, 10, 10, 40, 0, 0] == start.tasks.precedence.tolist()
    assert ["service"] * 2 + ["batch"] * 4 + ["service"] * 2 == [
        SCHEDULERS[at] for at in start.tasks.scheduler
    ]
    assert [True, True] + [False] * 6 == start.tasks.different_machines.tolist()
    assert [16_000, 32_768, 105] == start.tasks.amounts[0, : Kind.GPU_0].tolist()
    assert len(set(start.key.tolist())) == len(start.key)


def test_events_come_by_task_and_time_from_the_start_of_the_window(folder: Path) -> None:
    events = read_events(folder / "task_events_600s_to_5611s.csv")

    assert (np.diff(events.key) >= 0).all()
    assert ["evict", "submit", "schedule", "finish"] == [
        TASK_EVENTS[code] for code in events.event[:4]
    ]
    assert [12_500, 12_500, 40_000, 55_000] == events.since_start_ms[:4].tolist()


def test_a_priority_is_a_gap_above_the_next_lower_one_except_in_production() -> None:
    precedences = precedence_of(np.arange(12)).tolist()

    assert [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 91, 92] == precedences
    assert PRECEDENCE_GAP == precedences[1] - precedences[0]


def test_a_job_runs_for_its_median_or_else_for_its_own_time(folder: Path) -> None:
    jobs = read_jobs(folder / "job_arrivals_600s_to_5611s.csv")
    arrivals = jobs.arrivals

    assert [500, 600] == jobs.id.tolist()
    assert [1, 3] == jobs.scheduling_class.tolist()
    assert [1.0, 30.25 / 84] == jobs.task_share.tolist()
    assert [60.0, 15.5] == [arrival.submit_s for arrival in arrivals]
    assert [1_000_000, 30_250] == [arrival.spec.groups[0].duration_ms for arrival in arrivals]
    assert [1, 40] == [arrival.spec.tasks for arrival in arrivals]
    assert ["batch", "service"] == [arrival.spec.scheduler for arrival in arrivals]
    assert [20, 90] == [arrival.spec.precedence for arrival in arrivals]
    assert [False, True] == [arrival.spec.groups[0].different_machines for arrival in arrivals]


def test_a_job_that_never_ended_runs_on(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "job_arrivals.csv"
    text = (folder / "job_arrivals_600s_to_5611s.csv").read_text()
    path.write_text(text.replace("661,1661,finish", "661,,"))

    assert read_jobs(path).arrivals[0].spec.groups[0].duration_ms is None


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("612.5,200,0,evict", "599,200,0,evict", "time_s"),
        ("612.5,200,0,evict", "612.5,200,0,vanish", "event"),
        ("612.5,200,0,evict", "612.5,200,-1,evict", "task_index"),
        ("612.5,200,0,evict", "612.5,two,0,evict", "job_id"),
        ("evict,10,0,1,0.25", "evict,10,4,1,0.25", "scheduling_class"),
        ("evict,10,0,1,0.25", "evict,10,0,12,0.25", "priority"),
        ("evict,10,0,1,0.25", "evict,10,0,1,17", "cpu"),
    ],
)
def test_a_malformed_event_is_named_by_line_and_column(
    folder: Path, tmp_path: Path, old: str, new: str, field: str
) -> None:
    path = tmp_path / "events.csv"
    text = (folder / "task_events_600s_to_5611s.csv").read_text()
    path.write_text(text.replace(old, new))

    with pytest.raises(BadInput) as caught:
        read_events(path)

    assert (2, field) == (caught.value.line, caught.value.field)
