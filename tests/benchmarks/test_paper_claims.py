"""Claims of the paper's figures can fail: rows that contradict them are told so."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.paper.claims import Row
from benchmarks.paper.figure import Figure
from benchmarks.paper.figure_9 import SCHEDULERS, Figure9
from benchmarks.paper.figure_10 import DESIGNS, T_TASKS, USUAL, Figure10
from benchmarks.paper.figures_5_6 import ARCHITECTURES, Figures5And6
from benchmarks.paper.setting import CELLS

IDLE: Mapping[str, Any] = {
    "busy": 0.5,
    "wait_mean_s": 0.1,
    "conflict_fraction": 0.1,
    "jobs": 100,
    "tasks": 100,
    "jobs_unfinished": 0,
}


def verdicts(figure: Figure, rows: Sequence[Row]) -> dict[str, bool]:
    """Return what becomes of each claim, by its first words."""
    return {claim.says[:20]: claim.holds for claim in figure.claims(rows)}


def test_what_no_run_shows_does_not_hold() -> None:
    figure = Figures5And6()
    rows: list[Row] = [
        {
            "cell": cell,
            "architecture": one,
            "t_job_service": t_job,
            "t_task_service": 1e3,
            "batch": IDLE,
            "service": IDLE,
        }
        for cell in CELLS
        for one in ARCHITECTURES
        for t_job in figure.x
    ]
    found = verdicts(figure, rows)

    assert not found["single path: batch a"], "no wait was long enough to be compared"
    assert not found["single path: busynes"], "no run was below saturation"
    assert not found["multi path: much low"], "as busy is not less busy"


def nine(conflicts: Mapping[int, float]) -> list[Row]:
    """Return rows in which all keep up throughout, and the more the less busy."""
    return [
        {
            "batch_schedulers": number,
            "factor": factor,
            "batch": {**IDLE, "busy": 0.9 / number, "conflict_fraction": conflicts[number]},
        }
        for number in SCHEDULERS
        for factor in Figure9().x
    ]


def test_conflicts_that_fall_do_not_rise() -> None:
    rising = {number: 0.01 * number for number in SCHEDULERS}
    falls_in_the_end = {**rising, SCHEDULERS[-1]: rising[SCHEDULERS[1]]}

    assert verdicts(Figure9(), nine(rising))["conflicts rise with "]
    assert not verdicts(Figure9(), nine(falls_in_the_end))["conflicts rise with "]


def test_where_one_keeps_up_it_is_not_shown_that_more_take_more() -> None:
    rising = {number: 0.01 * number for number in SCHEDULERS}

    assert not verdicts(Figure9(), nine(rising))["more schedulers take"]


def ten(left: Mapping[str, int]) -> list[Row]:
    """Return rows in which so many points of a design leave work."""
    rows: list[Row] = []
    for name, design in DESIGNS.items():
        points = [(t_job, t_task) for t_job in Figure10().x for t_task in T_TASKS]
        for number, (t_job, t_task) in enumerate(points):
            told = {**IDLE, "jobs_unfinished": 50 * (number < left.get(name, 0))}
            times = {"t_job_service": t_job, "t_task_service": t_task}
            rows.append({**USUAL, **design, **times, "batch": told, "service": told})
    return rows


def test_most_is_more_than_half_and_least_is_less_than_the_others() -> None:
    says = "work stays unschedul"

    assert verdicts(Figure10(), ten({"single path": 12, "multi path": 6, "Omega": 2}))[says]
    assert not verdicts(Figure10(), ten({"single path": 8, "multi path": 6, "Omega": 2}))[says]
    assert not verdicts(Figure10(), ten({"single path": 12, "multi path": 6, "Omega": 6}))[says]
