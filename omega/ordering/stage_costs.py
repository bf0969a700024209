"""How long the stages of pipelines take: learnt per template and stage, per unit of input.

Goal     Estimate a stage's cost before it runs, from how long others of its kind took.
Promise  Integers only, computed as functions/pipelines.sql does: picoseconds per unit, rounded
         down, so that inputs may be counted in bytes. A stage of which nothing is known has the
         mean of its template's stages, never 0.
Source   Xu et al., Cameo (NSDI 2021): costs of operators flow back as running estimates;
         docs/decisions/0059-start-deadlines.md.
"""

from collections.abc import Mapping
from typing import Final

from omega.limits import LIMITS
from omega.model.pipeline_graph import PipelineGraph

OLD_PARTS: Final = 7
"""Of eight parts of a moving average, those of the average before; the last part is new."""
PICOS_PER_MS: Final = 10**9
PICOS_MAX: Final = LIMITS.duration_ms_max * PICOS_PER_MS


def learnt_picos(before: int | None, took_ms: int, units: int) -> int:
    """Return what a unit costs, after a stage with so many units took so long."""
    new = min(max(took_ms, 0) * PICOS_PER_MS // units, PICOS_MAX)
    return new if before is None else (OLD_PARTS * before + new) // (OLD_PARTS + 1)


def stage_costs_ms(
    graph: PipelineGraph, units: Mapping[str, int], picos: Mapping[str, int], within_ms: int
) -> dict[str, int]:
    """Return how long each stage of a pipeline is expected to take.

    `picos` is what a unit costs, by the stages of the template of which it is known. If none is
    known, each stage takes an equal part of `within_ms` on the longest path.
    """
    if not picos:
        ones = dict.fromkeys(graph.order, 1)
        stages_in_line = 1 + max(graph.below_ms(ones).values())
        return dict.fromkeys(graph.order, within_ms // stages_in_line)
    mean = sum(picos.values()) // len(picos)
    return {
        name: min(picos.get(name, mean) * units[name] // PICOS_PER_MS, LIMITS.duration_ms_max)
        for name in graph.order
    }
