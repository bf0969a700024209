"""`python -m schedulers.ml_gpu estimate`, as a user runs it."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from schedulers.ml_gpu.__main__ import build, main


def run(*said: object) -> str:
    result = CliRunner().invoke(build(), ["estimate", *map(str, said)], catch_exceptions=False)
    return result.stdout


def document(*said: object) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(run(*said, "--json", "-"))
    return told


@pytest.fixture
def table(samples: Path) -> Path:
    return samples / "gavel" / "simulation_throughputs.json"


def test_each_kind_is_a_row_and_the_summary_pools_them(table: Path) -> None:
    told = document(table, "--profiled", "0.5", "--draws", "3")

    assert {
        "throughputs": table.name,
        "profiled": 0.5,
        "gpus": 1,
        "draws": 3,
        "seed": 0,
    } == told["parameters"]
    assert ["A", "B", "C"] == sorted(row["model"] for row in told["rows"])
    for part in ("matched", "best", "average"):
        assert told["summary"][part]["median"] <= told["summary"][part]["nine_tenths"]
    assert told["summary"]["itself"] == sum(row["itself"] for row in told["rows"]) / 9


def test_a_kind_that_never_ran_is_left_out(table: Path, tmp_path: Path) -> None:
    rates = json.loads(table.read_text())
    for kinds in rates.values():
        for kind, beside in kinds.items():
            if kind.startswith("('C'"):
                beside["null"] = 0.0
    (never := tmp_path / "never.json").write_text(json.dumps(rates))

    assert ["A", "B"] == sorted(row["model"] for row in document(never)["rows"])


def test_one_seed_gives_one_result(table: Path) -> None:
    one, same = (document(table, "--seed", "3")["summary"] for _ in range(2))

    assert one == same


def test_the_screen_compares_three_ways(table: Path) -> None:
    screen = run(table, "--profiled", "1")

    assert "3 kinds, each unknown in turn and profiled 20 times beside 100% of the others" in screen
    for way in ("is matched to", "best choice", "average of all"):
        assert way in screen


def test_a_size_that_the_table_does_not_have_is_refused(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["estimate", str(table), "--gpus", "16"])

    said = " ".join(capsys.readouterr().err.split())
    assert 2 == ended.value.code
    assert "field --gpus: it has fewer than two kinds of jobs on 16 GPUs" in said


def test_a_file_that_is_no_table_is_told_as_such(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rates.json").write_text("[]")

    with pytest.raises(SystemExit):
        main(["estimate", str(tmp_path / "rates.json")])

    assert "no table of rates" in " ".join(capsys.readouterr().err.split())


@pytest.mark.trace
@pytest.mark.parametrize(
    ("profiled", "median", "nine_tenths", "itself"),
    [
        (0.25, 0.055, 0.205, 0.82),
        pytest.param(0.5, 0.049, 0.178, 0.975, marks=pytest.mark.slow),
        pytest.param(1.0, 0.046, 0.163, 1.0, marks=pytest.mark.slow),
    ],
)
def test_the_published_pairs_are_estimated_as_the_page_says(
    published: Path, profiled: float, median: float, nine_tenths: float, itself: float
) -> None:
    path = published / "gavel" / "simulation_throughputs.json"

    told = document(path, "--profiled", profiled)["summary"]

    assert (median, nine_tenths) == pytest.approx(tuple(told["matched"].values()), abs=6e-4)
    assert (0.043, 0.142) == pytest.approx(tuple(told["best"].values()), abs=6e-4)
    assert (0.090, 0.304) == pytest.approx(tuple(told["average"].values()), abs=6e-4)
    assert itself == pytest.approx(told["itself"], abs=2e-3)
