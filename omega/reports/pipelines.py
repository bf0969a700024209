"""How far a pipeline has come, and what of it is late.

Goal     Say of each stage when it must start, and whether that is past.
Promise  Values in and out. A stage that is no job yet has the start deadline that it would have if
         it became one now, with the costs that are known now.
Source   docs/decisions/0059-start-deadlines.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omega.model.pipeline_graph import PipelineGraph, Stage
from omega.ordering.deadlines import start_deadlines
from omega.ordering.stage_costs import stage_costs_ms
from omega.store.pipelines import PipelineReader, PipelineStatus, StageEnd, StageStatus

WAITING = "waiting"
"""The state of a stage that is no job yet."""


@dataclass(frozen=True)
class StageLine:
    """One stage as it is shown."""

    stage: StageStatus
    state: str
    """That of its job, how it has ended, or `waiting`."""
    cost_ms: int
    start_in_ms: int
    """How long from now its start deadline is; below 0 once that is past."""
    is_late: bool
    """Whether it has not begun although its start deadline is past."""


@dataclass(frozen=True)
class PipelineReport:
    """One pipeline at one moment."""

    pipeline: PipelineStatus
    lines: Sequence[StageLine]
    now_ms: int

    @classmethod
    def of(
        cls, pipeline: PipelineStatus, picos: Mapping[str, int], now_ms: int
    ) -> "PipelineReport":
        """Return the report of a pipeline; `picos` is what units of its stages cost."""
        graph = PipelineGraph([Stage(it.name, it.after) for it in pipeline.stages])
        units = {it.name: it.units for it in pipeline.stages}
        costs = stage_costs_ms(graph, units, picos, pipeline.within_ms)
        starts = start_deadlines(graph, costs, pipeline.target_ms)
        lines = []
        for it in pipeline.stages:
            start_ms = starts[it.name] if it.start_ms is None else it.start_ms
            cost_ms = costs[it.name] if it.cost_ms is None else it.cost_ms
            waits = it.end is None and not it.began
            lines.append(
                StageLine(
                    stage=it,
                    state=_state(it),
                    cost_ms=cost_ms,
                    start_in_ms=start_ms - now_ms,
                    is_late=waits and start_ms < now_ms,
                )
            )
        return cls(pipeline, lines, now_ms)

    @property
    def state(self) -> str:
        """`going on`, `succeeded`, or how the first stage ended that did not succeed."""
        ends = [it.end for it in self.pipeline.stages]
        if None in ends:
            return "going on"
        bad = [end for end in ends if end not in (StageEnd.SUCCEEDED, StageEnd.SKIPPED)]
        return bad[0].value if bad and bad[0] is not None else StageEnd.SUCCEEDED.value

    @property
    def left_ms(self) -> int:
        """How long it had, or has, until its target; below 0 if it missed that."""
        ended_ms = self.pipeline.finished_ms
        return self.pipeline.target_ms - (self.now_ms if ended_ms is None else ended_ms)

    @property
    def late(self) -> int:
        """How many of its stages are late."""
        return sum(line.is_late for line in self.lines)

    def summary(self) -> dict[str, Any]:
        """Return the pipeline as a row."""
        it = self.pipeline
        return {
            "pipeline": it.id,
            "name": it.name,
            "tenant": it.tenant,
            "state": self.state,
            "within_ms": it.within_ms,
            "left_ms": self.left_ms,
            "stages": len(it.stages),
            "ended": sum(stage.end is not None for stage in it.stages),
            "late": self.late,
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each stage."""
        return [
            {
                "stage": line.stage.name,
                "after": list(line.stage.after),
                "job": line.stage.job,
                "state": line.state,
                "input": line.stage.units,
                "cost_ms": line.cost_ms,
                "start_in_ms": line.start_in_ms,
                "late": line.is_late,
                "cause": line.stage.cause,
            }
            for line in self.lines
        ]


def read_reports(
    store: PipelineReader, pipelines: Sequence[PipelineStatus], now_ms: int
) -> list[PipelineReport]:
    """Return the reports of pipelines; what is known of the costs of a template is read once."""
    templates = {(it.tenant, it.name) for it in pipelines}
    picos = {template: store.stage_picos(*template) for template in sorted(templates)}
    return [PipelineReport.of(it, picos[it.tenant, it.name], now_ms) for it in pipelines]


def _state(stage: StageStatus) -> str:
    if stage.end is not None:
        return stage.end.value
    return WAITING if stage.state is None else stage.state.value
