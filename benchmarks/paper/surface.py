"""Busyness over both decision times of service jobs, for figures 10 and 11, as a heat map."""

from collections.abc import Callable, Mapping, Sequence
from math import ceil
from typing import Final

from benchmarks.paper.claims import Row
from benchmarks.paper.figure import LABELS
from omega.plots.picture import PLAIN_NUMBERS, Picture

COLOURS_OF: Final = "Blues"
DARK: Final = 0.7
MARK: Final = "#b91c1c"


def surfaces(
    by_panel: Mapping[str, Sequence[Row]],
    title: str,
    *,
    columns: int,
    leaves_work: Callable[[Row], bool],
) -> Picture:
    """Draw the busyness of service schedulers; red marks points where work stays unscheduled."""
    picture = Picture(
        title,
        rows=ceil(len(by_panel) / columns),
        columns=columns,
        note="colour and number: busyness of the service scheduler",
    )
    for number, (name, rows) in enumerate(by_panel.items()):
        panel = picture.panels[number // columns, number % columns]
        across = sorted({row["t_job_service"] for row in rows})
        upwards = sorted({row["t_task_service"] for row in rows})
        busy = {(row["t_job_service"], row["t_task_service"]): row for row in rows}
        cells = [[busy[t_job, t_task]["service"]["busy"] for t_job in across] for t_task in upwards]
        panel.imshow(cells, origin="lower", aspect="auto", cmap=COLOURS_OF, vmin=0, vmax=1.2)
        for at, t_job in enumerate(across):
            for up, t_task in enumerate(upwards):
                value = cells[up][at]
                panel.text(
                    at, up, f"{value:.2f}", ha="center", va="center", fontsize=8,
                    color="white" if value > DARK else "black",
                )  # fmt: skip
                if leaves_work(busy[t_job, t_task]):
                    panel.plot(
                        at + 0.32,
                        up + 0.3,
                        marker="s",
                        color=MARK,
                        markersize=6,
                        linestyle="none",
                        label="work stays unscheduled",
                    )
        panel.grid(visible=False)
        panel.set_xticks(range(len(across)), [PLAIN_NUMBERS.format(x=one) for one in across])
        panel.set_yticks(range(len(upwards)), [PLAIN_NUMBERS.format(x=one) for one in upwards])
        panel.set_title(name, fontsize=11)
        panel.set_xlabel(LABELS["t_job_service"])
        panel.set_ylabel(LABELS["t_task_service"] if number % columns == 0 else "")
    return picture
