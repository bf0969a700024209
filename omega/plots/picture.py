"""Plots of results in one style, drawn without a display.

Goal     Let every plot be understood without a text beside it, and let all plots look alike.
Promise  The format of a file follows from its suffix. A plot that cannot be drawn or written is
         refused before the work, not after it.
Source   matplotlib, the optional extra `plot`.
"""

from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from textwrap import wrap
from typing import Any, Final, Literal

from omega.errors import BadInput, SettingsError
from omega.terminal.consoles import refuse_unwritable

FORMATS: Final = {".png": "png", ".svg": "svg", ".pdf": "pdf"}
"""Formats by the suffix of a file's name."""
COLOURS: Final = (
    "#0b5cad",
    "#4aa3ff",
    "#6b7280",
    "#d97706",
    "#b91c1c",
    "#15803d",
    "#86c98f",
    "#7c3aed",
)
"""Colours of the series, in order; the first is for the series that the plot is about."""
MARKERS: Final = "oD^sXvP"
INCHES_A_COLUMN: Final = 4.6
INCHES_A_ROW: Final = 3.2
INCHES_A_LINE: Final = 0.25
MARGIN: Final = 0.3
WIDTH_MIN: Final = 8.0
LETTERS_AN_INCH: Final = 9.0
LETTERS_OF_HANDLE: Final = 8
LETTERS_AN_INCH_OF_LEGEND: Final = 13.0
HANDLE_LENGTH: Final = 3.5
"""Length of a line in the legend, in font sizes: its dashes show beside its marker."""
DOTS_AN_INCH: Final = 110
PLAIN_NUMBERS: Final = "{x:,.10g}"


def refuse_undrawable(plot_to: Path | None) -> None:
    """Raise BadInput or SettingsError, before the work, if the plot cannot be drawn or written."""
    if plot_to is None:
        return
    if plot_to.suffix.lower() not in FORMATS:
        raise BadInput(f"{plot_to} ends in none of {', '.join(FORMATS)}", field="--plot")
    refuse_unwritable(plot_to, field="--plot")
    try:
        import matplotlib  # noqa: F401, PLC0415 - an optional extra
    except ModuleNotFoundError as error:
        raise SettingsError(["--plot needs omega-scheduler[plot] to be installed"]) from error


class Picture:
    """Panels in rows and columns under one title, which states the finding."""

    def __init__(self, title: str, *, rows: int = 1, columns: int = 1, note: str = "") -> None:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an optional extra

        self._width = max(WIDTH_MIN, INCHES_A_COLUMN * columns)
        self._panels_height = INCHES_A_ROW * rows
        self._title = wrap(title, int(self._width * LETTERS_AN_INCH), break_on_hyphens=False)
        self._note = note
        self._figure = Figure(layout="constrained")
        self.panels: Any = self._figure.subplots(rows, columns, squeeze=False)
        """matplotlib's axes, an array (rows, columns)."""
        for panel in self.panels.flat:
            panel.grid(visible=True, alpha=0.3)
            panel.spines[["top", "right"]].set_visible(False)
            panel.yaxis.set_major_formatter(PLAIN_NUMBERS)

    def save(self, path: Path) -> None:
        """Write the file: the title, one legend if a series has a name, the panels, the note."""
        found: dict[str, Any] = {}
        for panel in self.panels.flat:
            handles, labels = panel.get_legend_handles_labels()
            found.update(dict(zip(labels, handles, strict=True)))
        longest = max((len(label) for label in found), default=0) + LETTERS_OF_HANDLE
        side_by_side = int(self._width * LETTERS_AN_INCH_OF_LEGEND / longest)
        columns = max(1, min(len(found), side_by_side))

        legend_from = MARGIN + INCHES_A_LINE * len(self._title)
        panels_from = legend_from + INCHES_A_LINE * ceil(len(found) / columns) + MARGIN / 2
        height = panels_from + self._panels_height + MARGIN
        figure = self._figure
        figure.set_size_inches(self._width, height)
        figure.suptitle(
            "\n".join(self._title),
            y=1 - MARGIN / 2 / height,
            va="top",
            fontsize=13,
            weight="bold",
        )
        figure.legend(
            list(found.values()),
            list(found),
            loc="upper center",
            bbox_to_anchor=(0.5, 1 - legend_from / height),
            ncols=columns,
            frameon=False,
            borderaxespad=0,
            handlelength=HANDLE_LENGTH,
        )
        figure.text(0.5, MARGIN / 3 / height, self._note, ha="center", fontsize=8, color="#555555")
        engine: Any = figure.get_layout_engine()
        engine.set(rect=(0, MARGIN / height, 1, self._panels_height / height))
        figure.savefig(path, dpi=DOTS_AN_INCH, format=FORMATS[path.suffix.lower()])


def steps(axis: Any, values: Sequence[int]) -> None:  # noqa: ANN401 - matplotlib's axes
    """Make the x-axis logarithmic, with a labelled tick at each value."""
    axis.set_xscale("log")
    axis.set_xticks(values, [f"{value:,}" for value in values])
    axis.minorticks_off()


def magnitudes(axis: Any) -> None:  # noqa: ANN401 - matplotlib's axes
    """Make the y-axis logarithmic, with plain numbers as labels."""
    axis.set_yscale("log")
    axis.yaxis.set_major_formatter(PLAIN_NUMBERS)
    axis.yaxis.set_minor_formatter("")


Stroke = Literal["-", "--", ":"]
"""How a line is drawn."""


def bars(
    axis: Any,  # noqa: ANN401 - matplotlib's axes
    names: Sequence[str],
    lengths: Mapping[str, Sequence[float]],
) -> None:
    """Draw horizontal bars: a group for each name, from the top down, a bar for each series."""
    thickness = 0.8 / len(lengths)
    for number, (label, series_of) in enumerate(lengths.items()):
        at = [place + (number - (len(lengths) - 1) / 2) * thickness for place in range(len(names))]
        axis.barh(at, series_of, thickness, label=label, color=COLOURS[number])
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()
    axis.locator_params(axis="x", nbins=5)
    axis.xaxis.set_major_formatter(PLAIN_NUMBERS)


def series(
    axis: Any,  # noqa: ANN401 - matplotlib's axes
    number: int,
    points: Sequence[tuple[float, float]],
    label: str,
    *,
    stroke: Stroke = "-",
) -> None:
    """Draw one line of (x, y) points; number 0 is thicker and on top."""
    axis.plot(
        *zip(*points, strict=True),
        label=label,
        color=COLOURS[number % len(COLOURS)],
        marker=MARKERS[number % len(MARKERS)],
        linestyle=stroke,
        linewidth=2.6 if number == 0 else 1.5,
        markersize=6,
        zorder=3 if number == 0 else 2,
    )
