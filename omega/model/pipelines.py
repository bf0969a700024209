"""Pipelines: jobs that run one after another, to end together within some time.

Goal     Describe what a user submits as a pipeline, and nothing about when its stages run.
Promise  Frozen. Each stage stands after all stages that it comes after, so that there is no cycle.
Source   docs/decisions/0059-start-deadlines.md.
"""

from dataclasses import dataclass

from omega.limits import LIMITS
from omega.model.jobs import JobSpec
from omega.model.wire import spec_to_wire


@dataclass(frozen=True)
class PipelineStage:
    """A step of a pipeline: a job that is queued when all stages before it have succeeded."""

    name: str
    job: JobSpec
    after: tuple[str, ...] = ()
    """The stages before it."""
    units: int = 1
    """The size of its input: costs are learnt per unit of it."""


@dataclass(frozen=True)
class TokenRate:
    """So many pipelines of a template have a token in each interval."""

    rate: int
    interval_ms: int

    def __post_init__(self) -> None:
        assert 1 <= self.rate <= LIMITS.token_rate_max
        assert 1 <= self.interval_ms <= LIMITS.duration_ms_max


@dataclass(frozen=True, kw_only=True)
class PipelineSpec:
    """A pipeline as submitted."""

    name: str
    """Its template: pipelines of one name share what is learnt of the costs of their stages."""
    within_ms: int
    """How long after its submission the last stage should have ended."""
    stages: tuple[PipelineStage, ...]
    tenant: str = "default"
    tokens: TokenRate | None = None

    def __post_init__(self) -> None:
        assert 1 <= self.within_ms <= LIMITS.duration_ms_max
        assert 1 <= len(self.stages) <= LIMITS.stages_per_pipeline_max
        before: set[str] = set()
        for stage in self.stages:
            assert stage.name not in before, "names are unique"
            assert before.issuperset(stage.after), "stages stand after those that they come after"
            assert len(set(stage.after)) == len(stage.after)
            assert 1 <= stage.units <= LIMITS.stage_units_max
            assert stage.job.tenant == self.tenant
            before.add(stage.name)


def pipeline_to_wire(spec: PipelineSpec) -> dict[str, object]:
    """Return the wire form of a pipeline, in which stages are named by their places, from 0."""
    place = {stage.name: number for number, stage in enumerate(spec.stages)}
    tokens = spec.tokens
    return {
        "name": spec.name,
        "tenant": spec.tenant,
        "within_ms": spec.within_ms,
        "tokens": None
        if tokens is None
        else {"rate": tokens.rate, "interval_ms": tokens.interval_ms},
        "stages": [
            {
                "name": stage.name,
                "after": [place[name] for name in stage.after],
                "units": stage.units,
                "job": spec_to_wire(stage.job),
            }
            for stage in spec.stages
        ],
    }
