"""The benchmark of live preemption at toy size, and what it makes of what happened."""

import pytest

from benchmarks.__main__ import main
from benchmarks.postgres.preemption import EvictedJob, ServiceJob
from benchmarks.preemption import FIGURES, SMOKE, Preemption
from tests.benchmarks.conftest import PNG, Bench


def test_services_are_placed_and_evicted_jobs_become_whole(bench_on_server: Bench) -> None:
    ran = bench_on_server("preemption")

    assert [(services, 0) for services in SMOKE.services] == [
        (row["services"], row["round"]) for row in ran.rows
    ]
    for row in ran.rows:
        assert row["tasks_evicted"] >= row["services"] * SMOKE.service_tasks
        assert 0 == row["touched"]
        assert 0 < row["placed_s"] < row["whole_max_s"]
        assert SMOKE.service_s < row["whole_mean_s"] <= row["whole_max_s"]
        assert row["attempts"] >= 1
    digest = ran.document["digest"]
    assert sum(row["tasks_evicted"] for row in ran.rows) == digest["tasks evicted"]
    assert sum(SMOKE.services) * SMOKE.service_tasks == digest["service tasks placed"]
    told = ran.document["summary"]["services"]
    assert [*SMOKE.services] == [one["services"] for one in told]
    assert all({"mean", "sd"} == one[name].keys() for one in told for name in FIGURES)
    assert "equals evicted 0; 2 services" in ran.document["summary"]["finding"]
    assert ran.picture.startswith(PNG)


def test_figures_of_a_round_are_counted_over_its_jobs() -> None:
    services = [ServiceJob(1, 1, 0, 0, 10.0, 10.5, 20.0), ServiceJob(2, 3, 1, 4, 10.0, 11.5, 21.0)]
    evicted = [EvictedJob(0, 6, 10.2, 21.2), EvictedJob(91, 4, 10.4, 22.4)]

    told = Preemption(service_tasks=5)._figures(services, evicted)  # noqa: SLF001 - its own test

    assert {
        "attempts": 1.5,
        "commits": 2.0,
        "conflict_fraction": 0.3333,
        "refused_per_task": 0.4,
        "tasks_evicted": 10,
        "victims_per_task": 1.0,
        "touched": 4,
        "placed_s": 1.5,
        "jobs_evicted": 2,
        "whole_mean_s": 11.5,
        "whole_p90_s": 11.9,
        "whole_max_s": 12.0,
        "after_room_mean_s": 1.8,
        "after_room_max_s": 2.4,
    } == told


def test_more_services_than_there_is_to_evict_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", "preemption", "--machines", "100", "--service-tasks", "361"])

    assert 2 == end.value.code
    assert "2 services of 361 tasks find no room" in " ".join(capsys.readouterr().err.split())
