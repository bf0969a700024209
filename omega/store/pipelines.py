"""The operations of a store for pipelines: submission, and how far each has come.

Goal     Have a stage queued in the moment in which the last one before it ends, and never lose one.
Promise  A stage is no job until all stages before it have succeeded. It becomes one in the call, in
         Postgres in the transaction, that ends the last of them, with a key for each order by
         start deadlines. If one fails or is cancelled, all that come after it are skipped.
Source   docs/decisions/0059-start-deadlines.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from omega.errors import BadInput
from omega.lifecycle.states import State
from omega.limits import LIMITS
from omega.model.pipelines import PipelineSpec


class StageEnd(Enum):
    """How a stage has ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    """A stage before it has failed, or was cancelled or skipped."""


@dataclass(frozen=True)
class StageStatus:
    """One stage: how far it has come."""

    name: str
    after: tuple[str, ...]
    units: int
    job: int | None = None
    """None: a stage before it has not ended well."""
    end: StageEnd | None = None
    cause: str = ""
    """Why it was skipped."""
    cost_ms: int | None = None
    """How long it was expected to take when it was queued ..."""
    start_ms: int | None = None
    """... and its start deadline, by the store's clock."""
    state: State | None = None
    """The state of its job; None if it has none, or if that was pruned."""
    began: bool = False
    """Whether a task of it has a place or is over."""


@dataclass(frozen=True)
class PipelineStatus:
    """One pipeline, with its stages. Times are in milliseconds of the store's clock."""

    id: int
    name: str
    tenant: str
    submitted_ms: int
    within_ms: int
    stamp: int
    """The stamp of its token."""
    finished_ms: int | None
    stages: tuple[StageStatus, ...]

    @property
    def target_ms(self) -> int:
        """When its last stage should have ended."""
        return self.submitted_ms + self.within_ms


def refuse_too_many(specs: Sequence[PipelineSpec]) -> None:
    """Raise BadInput for more pipelines, or stages, than one submission takes."""
    stages = sum(len(spec.stages) for spec in specs)
    for number, most, what in (
        (len(specs), LIMITS.pipelines_per_submission_max, "pipelines"),
        (stages, LIMITS.jobs_per_submission_max, "stages"),
    ):
        if number > most:
            raise BadInput(
                f"{number} {what} in one submission; the limit is {most}: submit them in slices"
            )


class PipelineReader(Protocol):
    """How far pipelines have come."""

    def pipeline(self, pipeline: int) -> PipelineStatus | None:
        """Return one pipeline; None if there never was one, or if it was pruned."""
        ...

    def pipelines(self, *, pipelines_max: int = 100) -> list[PipelineStatus]:
        """Return pipelines, newest first."""
        ...

    def stage_picos(self, tenant: str, template: str) -> Mapping[str, int]:
        """Return what a unit of input costs in picoseconds, by the stages that have ended well."""
        ...


class PipelineStore(PipelineReader, Protocol):
    """Submission of pipelines, and how far they have come."""

    def submit_pipelines(self, specs: Sequence[PipelineSpec]) -> list[int]:
        """Add pipelines, all or none, and queue their first stages; return their ids in order."""
        ...
