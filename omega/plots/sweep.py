"""A plot of a sweep: conflict fraction, busyness and mean wait over the first value varied.

Goal     Show at a glance where an architecture stops working, on the axes of the paper's figures.
Promise  There is one line for each combination of the other values; bars are the standard deviation
         over seeds. The title names the lines that miss the paper's target for the wait, and the
         value from which on they do.
Source   Omega (EuroSys 2013), figures 5 to 14; its target of 30 s.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from omega.plots.picture import COLOURS, MARKERS, Picture, magnitudes
from omega.reports.wording import things
from omega.sim.sweep import DEVIATION, WORKLOADS
from omega.workload.arrivals import BATCH

WAIT_TARGET_S: Final = 30.0
NAMED_MAX: Final = 3
"""Lines that the title names; if there are more, it gives their number."""
SPANS_MAGNITUDES: Final = 20.0
"""From this ratio of its largest to its least value on, an axis is logarithmic."""
WAIT: Final = "wait_mean_s"
PANELS: Final = {
    "conflict_fraction": "conflict fraction",
    "busy": "busyness",
    WAIT: "mean wait, s",
}
LEAST_HEIGHT: Final = 0.05
"""Least upper end of an axis of fractions, so that noise does not look like a finding."""
UNITS: Final = {"t_": " (s)", "memory_gib": " (GiB)", "hours": " (h)"}


@dataclass(frozen=True)
class Axis:
    """An option or setting that a sweep varies."""

    name: str
    """The key of its value in a row."""
    title: str
    """The option, as it is written on the command line."""
    values: Sequence[Any]
    """Its values as JSON types."""
    labels_itself: bool = True
    """Whether a text among its values, such as an architecture, is a label without the title."""


@dataclass(frozen=True)
class SweepResults:
    """The finished points of a sweep."""

    axes: Sequence[Axis]
    rows: Sequence[Mapping[str, Any]]
    seeds: int
    jobs: str
    """What was simulated: the name of a job list or a trace."""
    fixed: str
    """The label of the line if there is only one axis."""


@dataclass(frozen=True)
class Line:
    """The rows of one combination of the other axes, in the order of the grid."""

    label: str
    rows: Sequence[Mapping[str, Any]]

    def points(self, x: str, workload: str, name: str) -> list[tuple[Any, float, float]]:
        """Return x, mean and deviation of each row that has the figure."""
        return [
            (row[x], row[workload][name], row.get(DEVIATION, {}).get(workload, {}).get(name) or 0.0)
            for row in self.rows
            if row.get(workload, {}).get(name) is not None
        ]


def draw(results: SweepResults) -> Picture:
    """Draw the finished points of a sweep."""
    axis, *others = results.axes
    x, values = axis.name, axis.values
    lines = _lines(results, others)
    there = [one for one in WORKLOADS if any(one in row for row in results.rows)]
    picture = Picture(
        finding(lines, axis),
        rows=len(PANELS),
        columns=len(there),
        note=_note(results),
    )
    for row, (name, title) in enumerate(PANELS.items()):
        for column, workload in enumerate(there):
            panel = picture.panels[row, column]
            for number, line in enumerate(lines):
                points = line.points(x, workload, name)
                _draw_line(panel, number, line, points, values)
                picture.explain_above_one(name, [value for _, value, _ in points])
            if name == WAIT:
                magnitudes(panel)
                panel.axhline(
                    WAIT_TARGET_S, color="#111111", linestyle=":", linewidth=1.2, label="30 s"
                )
            else:
                panel.set_ylim(0, max(panel.get_ylim()[1], LEAST_HEIGHT))
            _scale(panel, values)
            panel.set_title(workload if row == 0 else "", fontsize=11)
            panel.set_ylabel(title if column == 0 else "")
            panel.set_xlabel(_titled(axis) if row == len(PANELS) - 1 else "")
    return picture


def finding(lines: Sequence[Line], axis: Axis) -> str:
    """Return the title: which lines miss the target wait, and from which value on.

    It is about batch jobs; if there are none, about the last of WORKLOADS.
    """
    workload = BATCH if any(BATCH in row for line in lines for row in line.rows) else WORKLOADS[-1]
    missed: dict[str, Any] = {}
    for line in lines:
        late = [
            at for at, wait, _ in line.points(axis.name, workload, WAIT) if wait > WAIT_TARGET_S
        ]
        if late:
            missed[line.label] = min(late, key=axis.values.index)
    name = axis.title
    if not missed:
        return f"{workload.capitalize()} jobs wait less than 30 s everywhere"
    if len(missed) > NAMED_MAX:
        return f"{workload.capitalize()} jobs wait over 30 s in {len(missed)} of {len(lines)} lines"
    told = "; ".join(
        f"{label} from {name} {at:g}" if isinstance(at, float) else f"{label} from {name} {at}"
        for label, at in missed.items()
    )
    rest = "" if len(missed) == len(lines) else ", the others nowhere"
    return f"{workload.capitalize()} jobs wait over 30 s: {told}{rest}"


def _lines(results: SweepResults, others: Sequence[Axis]) -> list[Line]:
    lines: dict[tuple[object, ...], list[Mapping[str, Any]]] = {}
    for row in results.rows:
        lines.setdefault(tuple(row[axis.name] for axis in others), []).append(row)
    return [
        Line(
            ", ".join(_said(a, v) for a, v in zip(others, key, strict=True)) or results.fixed, rows
        )
        for key, rows in lines.items()
    ]


def _said(axis: Axis, value: object) -> str:
    """Return a value as a label; numbers and settings get the axis' title before them."""
    return value if isinstance(value, str) and axis.labels_itself else f"{axis.title} {value}"


def _draw_line(
    panel: Any,  # noqa: ANN401 - matplotlib's axes
    number: int,
    line: Line,
    points: Sequence[tuple[Any, float, float]],
    values: Sequence[Any],
) -> None:
    if not points:
        return
    at, means, deviations = zip(*points, strict=True)
    panel.errorbar(
        at if _is_number(values) else [values.index(one) for one in at],
        means,
        yerr=deviations if any(deviations) else None,
        label=line.label,
        color=COLOURS[number % len(COLOURS)],
        marker=MARKERS[number % len(MARKERS)],
        linestyle="-" if number < len(COLOURS) else "--",
        linewidth=1.6,
        markersize=5,
        capsize=3,
    )


def _scale(panel: Any, values: Sequence[Any]) -> None:  # noqa: ANN401 - likewise
    if not _is_number(values):
        panel.set_xticks(range(len(values)), [str(one) for one in values])
        return
    if min(values) > 0 and max(values) / min(values) >= SPANS_MAGNITUDES:
        panel.set_xscale("log")
    panel.set_xticks(values, [f"{one:g}" for one in values])
    panel.minorticks_off()


def _is_number(values: Sequence[Any]) -> bool:
    return all(isinstance(one, int | float) for one in values)


def _titled(axis: Axis) -> str:
    unit = next((unit for start, unit in UNITS.items() if axis.name.startswith(start)), "")
    return axis.title + unit


def _note(results: SweepResults) -> str:
    bars = ", bars: standard deviation" if results.seeds > 1 else ""
    return f"{results.jobs}, {things(results.seeds, 'seed')} a point{bars}"
