"""A sweep as a picture: conflict fraction, busyness and mean wait over the first value varied.

Goal     See at a glance where an architecture stops working, in the axes of the paper's figures.
Promise  A line stands for each combination of the other values, bars for the standard deviation
         over seeds. The title says who misses the wait that the paper aims at, and from where on.
Source   Omega (EuroSys 2013), figures 5 to 14; its aim of 30 s.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from omega.cli.pictures import COLOURS, MARKERS, Picture, magnitudes
from omega.cli.sim_axes import SETTING, option_of
from omega.cli.sim_plan import as_json
from omega.cli.sim_results import DEVIATION, WORKLOADS, Results
from omega.cli.wording import things
from omega.workload.arrivals import BATCH

WAIT_AIM_S: Final = 30.0
NAMED_MAX: Final = 3
"""Lines that the title names; of more it says how many."""
SPANS_MAGNITUDES: Final = 20.0
"""From this ratio of the largest to the least, an axis goes by orders of magnitude."""
WAIT: Final = "wait_mean_s"
PANELS: Final = {
    "conflict_fraction": "conflict fraction",
    "busy": "busyness",
    WAIT: "mean wait, s",
}
LEAST_HEIGHT: Final = 0.05
"""Of an axis of fractions, lest chance look like a finding."""
UNITS: Final = {"t_": " (s)", "memory_gib": " (GiB)", "hours": " (h)"}


@dataclass(frozen=True)
class Line:
    """The rows of one combination, from the least x on."""

    label: str
    rows: Sequence[Mapping[str, Any]]

    def points(self, x: str, workload: str, name: str) -> list[tuple[Any, float, float]]:
        """Return x, mean and deviation of each row that has the figure."""
        return [
            (row[x], row[workload][name], row.get(DEVIATION, {}).get(workload, {}).get(name) or 0.0)
            for row in self.rows
            if row.get(workload, {}).get(name) is not None
        ]


def draw(results: Results) -> Picture:
    """Draw what is done of a sweep."""
    x, *others = results.axes
    values = [as_json(one) for one in results.axes[x]]
    lines = _lines(results, x, others)
    there = [one for one in WORKLOADS if any(one in row for row in results.rows)]
    picture = Picture(
        finding(lines, x, values),
        rows=len(PANELS),
        columns=len(there),
        note=_note(results),
    )
    for row, (name, title) in enumerate(PANELS.items()):
        for column, workload in enumerate(there):
            panel = picture.panels[row, column]
            for number, line in enumerate(lines):
                points = line.points(x, workload, name)
                shown = [one for one in points if name != WAIT or one[1] > 0]
                _draw_line(panel, number, line, shown, values)
            if name == WAIT:
                magnitudes(panel)
                panel.axhline(
                    WAIT_AIM_S, color="#111111", linestyle=":", linewidth=1.2, label="30 s"
                )
            else:
                panel.set_ylim(0, max(panel.get_ylim()[1], LEAST_HEIGHT))
            _scale(panel, values)
            panel.set_title(workload if row == 0 else "", fontsize=11)
            panel.set_ylabel(title if column == 0 else "")
            panel.set_xlabel(_titled(x) if row == len(PANELS) - 1 else "")
    return picture


def finding(lines: Sequence[Line], x: str, values: Sequence[Any]) -> str:
    """Say for batch jobs, which wait for nobody's sake but ours, who misses the aim, and where."""
    workload = BATCH if any(BATCH in row for line in lines for row in line.rows) else WORKLOADS[-1]
    missed: dict[str, Any] = {}
    for line in lines:
        late = [at for at, wait, _ in line.points(x, workload, WAIT) if wait > WAIT_AIM_S]
        if late:
            missed[line.label] = min(late, key=values.index)
    name = option_of(x)
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


def _lines(results: Results, x: str, others: Sequence[str]) -> list[Line]:
    lines: dict[tuple[object, ...], list[Mapping[str, Any]]] = {}
    for row in results.rows:
        lines.setdefault(tuple(row[name] for name in others), []).append(row)
    fixed = str(results.parameters().get("architecture", "mean"))
    return [
        Line(", ".join(_said(n, v) for n, v in zip(others, key, strict=True)) or fixed, rows)
        for key, rows in lines.items()
    ]


def _said(name: str, value: object) -> str:
    """Name a value: words of options speak for themselves, numbers and settings do not."""
    speaks = isinstance(value, str) and not name.startswith(SETTING)
    return str(value) if speaks else f"{option_of(name)} {value}"


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


def _titled(x: str) -> str:
    unit = next((unit for start, unit in UNITS.items() if x.startswith(start)), "")
    return option_of(x) + unit


def _note(results: Results) -> str:
    seeds = things(results.seeds, "seed")
    said = results.parameters()
    lists = said.get("jobs", "several job lists")
    bars = ", bars: standard deviation" if results.seeds > 1 else ""
    return f"{lists}, {seeds} a point{bars}"
