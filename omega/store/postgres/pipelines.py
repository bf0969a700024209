"""Pipelines in Postgres: their submission, and how far each has come.

Goal     Pass pipelines to their functions in Postgres, and read what is on record of them.
Promise  Nothing is decided here.
Source   docs/decisions/0059-start-deadlines.md; functions/pipelines.sql.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from psycopg.types.json import Jsonb

from omega.lifecycle.states import State
from omega.model.pipelines import PipelineSpec, pipeline_to_wire
from omega.store.pipelines import PipelineStatus, StageEnd, StageStatus, refuse_too_many
from omega.store.postgres.connection import Link
from omega.store.postgres.packing import Big

_PIPELINES = """
    SELECT p.id, p.name, p.tenant, (extract(epoch FROM p.submitted_at) * 1000)::bigint, p.within_ms,
           p.stamp, (extract(epoch FROM p.finished_at) * 1000)::bigint
      FROM omega.pipeline p
"""
_STAGES = """
    SELECT s.pipeline_id, s.name, s.after, s.units, s.job_id, s.ended_as, s.cause, s.cost_ms,
           s.start_ms, j.state, coalesce(j.placed, 0) > 0
      FROM omega.pipeline_stage s LEFT JOIN omega.job j ON j.id = s.job_id
     WHERE s.pipeline_id = ANY (%s) ORDER BY s.pipeline_id, s.number
"""


class PostgresPipelines:
    """Pipelines from submission to their end."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def submit_pipelines(self, specs: Sequence[PipelineSpec]) -> list[int]:
        """Add pipelines, all or none, and queue their first stages; return their ids in order."""
        refuse_too_many(specs)
        ((ids,),) = self._link.call(
            "SELECT omega.submit_pipelines(%s)", (Jsonb([pipeline_to_wire(it) for it in specs]),)
        )
        return [int(pipeline) for pipeline in ids]

    def pipeline(self, pipeline: int) -> PipelineStatus | None:
        """Return one pipeline; None if there never was one, or if it was pruned."""
        found = self._read(f"{_PIPELINES} WHERE p.id = %s", pipeline)
        return found[0] if found else None

    def pipelines(self, *, pipelines_max: int = 100) -> list[PipelineStatus]:
        """Return pipelines, newest first."""
        return self._read(f"{_PIPELINES} ORDER BY p.id DESC LIMIT %s", pipelines_max)

    def stage_picos(self, tenant: str, template: str) -> Mapping[str, int]:
        """Return what a unit of input costs in picoseconds, by the stages that have ended well."""
        rows = self._link.call(
            "SELECT stage, picos FROM omega.stage_cost WHERE tenant = %s AND template = %s"
            ' ORDER BY stage COLLATE "C"',
            (tenant, template),
        )
        return {stage: int(picos) for stage, picos in rows}

    def _read(self, query: str, *parameters: object) -> list[PipelineStatus]:
        rows = self._link.call(query, parameters)
        stages: dict[int, list[StageStatus]] = defaultdict(list)
        names: dict[int, list[str]] = defaultdict(list)
        for row in self._link.call(_STAGES, (Big([pipeline for pipeline, *_ in rows]),)):
            pipeline, name, after, units, job, ended_as, cause, cost_ms, start_ms, state, began = (
                row
            )
            names[pipeline].append(name)
            stages[pipeline].append(
                StageStatus(
                    name=name,
                    after=tuple(names[pipeline][number] for number in after),
                    units=units,
                    job=job,
                    end=None if ended_as is None else StageEnd(ended_as),
                    cause=cause,
                    cost_ms=cost_ms,
                    start_ms=start_ms,
                    state=None if state is None else State(state),
                    began=began,
                )
            )
        return [_status(row, tuple(stages[row[0]])) for row in rows]


def _status(row: tuple[Any, ...], stages: tuple[StageStatus, ...]) -> PipelineStatus:
    pipeline, name, tenant, submitted_ms, within_ms, stamp, finished_ms = row
    return PipelineStatus(
        id=pipeline,
        name=name,
        tenant=tenant,
        submitted_ms=submitted_ms,
        within_ms=within_ms,
        stamp=stamp,
        finished_ms=finished_ms,
        stages=stages,
    )
