"""Pipelines as users write them, in YAML.

Goal     Turn a correct file into pipelines; for a wrong one, report where, and what to write.
Promise  The result is all pipelines, or one BadInput for the first error, with file, line and
         field. The jobs of stages are held to all that is held against jobs.
Source   docs/guide/pipelines.md shows such files; omega.workload.spec reads jobs.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError

from omega.errors import BadInput
from omega.limits import INT4_MAX, LIMITS
from omega.model.pipeline_graph import PipelineGraph, Stage
from omega.model.pipelines import PipelineSpec, PipelineStage, TokenRate
from omega.workload.quantities import duration_ms, shown
from omega.workload.spec import PARTS, GroupSpec, job_of, rejected, values_in
from omega.workload.spec_parts import Name, Part, at_most
from omega.workload.yaml_lines import Document, Steps


def _names(value: object) -> object:
    return [value] if isinstance(value, str) else value


class TokenSpec(Part):
    """Tokens of a template."""

    rate: Annotated[int, Field(ge=1, le=LIMITS.token_rate_max)]
    every: Annotated[int, BeforeValidator(duration_ms), Field(ge=1)]


class StageSpec(Part):
    """A stage: what a job has, and what it comes after."""

    name: Name
    after: Annotated[
        list[Name], BeforeValidator(_names), at_most(LIMITS.stages_per_pipeline_max)
    ] = Field(default_factory=list)
    input: Annotated[int, Field(ge=1, le=LIMITS.stage_units_max)] = 1
    scheduler: Name | None = None
    minimum: object = 0
    groups: Annotated[list[GroupSpec], Field(min_length=1), at_most(LIMITS.task_groups_per_job_max)]


class PipelineBody(Part):
    """How long a pipeline may take, and its stages."""

    within: Annotated[int, BeforeValidator(duration_ms), Field(ge=1)]
    tokens: TokenSpec | None = None
    stages: Annotated[list[StageSpec], Field(min_length=1), at_most(LIMITS.stages_per_pipeline_max)]


class PipelineFields(Part):
    """A pipeline, and what all its stages have in common."""

    name: Name
    scheduler: Name | None = None
    tenant: Name = "default"
    precedence: Annotated[int, Field(ge=-INT4_MAX, le=INT4_MAX)] = 0
    preemptible: bool = True
    pipeline: PipelineBody


_PARTS: Mapping[str, type[Part]] = {
    **PARTS,
    "": PipelineFields,
    "pipeline": PipelineBody,
    "stages": StageSpec,
    "tokens": TokenSpec,
}


def parse_pipelines(text: str | bytes, file: str) -> list[PipelineSpec]:
    """Return the pipelines of a YAML text; `file` is its name in errors. Raises BadInput."""
    found = values_in(text, file)
    if not found:
        raise BadInput("there is no pipeline in it", file=file)
    if len(found) > LIMITS.pipelines_per_submission_max:
        document, _, root = found[LIMITS.pipelines_per_submission_max]
        raise document.reject(
            root,
            f"there are {len(found)} pipelines in it, more than"
            f" {LIMITS.pipelines_per_submission_max}, which is as many as one submission takes;"
            " split it",
            root=len(root),
        )
    return [_pipeline(document, value, root) for document, value, root in found]


def _pipeline(document: Document, value: object, root: Steps) -> PipelineSpec:
    if isinstance(value, dict) and "pipeline" not in value and "groups" in value:
        raise document.reject(
            (*root, "groups"), "this is a job, and no pipeline; type omega submit", root=len(root)
        )
    try:
        said = PipelineFields.model_validate(value)
    except ValidationError as error:
        raise rejected(document, root, error, _PARTS, len(root)) from None
    assert isinstance(value, dict)
    body = said.pipeline
    graph = _graph(document, body.stages, root)
    stages = {
        stage.name: _stage(document, said, at, (value["pipeline"]["stages"])[at], root)
        for at, stage in enumerate(body.stages)
    }
    tokens = body.tokens
    return PipelineSpec(
        name=said.name,
        tenant=said.tenant,
        within_ms=body.within,
        tokens=None if tokens is None else TokenRate(tokens.rate, tokens.every),
        stages=tuple(stages[name] for name in graph.order),
    )


def _graph(document: Document, stages: Sequence[StageSpec], root: Steps) -> PipelineGraph:
    """Return the graph of the stages. Raises BadInput at the stage that makes it none."""
    names = [stage.name for stage in stages]
    for at, stage in enumerate(stages):
        others = [name for name in dict.fromkeys(names) if name != stage.name]
        so_far = names[: at + 1]
        try:
            PipelineGraph([Stage(name) for name in so_far])
            PipelineGraph([*map(Stage, others), Stage(stage.name, tuple(stage.after))])
            # Without what comes later in the file: a cycle is found at the stage that closes it.
            PipelineGraph(
                [
                    Stage(it.name, tuple(name for name in it.after if name in so_far))
                    for it in stages[: at + 1]
                ]
            )
        except BadInput as problem:
            where = ("pipeline", "stages", at, problem.field or "after")
            raise document.reject((*root, *where), problem.sentence, root=len(root)) from None
    return PipelineGraph([Stage(it.name, tuple(dict.fromkeys(it.after))) for it in stages])


def _stage(
    document: Document, said: PipelineFields, at: int, value: Mapping[str, Any], root: Steps
) -> PipelineStage:
    stage = said.pipeline.stages[at]
    here: Steps = (*root, "pipeline", "stages", at)

    def reject(field: str, sentence: str) -> BadInput:
        return document.reject((*here, field), sentence, root=len(root))

    scheduler = stage.scheduler or said.scheduler
    if scheduler is None:
        raise reject("scheduler", "this field must be given, here or for the whole pipeline")
    name = f"{said.name}.{stage.name}"
    if len(name) > LIMITS.name_length_max:
        raise reject(
            "name",
            f"the name of its job, {shown(name)}, is longer than {LIMITS.name_length_max}"
            " characters",
        )
    its_own = {field: value[field] for field in ("minimum", "groups") if field in value}
    common = {
        "name": name,
        "scheduler": scheduler,
        "tenant": said.tenant,
        "precedence": said.precedence,
        "preemptible": said.preemptible,
    }
    job = job_of(document, common | its_own, here, named_from=len(root))
    return PipelineStage(stage.name, job, tuple(dict.fromkeys(stage.after)), stage.input)
