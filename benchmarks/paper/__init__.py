"""The figures of the Omega paper, simulated: each ends in a plot and in its claims, checked."""

from collections.abc import Callable, Mapping
from typing import Final

from benchmarks.harness import Benchmark
from benchmarks.paper import (
    figure_7,
    figure_8,
    figure_9,
    figure_10,
    figure_11,
    figure_12,
    figure_13,
    figure_14,
    figure_15,
    figure_16,
    figures_2_4,
    figures_5_6,
)

COMMANDS: Final[Mapping[str, Callable[..., None]]] = {
    "figures_2_4": figures_2_4.command,
    "figures_5_6": figures_5_6.command,
    "figure_7": figure_7.command,
    "figure_8": figure_8.command,
    "figure_9": figure_9.command,
    "figure_10": figure_10.command,
    "figure_11": figure_11.command,
    "figure_12": figure_12.command,
    "figure_13": figure_13.command,
    "figure_14": figure_14.command,
    "figure_15": figure_15.command,
    "figure_16": figure_16.command,
}
FIGURES: Final[tuple[type[Benchmark], ...]] = (
    figures_2_4.Figures2To4,
    figures_5_6.Figures5And6,
    figure_7.Figure7,
    figure_8.Figure8,
    figure_9.Figure9,
    figure_10.Figure10,
    figure_11.Figure11,
    figure_12.Figure12,
    figure_13.Figure13,
    figure_14.Figure14,
    figure_15.Figure15,
    figure_16.Figure16,
)
