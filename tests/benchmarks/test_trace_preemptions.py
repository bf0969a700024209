"""Preemptions on the cell of 2011: what is counted of the trace, and the benchmark at toy size."""

from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.trace_evictions import BANDS, band_of, count_evictions
from benchmarks.trace_preemptions import Arm, Run, simulate
from omega.errors import BadInput
from tests.benchmarks.conftest import PNG, Bench

SAMPLE = Path(__file__).parents[1] / "samples" / "google-2011"
EVENTS = "task_events_600s_to_5611s.csv"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace in which machine 10 leaves at 700.5 s; events are added by `happens`."""
    for name in (EVENTS, "machine_events.csv"):
        (tmp_path / name).write_text((SAMPLE / name).read_text())
    return tmp_path


def happens(trace: Path, *events: tuple[float, str, int, int]) -> None:
    """Add (time, event, machine, priority) for tasks of their own."""
    lines = [
        f"{at_s},{700 + number},0,{event},{machine},0,{priority},0.1,0.1,0,0\n"
        for number, (at_s, event, machine, priority) in enumerate(events)
    ]
    with (trace / EVENTS).open("a") as file:
        file.writelines(lines)


def test_the_bands_are_those_of_the_traces_format() -> None:
    bands = [band_of(priority) for priority in range(12)]

    assert ["gratis"] * 2 + ["other"] * 7 + ["production"] * 3 == bands


def test_evictions_are_counted_by_band_and_by_what_was_scheduled_there(trace: Path) -> None:
    happens(
        trace,
        (1_000.0, "evict", 20, 0),
        (1_000.9, "schedule", 20, 1),
        (2_000.0, "schedule", 20, 1),
        (2_000.0, "evict", 20, 0),
        (1_999.1, "schedule", 20, 9),
        (3_000.0, "evict", 20, 4),
        (3_000.0, "schedule", 20, 4),
        (3_000.0, "schedule", 30, 9),
        (3_001.1, "schedule", 20, 9),
        (700.0, "evict", 10, 9),
    )
    counted = count_evictions(trace, hours=1.0)

    assert {"gratis": 3, "other": 1, "production": 1} == counted.by_band
    assert {("gratis", "gratis"): 1, ("gratis", "production"): 1} == counted.by_evictor
    assert (5, 1, 1, 9) == (
        counted.total,
        counted.same_band,
        counted.with_machine,
        counted.scheduled,
    )


def test_only_the_window_up_to_the_hours_is_counted(trace: Path) -> None:
    happens(trace, (4_200.0, "evict", 20, 0), (4_200.1, "evict", 20, 0))

    assert [1, 2, 3] == [count_evictions(trace, hours).total for hours in (0.5, 1.0, 2.0)]


def test_a_table_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"does not hold machine_events\.csv"):
        count_evictions(tmp_path, 1.0)


def test_the_window_is_simulated_at_each_capacity_beside_what_is_recorded(bench: Bench) -> None:
    ran = bench("trace_preemptions", "--trace", str(SAMPLE))
    recorded = ran.document["summary"]["recorded"]

    assert 1 == recorded["evictions"] == ran.document["digest"]["runs"] / 2 / len(ran.rows)
    assert recorded["per_hour"] == pytest.approx(1 / ran.document["parameters"]["hours"])
    assert [
        ("100", "scale", 10, True),
        ("200", "scale", 10, True),
        ("100", "drop", 10, True),
        ("100", "scale", 20, True),
        ("100", "scale", 10, False),
    ] == [
        tuple(row[name] for name in ("capacity", "overcommit", "gap", "requeue"))
        for row in ran.rows
    ]
    for row in ran.rows:
        assert row["per_hour"] == pytest.approx(sum(row["by_band"].values()))
        assert row["deviation"]["per_hour"] >= 0.0
        assert 0 < row["utilisation"] <= 1
    assert "The trace has 20 evictions an hour" in ran.document["summary"]["finding"]
    assert ran.picture.startswith(PNG)


def test_who_is_evicted_is_counted_in_its_band(tmp_path: Path) -> None:
    """A job of production that needs both machines whole takes them from tasks of 0 and 1."""
    for file in SAMPLE.iterdir():
        (tmp_path / file.name).write_text(file.read_text())
    arrivals = tmp_path / "job_arrivals_600s_to_5611s.csv"
    header, *_ = arrivals.read_text().splitlines()
    columns = header.split(",")
    values = dict.fromkeys(columns, "0") | {
        "job_id": "950",
        "submit_s": "630",
        "n_tasks": "1",
        "cpu": "0.3",
        "mem": "0.1",
        "priority": "9",
        "scheduling_class": "3",
        "schedule_s": "631",
        "end_s": "660",
        "end_event": "finish",
        "task_runtime_median_s": "20",
    }
    arrivals.write_text(f"{header}\n{','.join(values[name] for name in columns)}\n")

    told = simulate(Run(Arm(overcommit="scale"), hours=0.05, seed=0, trace=tmp_path))

    assert 0 < told["evicted"] == told["by_band"]["gratis"] * 0.05
    assert told["by_evictor"]["gratis"]["production"] == told["per_hour"]
    assert {band: dict.fromkeys(BANDS, 0.0) for band in ("other", "production")} == {
        band: told["by_evictor"][band] for band in ("other", "production")
    }


def test_without_the_trace_it_is_refused_before_the_work(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATA_DIR", str(tmp_path))
    with pytest.raises(SystemExit) as end:
        main(["run", "trace_preemptions", "--smoke"])

    assert 2 == end.value.code
    assert "--trace: name the folder of the trace google-2011" in capsys.readouterr().err
