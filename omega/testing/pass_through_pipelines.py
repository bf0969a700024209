"""Passes the calls for pipelines on to another store.

Goal     Let wrappers of a store change one operation and keep the others.
Promise  Each call is passed on unchanged.
Source   docs/decisions/0059-start-deadlines.md.
"""

from collections.abc import Mapping, Sequence

from omega.model.pipelines import PipelineSpec
from omega.store.pipelines import PipelineStatus
from omega.store.protocols import Store


class PipelinesPassThrough:
    """The part of `PassThrough` for pipelines."""

    _store: Store

    def submit_pipelines(self, specs: Sequence[PipelineSpec]) -> list[int]:
        """Pass on."""
        return self._store.submit_pipelines(specs)

    def pipeline(self, pipeline: int) -> PipelineStatus | None:
        """Pass on."""
        return self._store.pipeline(pipeline)

    def pipelines(self, *, pipelines_max: int = 100) -> list[PipelineStatus]:
        """Pass on."""
        return self._store.pipelines(pipelines_max=pipelines_max)

    def stage_picos(self, tenant: str, template: str) -> Mapping[str, int]:
        """Pass on."""
        return self._store.stage_picos(tenant, template)
