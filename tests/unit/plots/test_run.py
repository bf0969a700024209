"""A run as a picture: what its lines show."""

from math import isnan
from types import SimpleNamespace
from typing import Any

from omega.plots.run import Series
from omega.sim.experiment import Use


def a_run(cpu_milli: int, used: int, locked: int = 0) -> Any:  # noqa: ANN401 - stands for a Run
    return SimpleNamespace(use=Use(cpu_milli, used, locked), waiting={"batch": 3})


def drawn(*runs: Any) -> tuple[list[list[float]], str]:  # noqa: ANN401 - likewise
    """Return the lines of the upper panel, and the title."""
    series = Series()
    for minute, run in enumerate(runs):
        series.sample(run, 60.0 * minute)
    picture = series.draw("a note")
    lines = picture.panels[0, 0].get_lines()
    return [line.get_ydata().tolist() for line in lines], " ".join(picture._title)  # noqa: SLF001


def test_a_line_has_a_gap_while_no_machine_is_up() -> None:
    ((first, gap, last),), title = drawn(a_run(4_000, 1_000), a_run(0, 0), a_run(4_000, 3_000))

    assert (0.25, 0.75) == (first, last)
    assert isnan(gap)
    assert "At most 75% of all CPU is used" in title


def test_a_cell_whose_machines_are_never_up_is_said_to_be_one() -> None:
    (line,), title = drawn(a_run(0, 0), a_run(0, 0))

    assert all(map(isnan, line))
    assert "No machine is ever up; 3 batch jobs wait at the end, at most 3" == title


def test_what_offers_lock_is_a_line_of_its_own() -> None:
    lines, _ = drawn(a_run(4_000, 1_000, 2_000), a_run(4_000, 1_000))

    assert [[0.25, 0.25], [0.5, 0.0]] == lines
