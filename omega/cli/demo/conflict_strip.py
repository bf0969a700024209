"""The conflict fraction over the time of a demo, as a strip of small columns.

Goal     Show at a glance that conflicts grow as the cell fills.
Promise  The strip is as wide as asked. It spans the time from the first arrival to the end of the
         load or to now, whichever is later. The time that has not passed yet is drawn as dots.
Source   The sparkline of Edward Tufte, Beautiful Evidence.
"""

from collections.abc import Sequence
from math import ceil
from typing import Final

from rich.text import Text

from omega.cli.screens import conflict_colour

LEVELS: Final = "▁▂▃▄▅▆▇█"
TOP_MIN: Final = 1.0
"""The conflict fraction that the highest column stands for, unless a greater one occurs."""

Trail = Sequence[tuple[float, float]]
"""(seconds since the first arrival, conflict fraction at that time) pairs, in order of time."""


def strip(trail: Trail, seconds: float, width: int) -> Text:
    """Draw the trail of a demo whose jobs arrive for so many seconds."""
    text = Text()
    if trail:
        reached_s = trail[-1][0]
        top = max(TOP_MIN, *(conflict for _, conflict in trail))
        per_column_s = max(seconds, reached_s) / width
        drawn = min(width, ceil(reached_s / per_column_s))
        for column in range(drawn):
            conflict = _at(trail, (column + 1) * per_column_s)
            level = LEVELS[min(len(LEVELS) - 1, int(conflict / top * len(LEVELS)))]
            text.append(level, conflict_colour(conflict) or "green")
    return text.append("·" * (width - len(text)), "bright_black")


def _at(trail: Trail, at_s: float) -> float:
    """Return the last conflict fraction known at this time; 0 before the first."""
    return next((conflict for when_s, conflict in reversed(trail) if when_s <= at_s), 0.0)
