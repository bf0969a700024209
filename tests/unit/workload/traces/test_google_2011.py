"""google-2011: a start state that fits, and what arrives in the window."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from omega.errors import BadInput
from omega.model.arrays import every_kind
from omega.model.resources import Kind
from omega.workload.arrivals import SERVICE, Workload
from omega.workload.traces.google_2011 import GOOGLE_2011
from tests.fixtures.doses import Dose


def load(folder: Path, **options: str) -> Workload:
    return GOOGLE_2011.load(folder, np.random.default_rng(0), **options)


@pytest.fixture
def workload(samples: Path) -> Workload:
    return load(samples / "google-2011")


def placed(workload: Workload) -> list[tuple[str, str, int | None]]:
    """Name of job and machine, and duration, of each task at the start."""
    prefill = workload.prefill
    rows = []
    for job, task, machine in zip(prefill.job, prefill.task, prefill.machine, strict=True):
        spec = prefill.jobs[job]
        durations = [group.duration_ms for group in spec.groups for _ in range(group.tasks)]
        rows.append((spec.name, workload.machines.names[machine], durations[task]))
    return sorted(rows, key=str)


def test_an_overcommitted_machine_drops_its_lowest_priority(workload: Workload) -> None:
    assert [
        ("100", "10", None),
        ("100", "20", None),
        ("200", "10", 20_000),
        ("200", "20", 300_000),
    ] == placed(workload)
    assert 1 == workload.counts["tasks_dropped"]
    assert any("lowest priority first" in note for note in workload.notes)


def test_scaling_keeps_every_task_and_shrinks_those_of_a_crowded_machine(samples: Path) -> None:
    workload = load(samples / "google-2011", overcommit="scale")
    used = workload.prefill.used(2)

    assert 5 == len(workload.prefill)
    assert 3 == workload.counts["tasks_scaled"]
    assert every_kind(used <= workload.machines.capacity).all()
    assert 24_000 == used[1, Kind.CPU_MILLI]  # machine 20 was not crowded
    assert 30_000 <= used[0, Kind.CPU_MILLI] <= 32_000


def test_tasks_on_machines_that_are_not_there_are_left_out_and_counted(workload: Workload) -> None:
    assert "300" not in {spec.name for spec in workload.prefill.jobs}
    assert 1 == workload.counts["tasks_on_unknown_machines"]
    assert 6 == workload.counts["tasks_at_start"]


def test_pending_tasks_arrive_at_once(workload: Workload) -> None:
    first = workload.arrivals[0]

    assert (0.0, "400-pending", 2) == (first.submit_s, first.spec.name, first.spec.tasks)
    assert 2 == workload.counts["tasks_pending"]


def test_pending_tasks_can_be_left_out(samples: Path) -> None:
    arrivals = load(samples / "google-2011", pending="leave").arrivals

    assert not any("pending" in arrival.spec.name for arrival in arrivals)


def test_what_comes_back_can_be_left_out(samples: Path) -> None:
    arrivals = load(samples / "google-2011", returning="leave").arrivals

    assert arrivals
    assert not any("back" in arrival.spec.name for arrival in arrivals)


def test_service_jobs_are_those_of_class_2_or_3_or_only_the_production_ones_of_these(
    samples: Path,
) -> None:
    """Job 400 has class 2 and priority 0; jobs 100 and 600 have class 3 and priority 9."""
    by_option = {
        service: {
            spec.name.partition("-")[0]
            for workload in [load(samples / "google-2011", service=service)]
            for spec in (*workload.prefill.jobs, *(each.spec for each in workload.arrivals))
            if spec.scheduler == SERVICE
        }
        for service in ("class", "production")
    }

    assert {"class": {"100", "400", "600"}, "production": {"100", "600"}} == by_option


def test_jobs_of_the_window_and_what_comes_back_arrive_in_order(workload: Workload) -> None:
    assert [
        (0.0, "400-pending", None),
        (10.0, "200-back", 20_000),  # 15 s, up to the next ten
        (15.5, "600", 30_250),
        (60.0, "500", 1_000_000),
        (100.0, "500-back", None),  # runs past the window
    ] == [(a.submit_s, a.spec.name, a.spec.groups[0].duration_ms) for a in workload.arrivals]


def test_a_task_that_ends_before_it_is_scheduled_does_not_come_back(workload: Workload) -> None:
    back = [arrival for arrival in workload.arrivals if arrival.spec.name == "200-back"]

    assert [1] == [arrival.spec.tasks for arrival in back]


@pytest.mark.slow
@pytest.mark.trace
def test_the_published_start_state_fits_once_the_lowest_priorities_are_dropped(
    published: Path, dose: Dose
) -> None:
    """The long dose also reads it with every task, scaled: to read the trace takes seconds."""
    workload = load(published / "google-2011")

    assert 12_477 == len(workload.machines)
    assert 132_982 == workload.counts["tasks_at_start"]
    assert 13 == workload.counts["tasks_on_unknown_machines"]
    assert 11_357 == workload.counts["tasks_pending"]
    assert 113 == workload.counts["cpu_asked_percent"]
    assert 132_982 - 13 == len(workload.prefill) + workload.counts["tasks_dropped"]
    assert (914, 46_570) == (
        workload.counts["jobs_submitted"],
        workload.counts["tasks_submitted"],
    )
    for _ in range(dose(0, 1)):
        scaled = load(published / "google-2011", overcommit="scale")
        assert 132_982 - 13 == len(scaled.prefill)
        assert 0 == scaled.counts["tasks_dropped"]


def test_the_jobs_of_a_week_are_like_those_of_the_window_of_their_class(samples: Path) -> None:
    """Job 500 is the window's only one of class 1, job 600 the only one of class 3."""
    folder = samples / "google-2011"
    arrivals = load(folder, arrivals="week", pending="leave", returning="leave").arrivals
    window = {
        each.spec.name: each.spec.groups[0]
        for each in load(folder, pending="leave", returning="leave").arrivals
    }
    groups = [each.spec.groups[0] for each in arrivals]

    assert [12.0, 3_000.0, 85_800.5] == [each.submit_s for each in arrivals]
    assert ["700", "800", "900"] == [each.spec.name for each in arrivals]
    assert [20, 20, 90] == [each.spec.precedence for each in arrivals]
    assert [300_000, None, round(170_000 * 30.25 / 84)] == [each.duration_ms for each in groups]
    assert [window["500"], window["500"], window["600"]] == [
        replace(group, duration_ms=window[like].duration_ms)
        for group, like in zip(groups, ("500", "500", "600"), strict=True)
    ]


def test_in_a_week_start_tasks_end_with_their_jobs_unless_they_end_in_the_window(
    samples: Path,
) -> None:
    """Tasks 0 and 2 of job 200 end in the window; task 1 was dropped, and job 100 runs on."""
    week = load(samples / "google-2011", arrivals="week")
    scaled = load(samples / "google-2011", arrivals="week", overcommit="scale")

    assert placed(load(samples / "google-2011")) == placed(week)
    assert ("200", "10", 6_600_000) in placed(scaled)


def test_a_week_needs_the_table_of_jobs(samples: Path, tmp_path: Path) -> None:
    for file in (samples / "google-2011").iterdir():
        if file.name != "jobs_days_0_to_6.csv":
            (tmp_path / file.name).write_text(file.read_text())
    assert load(tmp_path).arrivals

    with pytest.raises(BadInput, match=r"arrivals=week needs the table jobs_days_0_to_6\.csv"):
        load(tmp_path, arrivals="week")


def test_a_class_that_the_window_does_not_have_is_named(samples: Path, tmp_path: Path) -> None:
    for file in (samples / "google-2011").iterdir():
        (tmp_path / file.name).write_text(file.read_text())
    jobs = tmp_path / "jobs_days_0_to_6.csv"
    jobs.write_text(jobs.read_text().replace("finish,3,8", "finish,2,8"))

    with pytest.raises(BadInput, match="the window has no job of class 2") as refused:
        load(tmp_path, arrivals="week")

    assert (str(jobs), 4) == (refused.value.file, refused.value.line)
