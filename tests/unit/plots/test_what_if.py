"""What if, as a picture: what it shows and what its title says."""

from dataclasses import replace
from pathlib import Path

import pytest

from omega.plots.what_if import Bars, Value, draw

SERIES = ("happened", "simulated", "what if")


def bars(*series: str, changes: str = "rule sequence", **batch: Value) -> Bars:
    of_batch = {(name.replace("_", " "), "batch"): value for name, value in batch.items()}
    return Bars(
        kinds=["batch", "service"],
        series=series,
        values={"conflict_fraction": of_batch, "busy": {}, "wait_mean_s": of_batch},
        changes=changes,
        note="a file; 3 runs",
    )


def test_each_series_has_a_bar_where_it_is_known(tmp_path: Path) -> None:
    picture = draw(
        bars(*SERIES, happened=(0.2, None), simulated=(0.25, 0.02), what_if=(None, None))
    )

    left, middle, _ = picture.panels[0]
    assert [0.2, 0.25] == [patch.get_height() for patch in left.patches]
    assert [] == list(middle.patches)
    picture.save(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_names_that_look_like_formulas_are_drawn_as_they_are(tmp_path: Path) -> None:
    named = replace(bars(*SERIES, happened=(0.2, None)), kinds=["$\\frac{$", "batch"], note="$\\x$")

    draw(named).save(tmp_path / "a.png")
    assert (tmp_path / "a.png").exists()


@pytest.mark.parametrize(
    ("drawn", "said"),
    [
        (
            bars(*SERIES, simulated=(0.2, 0.1), what_if=(1.25, 0.1)),
            "With rule sequence, the simulated conflict fraction goes: batch 0.20 → 1.25, service"
            " none → none",
        ),
        (
            bars("happened", "simulated", changes="", happened=(0.2, None), simulated=(0.3, 0.1)),
            "The conflict fraction as it happened, and simulated: batch 0.20 → 0.30, service none"
            " → none",
        ),
    ],
)
def test_the_title_says_what_becomes_of_conflicts(drawn: Bars, said: str) -> None:
    assert said == " ".join(draw(drawn)._title)  # noqa: SLF001 - what it will write
