"""A plot of `omega what-if`: what happened, what is simulated of it, and what would have been.

Goal     Show in one picture what a change does to conflicts, busyness and waits of each kind.
Promise  What is not known has no bar. Whiskers are one standard deviation over seeds.
Source   Omega (EuroSys 2013), figures 8, 13 and 14, which show these measures.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from omega.plots.picture import COLOURS, Picture

Value = tuple[float | None, float | None]
"""A mean and its standard deviation."""
TITLES: Final = {
    "conflict_fraction": "conflict fraction",
    "busy": "busyness",
    "wait_mean_s": "mean wait in s",
}
GROUP: Final = 0.8
"""The width of a kind's bars together."""
COLOUR_OF: Final = (COLOURS[2], COLOURS[1], COLOURS[0])
"""Of what happened, of its simulation, and of what would have happened."""


@dataclass(frozen=True, kw_only=True)
class Bars:
    """What is drawn."""

    kinds: Sequence[str]
    series: Sequence[str]
    """What happened comes first, and what is asked last."""
    values: Mapping[str, Mapping[tuple[str, str], Value]]
    """By measure, and by series and kind."""
    changes: str
    """What is otherwise in the last series; nothing if it is as it was."""
    note: str


def draw(bars: Bars) -> Picture:
    """Draw a panel for each measure, with a group of bars for each kind."""
    title, note = _plain(_finding(bars)), _plain(bars.note)
    picture = Picture(title, columns=len(bars.values), note=note)
    for panel, (measure, values) in zip(picture.panels[0], bars.values.items(), strict=True):
        width = GROUP / len(bars.series)
        for number, name in enumerate(bars.series):
            shift = (number - (len(bars.series) - 1) / 2) * width
            known = [
                (at + shift, *values[name, kind])
                for at, kind in enumerate(bars.kinds)
                if values.get((name, kind), (None, None))[0] is not None
            ]
            _bars(panel, known, width, name, COLOUR_OF[number % len(COLOUR_OF)])
        panel.set_xticks(range(len(bars.kinds)), list(map(_plain, bars.kinds)))
        panel.set_ylim(bottom=0)
        panel.set_axisbelow(True)
        panel.set_ylabel(TITLES[measure])
        picture.explain_above_one(measure, [mean for mean, _ in values.values() if mean])
    return picture


def _plain(text: str) -> str:
    """Return a text in which matplotlib finds no formula."""
    return text.replace("$", r"\$")


def _bars(
    panel: Any,  # noqa: ANN401 - matplotlib's axes
    known: Sequence[tuple[float, float | None, float | None]],
    width: float,
    label: str,
    colour: str,
) -> None:
    panel.bar(
        [at for at, _, _ in known],
        [mean for _, mean, _ in known],
        width,
        label=label,
        color=colour,
    )
    spread = [(at, mean, deviation) for at, mean, deviation in known if deviation]
    if spread:
        at, mean, deviations = zip(*spread, strict=True)
        panel.errorbar(at, mean, deviations, fmt="none", ecolor="#111111", elinewidth=1, capsize=2)


def _finding(bars: Bars) -> str:
    """Return what the picture shows of conflicts, as a title.

    A change is compared with the cell as it was simulated, so that both err alike.
    """
    before, after = bars.series[-2:]
    values = bars.values["conflict_fraction"]
    told = [
        f"{kind} {_figure(values.get((before, kind)))} → {_figure(values.get((after, kind)))}"
        for kind in bars.kinds
    ]
    what = (
        f"With {bars.changes}, the simulated conflict fraction goes"
        if bars.changes
        else "The conflict fraction as it happened, and simulated"
    )
    return f"{what}: {', '.join(told)}"


def _figure(value: Value | None) -> str:
    return "none" if value is None or value[0] is None else f"{value[0]:.2f}"
