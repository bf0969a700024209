"""Plots of results in one style, drawn without a display.

Goal     Let every plot be understood without a text beside it, and let all plots look alike.
Promise  The format of a file follows from its suffix. A plot that cannot be drawn or written is
         refused before the work, not after it.
Source   matplotlib, the optional extra `plot`.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from pathlib import Path
from textwrap import wrap
from typing import Any, Final, Literal

from omega.errors import BadInput, SettingsError
from omega.plots.text import ABOVE_ONE, CLEARLY, claim_lines, headline_and_rest
from omega.reports.wording import things
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
INCHES_A_SMALL_LINE: Final = 0.16
MARGIN: Final = 0.3
WIDTH_MIN: Final = 8.0
LETTERS_AN_INCH: Final = 9.0
LETTERS_AN_INCH_OF_SMALL: Final = 15.0
LETTERS_OF_HANDLE: Final = 8
LETTERS_OF_HALF_A_PANEL: Final = 22
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
        self._title, rest = headline_and_rest(title, int(self._width * LETTERS_AN_INCH))
        self._rest = wrap(rest, self._letters, break_on_hyphens=False)
        self._notes = [note] if note else []
        self._claims: list[str] = []
        self._figure = Figure(layout="constrained")
        self.panels: Any = self._figure.subplots(rows, columns, squeeze=False)
        """matplotlib's axes, an array (rows, columns)."""
        for panel in self.panels.flat:
            panel.grid(visible=True, alpha=0.3)
            panel.spines[["top", "right"]].set_visible(False)
            panel.yaxis.set_major_formatter(PLAIN_NUMBERS)

    @property
    def _letters(self) -> int:
        """Letters of small print that a line has room for."""
        return int(self._width * LETTERS_AN_INCH_OF_SMALL)

    def explain(self, text: str) -> None:
        """Add a sentence to the note below the panels, once."""
        if text not in self._notes:
            self._notes.append(text)

    def explain_above_one(self, measure: str, values: Iterable[float]) -> None:
        """Say in the note why a measure exceeds 1, if it does."""
        if measure in ABOVE_ONE and any(value > CLEARLY for value in values):
            self.explain(ABOVE_ONE[measure])

    def tell_claims(self, claims: Sequence[Mapping[str, Any]]) -> None:
        """List below the panels which claims hold, and which do not."""
        self._claims = claim_lines(claims, self._letters)

    def save(self, path: Path) -> None:
        """Write the file: title, legend, panels, note and claims.

        Panels whose series have nothing in common have a legend each; otherwise there is one. What
        a logarithmic axis cannot show is counted in the note.
        """
        left_out = sum(map(_not_shown, self.panels.flat))
        if left_out:
            self.explain(f"not on logarithmic axes: {things(left_out, 'value')} of 0")
        named = [_named(panel) for panel in self.panels.flat]
        found = {} if _differ(named) else {label: it for one in named for label, it in one.items()}
        if not found:
            for row in self.panels:
                self._panels_height += INCHES_A_SMALL_LINE * max(map(_own_legend, row))
        longest = max((len(label) for label in found), default=0) + LETTERS_OF_HANDLE
        side_by_side = int(self._width * LETTERS_AN_INCH_OF_LEGEND / longest)
        columns = max(1, min(len(found), side_by_side))

        notes = wrap(". ".join(self._notes), self._letters) + self._claims
        rest_from = MARGIN + INCHES_A_LINE * len(self._title)
        legend_from = rest_from + INCHES_A_SMALL_LINE * len(self._rest)
        panels_from = legend_from + INCHES_A_LINE * ceil(len(found) / columns) + MARGIN / 2
        below = MARGIN + INCHES_A_SMALL_LINE * max(0, len(notes) - 1)
        height = panels_from + self._panels_height + below
        figure = self._figure
        figure.set_size_inches(self._width, height)
        figure.suptitle(
            "\n".join(self._title),
            y=1 - MARGIN / 2 / height,
            va="top",
            fontsize=13,
            weight="bold",
        )
        small: dict[str, Any] = {"fontsize": 8, "color": "#555555"}
        figure.text(
            0.5, 1 - rest_from / height, "\n".join(self._rest), ha="center", va="top", **small
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
        x, align = (MARGIN / self._width, "left") if self._claims else (0.5, "center")
        figure.text(x, MARGIN / 3 / height, "\n".join(notes), ha=align, va="bottom", **small)
        engine: Any = figure.get_layout_engine()
        engine.set(rect=(0, below / height, 1, self._panels_height / height))
        figure.savefig(path, dpi=DOTS_AN_INCH, format=FORMATS[path.suffix.lower()])


def _named(panel: Any) -> dict[str, Any]:  # noqa: ANN401 - matplotlib's axes
    """Return the series of a panel that have a name."""
    handles, labels = panel.get_legend_handles_labels()
    return dict(zip(labels, handles, strict=True))


def _differ(named: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether some panels have series and not one of another panel's."""
    told = [one.keys() for one in named if one]
    return any(not one & other for one in told for other in told)


def _own_legend(panel: Any) -> int:  # noqa: ANN401 - matplotlib's axes
    """Draw a legend below a panel; return how many lines of small print it takes."""
    named = _named(panel)
    if not named:
        return 0
    columns = 1 if max(map(len, named)) > LETTERS_OF_HALF_A_PANEL else 2
    panel.legend(
        list(named.values()),
        list(named),
        loc="upper center",
        bbox_to_anchor=(0.5, -0.2),
        ncols=columns,
        frameon=False,
        fontsize=8,
        handlelength=HANDLE_LENGTH,
    )
    return ceil(len(named) / columns) + 1


def _not_shown(panel: Any) -> int:  # noqa: ANN401 - matplotlib's axes
    """Return how many points of named lines a panel's logarithmic axes have no place for."""
    by_x, by_y = panel.get_xscale() == "log", panel.get_yscale() == "log"
    lines = [it for it in panel.get_lines() if not it.get_label().startswith("_")]
    lines += [bars[0] for bars in panel.containers if hasattr(bars, "has_yerr") and bars[0]]
    missing = 0
    for line in {id(it): it for it in lines}.values():
        # A line across the panel, such as a target, has no x of its own.
        has_x, has_y = line.get_transform().contains_branch_seperately(panel.transData)
        points = zip(line.get_xdata(), line.get_ydata(), strict=True)
        missing += sum(
            (by_x and has_x and x <= 0) or (by_y and has_y and y <= 0) for x, y in points
        )
    return missing


def steps(axis: Any, values: Sequence[int]) -> None:  # noqa: ANN401 - matplotlib's axes
    """Make the x-axis logarithmic, with a labelled tick at each value."""
    axis.set_xscale("log")
    axis.set_xticks(values, [f"{value:,}" for value in values])
    axis.minorticks_off()


def magnitudes(axis: Any) -> None:  # noqa: ANN401 - matplotlib's axes
    """Make the y-axis logarithmic, with plain numbers as labels, unless all that is drawn is 0."""
    drawn = [value for line in axis.get_lines() for value in line.get_ydata()]
    if drawn and not any(value > 0 for value in drawn):
        return
    axis.set_yscale("log", nonpositive="mask")
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
