"""Pictures: what their words and legends leave to nobody's guess."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.text import Text

from omega.plots.picture import Picture, magnitudes, series


def words(picture: Picture) -> str:
    """Return all texts of a picture, as it was saved last."""
    found = picture._figure.findobj()  # noqa: SLF001
    return "\n".join(text.get_text() for text in found if isinstance(text, Text))


def saved(picture: Picture, folder: Path) -> Picture:
    picture.save(folder / "a.png")
    return picture


def legends(picture: Picture) -> list[list[str]]:
    """Return the labels of each legend: the picture's, then those of the panels."""
    of_panels = [panel.get_legend() for panel in picture.panels.flat]
    there = [*picture._figure.legends, *(it for it in of_panels if it is not None)]  # noqa: SLF001
    labels = [[text.get_text() for text in it.get_texts()] for it in there]
    return [its for its in labels if its]


def test_what_a_logarithmic_axis_cannot_show_is_counted(tmp_path: Path) -> None:
    picture = Picture("waits", note="a note")
    series(picture.panels[0, 0], 0, [(1, 0.0), (2, 5.0), (3, 0.0)], "mine")
    magnitudes(picture.panels[0, 0])

    assert "a note. not on logarithmic axes: 2 values of 0" in words(saved(picture, tmp_path))


def test_a_line_across_the_panel_is_no_value(tmp_path: Path) -> None:
    picture = Picture("waits")
    panel = picture.panels[0, 0]
    series(panel, 0, [(1, 1.0), (100, 5.0)], "mine")
    panel.axhline(30.0, label="30 s")
    panel.set_xscale("log")

    assert "logarithmic" not in words(saved(picture, tmp_path))


def test_a_linear_axis_leaves_nothing_out(tmp_path: Path) -> None:
    picture = Picture("waits", note="a note")
    series(picture.panels[0, 0], 0, [(1, 0.0), (2, 5.0)], "mine")

    assert "logarithmic" not in words(saved(picture, tmp_path))


def test_zeros_leave_a_gap_and_no_line_to_the_bottom(tmp_path: Path) -> None:
    picture = Picture("waits")
    panel = picture.panels[0, 0]
    series(panel, 0, [(1, 1.0), (2, 0.0), (3, 5.0)], "mine")
    magnitudes(panel)
    saved(picture, tmp_path)
    (line,) = panel.get_lines()
    drawn = panel.transScale.transform(np.column_stack(line.get_data()))

    assert [True, False, True] == np.isfinite(drawn[:, 1]).tolist()


def test_panels_with_nothing_in_common_have_legends_of_their_own(tmp_path: Path) -> None:
    picture = Picture("two", columns=2)
    series(picture.panels[0, 0], 0, [(1, 1.0)], "one policy")
    series(picture.panels[0, 1], 0, [(1, 1.0)], "kept")
    series(picture.panels[0, 1], 1, [(1, 1.0)], "naive")

    assert [["one policy"], ["kept", "naive"]] == legends(saved(picture, tmp_path))


def test_panels_of_the_same_series_have_one_legend(tmp_path: Path) -> None:
    picture = Picture("two", columns=2)
    for panel in picture.panels.flat:
        series(panel, 0, [(1, 1.0)], "mine")
    series(picture.panels[0, 1], 1, [(1, 1.0)], "theirs")

    assert [["mine", "theirs"]] == legends(saved(picture, tmp_path))


@pytest.mark.parametrize(("most", "times"), [(0.9, 0), (1.001, 0), (1.5, 1)])
def test_a_share_above_one_is_explained_where_there_is_one(
    most: float, times: int, tmp_path: Path
) -> None:
    picture = Picture("busy")
    picture.explain_above_one("busy", [0.1, most])
    picture.explain_above_one("busy", [most])
    picture.explain_above_one("wait_mean_s", [most])

    assert words(saved(picture, tmp_path)).count("busyness above 1") == times


def test_a_picture_of_claims_says_which_of_them_hold(tmp_path: Path) -> None:
    picture = Picture("1 of 2 claims hold")
    picture.tell_claims(
        [
            {"claim": "it is sooner", "measured": "twice", "holds": True},
            {"claim": "it is cheaper", "measured": "not at all", "holds": False},
        ]
    )
    told = words(saved(picture, tmp_path))

    assert "\N{CHECK MARK} it is sooner: twice" in told
    assert "\N{BALLOT X} it is cheaper: not at all" in told


def test_a_long_title_is_a_headline_and_small_print(tmp_path: Path) -> None:
    picture = saved(Picture("the first clause is quite long; " * 12), tmp_path)
    headline = picture._figure.get_suptitle()  # noqa: SLF001

    assert 2 == len(headline.splitlines())
    assert 12 == words(picture).replace("\n", " ").count("the first clause is quite long")
