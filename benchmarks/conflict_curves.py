"""The curves of the paper's figures 9, 12, 13 and 14, and of the tasks placed."""

from collections.abc import Mapping, Sequence
from math import ceil, floor, log10
from statistics import mean
from typing import Any, Final

from omega.model.claims import ConflictRule, Granularity
from omega.plots.picture import Picture, magnitudes, series, steps

Rows = Sequence[Mapping[str, Any]]

X_AXES: Final = {
    "schedulers": "schedulers",
    "t_job_ms": "t_job, ms",
    "t_task_ms": "t_task, ms",
    "fill": "cell fill, %",
    "gap_ms": "between two refreshes, ms (0: before each attempt)",
}
Y_AXES: Final = {
    "conflict_fraction": "conflict fraction",
    "busy": "busyness",
    "wait_mean_s": "mean wait, s",
    "tasks_per_s": "tasks placed, 1/s",
}
OFFERED: Final = "busy_without_conflicts"
GREY: Final = "#6b7280"
MODES: Final = {
    (ConflictRule.FIT, Granularity.INCREMENTAL): 0,
    (ConflictRule.FIT, Granularity.ALL_OR_NOTHING): 1,
    (ConflictRule.SEQUENCE, Granularity.INCREMENTAL): 4,
    (ConflictRule.SEQUENCE, Granularity.ALL_OR_NOTHING): 3,
}
"""The series number of each mode; modes of one rule have similar colours."""
MULTIPLY: Final = frozenset({"schedulers", "t_job_ms", "t_task_ms"})
"""Axes that are logarithmic."""


def curves(title: str, along: Mapping[str, Rows], *, note: str) -> Picture:
    """Return a picture with one row of panels per axis in `along`."""
    picture = Picture(title, rows=len(along), columns=len(Y_AXES), note=note)
    for panels, (axis, rows) in zip(picture.panels, along.items(), strict=True):
        for panel, (measure, what) in zip(panels, Y_AXES.items(), strict=True):
            _draw(panel, rows, axis, measure)
            panel.set_xlabel(X_AXES[axis])
            panel.set_ylabel(what)
            picture.explain_above_one(measure, [row[measure] or 0 for row in rows])
    return picture


def _draw(panel: Any, rows: Rows, axis: str, measure: str) -> None:  # noqa: ANN401 - matplotlib's
    panel.margins(y=0.1)
    for (rule, granularity), number in MODES.items():
        points = [
            (row[axis], row[measure])
            for row in sorted(rows, key=lambda row: int(row[axis]))
            if (row["rule"], row["granularity"]) == (rule.value, granularity.value)
            and row[measure] is not None
        ]
        if points:
            dashed = granularity is Granularity.ALL_OR_NOTHING
            series(
                panel,
                number,
                points,
                f"{rule.value}, {granularity.value}",
                stroke="--" if dashed else "-",
            )
    values = sorted({row[axis] for row in rows})
    if axis in MULTIPLY:
        steps(panel, values)
    else:
        panel.set_xticks(values, [f"{value:,}" for value in values])
    if measure == "wait_mean_s":
        _by_decades(panel, [row[measure] for row in rows if row[measure]])
        return
    if measure == "busy":
        _draw_offered(panel, rows, axis, values)
    panel.set_ylim(bottom=0)


def _by_decades(panel: Any, values: Sequence[float]) -> None:  # noqa: ANN401
    """Make the y-axis logarithmic, between powers of ten that enclose the values."""
    if values:  # matplotlib draws no logarithmic axis without values
        magnitudes(panel)
        panel.set_ylim(10 ** floor(log10(min(values))), 10 ** ceil(log10(max(values)) + 0.01))


def _draw_offered(panel: Any, rows: Rows, axis: str, values: Sequence[int]) -> None:  # noqa: ANN401
    """Draw the busyness that schedulers would have without conflicts: the paper's dashed line."""
    means = [mean(row[OFFERED] for row in rows if row[axis] == value) for value in values]
    panel.plot(values, means, color=GREY, linestyle=":", label="busyness without conflicts")
