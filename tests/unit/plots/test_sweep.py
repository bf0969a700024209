"""A sweep as a picture: who is on it, and what its title says."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from omega.cli.sim.plan import SimPlan
from omega.cli.sim.results import Results
from omega.plots.sweep import Axis, Line, draw, finding
from omega.sim.experiment import Architecture
from tests.unit.plots.test_picture import words

PNG = b"\x89PNG"


def a_row(t_job_s: float, wait_s: float | None) -> Mapping[str, Any]:
    return {"t": t_job_s, "batch": {"wait_mean_s": wait_s}}


def line(label: str, *waits_s: float | None) -> Line:
    return Line(label, [a_row(t, w) for t, w in zip((1.0, 10.0, 100.0), waits_s, strict=True)])


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([line("a", 0, 1, 30)], "Batch jobs wait less than 30 s everywhere"),
        ([line("a", 0, 31, 99)], "Batch jobs wait over 30 s: a from t 10"),
        (
            [line("a", 0, None, 99), line("b", 0, 0, 0)],
            "Batch jobs wait over 30 s: a from t 100, the others nowhere",
        ),
        (
            [line("a", 99, 0, 0), line("b", 0, 0, 99)],
            "Batch jobs wait over 30 s: a from t 1; b from t 100",
        ),
        (
            [line(name, 99, 0, 0) for name in "abcd"],
            "Batch jobs wait over 30 s in 4 of 4 lines",
        ),
    ],
)
def test_the_title_says_who_misses_the_aim_and_where(lines: list[Line], said: str) -> None:
    assert said == finding(lines, Axis("t", "t", [1.0, 10.0, 100.0]))


@pytest.mark.parametrize(
    "axes",
    [
        {"t_job_service": [0.1, 10.0], "architecture": list(Architecture)[:2]},
        {"architecture": list(Architecture)[:2]},
    ],
)
def test_a_sweep_is_drawn_whatever_it_varies(
    jobs: Path, tmp_path: Path, axes: dict[str, list[Any]]
) -> None:
    results = Results(SimPlan(jobs=jobs), axes, seeds=2)
    for number, trial in enumerate(results.missing):
        measures = {"conflict_fraction": 0.5, "busy": 0.1 * number, "wait_mean_s": 0.0}
        results.settle(trial, {"batch": measures, "service": measures})
    to = tmp_path / "sweep.png"
    picture = draw(results.drawable())
    picture.save(to)

    assert to.read_bytes().startswith(PNG)
    assert (3, 2) == picture.panels.shape
    assert len(results.rows) // len(next(iter(axes.values()))) == len(
        picture.panels[0, 0].get_legend_handles_labels()[1]
    )


def test_waits_of_zero_are_counted_where_the_axis_is_logarithmic(
    jobs: Path, tmp_path: Path
) -> None:
    results = Results(SimPlan(jobs=jobs), {"t_job_service": [0.1, 1.0, 10.0]}, seeds=1)
    for number, trial in enumerate(results.missing):
        measures = {"conflict_fraction": 0.5, "busy": 0.1, "wait_mean_s": 5.0 * number}
        results.settle(trial, {"batch": measures, "service": measures})
    picture = draw(results.drawable())
    picture.save(tmp_path / "sweep.png")

    assert "not on logarithmic axes: 2 values of 0" in words(picture)
