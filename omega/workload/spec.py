"""Job specs as users write them, in YAML.

Goal     Turn a correct spec into a job; for a wrong one, report where, and what to write instead.
Promise  The result is all jobs, or one BadInput for the first error, with file, line and field. No
         limit of `omega.limits` is exceeded.
Source   docs/guide/jobs.md shows specs. A file holds one job, a list of jobs, or several documents.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, ValidationError
from pydantic_core import ErrorDetails

from omega.errors import BadInput, did_you_mean
from omega.limits import INT4_MAX, LIMITS
from omega.model.elastic import Phase, Workers, problem_with_phases
from omega.model.jobs import JobSpec, Preference, StepWork, TaskGroup
from omega.model.programs import Program
from omega.model.resources import GPU_SLICES
from omega.model.wire import spec_to_wire
from omega.workload.constraint_spec import ConstraintSpec, PreferenceSpec, constraint_of
from omega.workload.program_spec import PROGRAM_PARTS, ProgramFields, Reject, program_of
from omega.workload.quantities import (
    cpu_milli,
    disk_mib,
    duration_ms,
    gpus_and_slices,
    memory_mib,
    shown,
)
from omega.workload.spec_parts import Name, Part, at_most
from omega.workload.yaml_lines import Document, Steps, documents

_JSON = json.JSONEncoder(ensure_ascii=False, check_circular=False)


def _minimum(value: object) -> object:
    if value == "all":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{shown(value)} is not a number of tasks; write one, or all")
    return value


class ShapeFields(Part):
    """How many tasks there are, what each asks for, and where they may run."""

    tasks: Annotated[int, Field(ge=1, le=LIMITS.tasks_per_job_max)] = 1
    cpu: Annotated[int, BeforeValidator(cpu_milli)] = 0
    memory: Annotated[int, BeforeValidator(memory_mib)] = 0
    disk: Annotated[int, BeforeValidator(disk_mib)] = 0
    gpus: Annotated[tuple[int, int], BeforeValidator(gpus_and_slices)] = (0, GPU_SLICES)
    duration: Annotated[int | None, BeforeValidator(duration_ms)] = None
    constraints: Annotated[list[ConstraintSpec], at_most(LIMITS.constraints_per_group_max)] = Field(
        default_factory=list
    )
    spread_over: Name | None = None
    different_machines: bool = False
    prefer: Annotated[list[PreferenceSpec], at_most(LIMITS.constraints_per_group_max)] = Field(
        default_factory=list
    )
    patience: Annotated[int | None, BeforeValidator(duration_ms)] = 0


class GroupSpec(ProgramFields, ShapeFields):
    """Tasks of one shape."""


class StepWorkSpec(Part):
    """Work that is counted in steps."""

    kind: Name
    steps: Annotated[int, Field(ge=1, le=LIMITS.steps_max)]
    weight: Annotated[int, Field(ge=1, le=LIMITS.work_weight_max)] = 1


class WorkersSpec(Part):
    """How many workers an elastic job wants, and how many it may have."""

    wanted: Annotated[int, Field(ge=1, le=LIMITS.tasks_per_job_max)]
    at_most: Annotated[int, Field(ge=1, le=LIMITS.tasks_per_job_max)]


class PhaseSpec(Part):
    """Activities that the workers of an elastic job process."""

    name: Name
    activities: Annotated[int, Field(ge=1, le=LIMITS.activities_max)]
    duration: Annotated[int, BeforeValidator(duration_ms), Field(ge=1)]
    after: Name | None = None


class JobFields(Part):
    """A job."""

    name: Name
    scheduler: Name
    tenant: Name = "default"
    precedence: Annotated[int, Field(ge=-INT4_MAX, le=INT4_MAX)] = 0
    minimum: Annotated[int | None, BeforeValidator(_minimum)] = 0
    """None means all tasks."""
    groups: Annotated[list[GroupSpec], Field(min_length=1), at_most(LIMITS.task_groups_per_job_max)]
    work: StepWorkSpec | None = None
    preemptible: bool = True
    workers: WorkersSpec | None = None
    phases: Annotated[list[PhaseSpec], at_most(LIMITS.phases_per_job_max)] = Field(
        default_factory=list
    )


PARTS: Mapping[str, type[Part]] = {
    "": JobFields,
    "groups": GroupSpec,
    "constraints": ConstraintSpec,
    "prefer": PreferenceSpec,
    "work": StepWorkSpec,
    "workers": WorkersSpec,
    "phases": PhaseSpec,
    **PROGRAM_PARTS,
}
"""The model of a field's mapping or list items, by the field's name; empty for the job."""


def read_specs(path: Path) -> list[JobSpec]:
    """Return the jobs of a YAML file. Raises BadInput."""
    return parse_specs(content_of(path), str(path))


def content_of(path: Path) -> bytes:
    """Return what is in a file. Raises BadInput if that cannot be read or is too long."""
    try:
        with path.open("rb") as file:
            content = file.read(LIMITS.file_bytes_max + 1)
    except OSError as error:
        said = error.strerror or str(error)
        raise BadInput(f"it cannot be read: {said}", file=str(path)) from None
    if len(content) > LIMITS.file_bytes_max:
        raise BadInput(f"it is longer than {LIMITS.file_bytes_max:,} bytes", file=str(path))
    return content


def parse_specs(text: str | bytes, file: str) -> list[JobSpec]:
    """Return the jobs of a YAML text; `file` is its name in errors. Raises BadInput."""
    found = values_in(text, file)
    if not found:
        raise BadInput("there is no job in it", file=file)
    if len(found) > LIMITS.jobs_per_submission_max:
        document, _, root = found[LIMITS.jobs_per_submission_max]
        raise document.reject(
            root,
            f"there are {len(found)} jobs in it, more than {LIMITS.jobs_per_submission_max}, which"
            " is as many as one submission takes; split it",
            root=len(root),
        )
    return [job_of(document, value, root) for document, value, root in found]


def values_in(text: str | bytes, file: str) -> list[tuple[Document, object, Steps]]:
    """Return the values of all documents of a YAML text, or of their lists, and their places."""
    if isinstance(text, bytes):
        text = _decoded(text, file)
    return [
        (document, value, root)
        for document in documents(text, file)
        for root, value in _jobs_in(document)
    ]


def _decoded(content: bytes, file: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadInput("this is not UTF-8 text", file=file, line=line) from None


def _jobs_in(document: Document) -> Iterator[tuple[Steps, object]]:
    if isinstance(document.value, list):
        yield from (((at,), value) for at, value in enumerate(document.value))
    elif document.value is not None:
        yield (), document.value


def rejected(
    document: Document,
    root: Steps,
    error: ValidationError,
    parts: Mapping[str, type[Part]],
    named_from: int,
) -> BadInput:
    """Return the first of the errors that pydantic found, with its line and field.

    A missing field is often a misspelt one: errors in present fields go first. The field's name
    leaves out `named_from` steps.
    """
    first = min(
        error.errors(include_url=False),
        key=lambda problem: (problem["type"] == "missing", document.line((*root, *problem["loc"]))),
    )
    return document.reject((*root, *first["loc"]), _sentence(first, parts), root=named_from)


def job_of(
    document: Document, value: object, root: Steps, *, named_from: int | None = None
) -> JobSpec:
    """Turn the values of a job, which stand at `root`, into a spec. Raises BadInput.

    Names of fields in errors leave out `named_from` steps; if it is None, those of `root`.
    """
    left_out = len(root) if named_from is None else named_from
    try:
        job = JobFields.model_validate(value)
    except ValidationError as error:
        raise rejected(document, root, error, PARTS, left_out) from None

    def reject(steps: Steps, sentence: str) -> BadInput:
        return document.reject((*root, *steps), sentence, root=left_out)

    workers = _workers(job, reject)
    tasks = sum(group.tasks for group in job.groups) if job.workers is None else job.workers.wanted
    if tasks > LIMITS.tasks_per_job_max:
        raise reject(
            ("groups",), f"the job has {tasks} tasks, more than {LIMITS.tasks_per_job_max}"
        )
    if job.minimum is not None and job.minimum > tasks:
        raise reject(("minimum",), f"{job.minimum} is more than the job's {tasks} tasks")
    for at, group in enumerate(job.groups):
        if not (group.cpu or group.memory or group.disk or group.gpus[0]):
            raise reject(("groups", at), "its tasks ask for nothing; say how much cpu or memory")
        if group.patience and not group.prefer:
            raise reject(("groups", at, "patience"), "it prefers nothing to wait for; say `prefer`")
        if job.work is not None and group.duration is not None:
            raise reject(
                ("groups", at, "duration"), "a job in steps ends after the last one; leave this out"
            )
    programs = [_program(job, at, reject) for at in range(len(job.groups))]
    spec = JobSpec(
        name=job.name,
        scheduler=job.scheduler,
        tenant=job.tenant,
        precedence=job.precedence,
        minimum=tasks if job.minimum is None else job.minimum,
        groups=tuple(
            _group(group, group.tasks if workers is None else tasks, program)
            for group, program in zip(job.groups, programs, strict=True)
        ),
        work=None if job.work is None else StepWork(**job.work.model_dump()),
        preemptible=job.preemptible,
        workers=workers,
    )
    size = len(_JSON.encode(spec_to_wire(spec)).encode())
    if size > LIMITS.wire_bytes_max:
        raise reject(
            (),
            f"the job is {size:,} bytes long as it is stored, more than {LIMITS.wire_bytes_max:,}",
        )
    return spec


def _workers(job: JobFields, reject: Reject) -> Workers | None:
    """Return what makes a job elastic; None if it is not. Raises BadInput."""
    said = job.workers
    if said is None:
        if job.phases:
            raise reject(("phases",), "only a job with workers has phases")
        return None
    if said.at_most < said.wanted:
        wanted = f"the {said.wanted} workers that are wanted"
        raise reject(("workers", "at_most"), f"{said.at_most} is less than {wanted}")
    if len(job.groups) > 1:
        raise reject(("groups", 1), "workers have one shape, so there is one group")
    if job.work is not None:
        raise reject(
            ("work",), "a job in steps is a gang and has no workers; leave one of them out"
        )
    for field in ("tasks", "spread_over", "different_machines"):
        if field in job.groups[0].model_fields_set:
            why = "their number is `wanted`" if field == "tasks" else "they may run anywhere"
            raise reject(("groups", 0, field), f"these are workers, and {why}; leave this out")
    if job.phases and job.groups[0].duration is not None:
        ends = "a job with phases ends with the last activity; leave this out"
        raise reject(("groups", 0, "duration"), ends)
    phases = tuple(Phase(it.name, it.activities, it.duration, it.after) for it in job.phases)
    if (wrong := problem_with_phases(phases)) is not None:
        at, field, sentence = wrong
        raise reject(("phases", at, field), sentence)
    return Workers(said.at_most, phases)


def _program(job: JobFields, at: int, reject: Reject) -> Program | None:
    """Return the program of one of a job's groups. Raises BadInput."""
    group = job.groups[at]
    program = program_of(group, ("groups", at), reject)
    if program is not None and group.duration is not None:
        ends = "a task ends when its program does; leave this out, or write `timeout`"
        raise reject(("groups", at, "duration"), ends)
    if program is not None and job.phases:
        ends = "a job with phases ends with the last activity, so its workers run no program"
        raise reject(("groups", at), ends)
    return program


def _group(group: GroupSpec, tasks: int, program: Program | None) -> TaskGroup:
    return TaskGroup(
        tasks=tasks,
        cpu_milli=group.cpu,
        memory_mib=group.memory,
        disk_mib=group.disk,
        gpus=group.gpus[0],
        gpu_slices=group.gpus[1],
        duration_ms=group.duration,
        constraints=tuple(map(constraint_of, group.constraints)),
        spread_over=group.spread_over,
        different_machines=group.different_machines,
        program=program,
        preferences=tuple(Preference(constraint_of(one), one.weight) for one in group.prefer),
        patience_ms=group.patience or 0,
    )


def _sentence(problem: ErrorDetails, parts: Mapping[str, type[Part]]) -> str:
    """Return what pydantic found as a sentence of our own."""
    kind, value, context = problem["type"], problem["input"], problem.get("ctx", {})
    if kind == "extra_forbidden":
        known = parts[_list_above(problem["loc"])].model_fields
        word = str(problem["loc"][-1])
        if word == "pipeline":
            return "this is a pipeline, and no job; type omega pipeline submit"
        return f"there is no such field{did_you_mean(word, known)} (known: {', '.join(known)})"
    if kind == "missing":
        return "this field must be given"
    if value is None:
        return "it has no value"
    if kind == "value_error":
        return str(context["error"])
    return _MUST_BE[kind](value, context)


def _list_above(loc: Sequence[str | int]) -> str:
    """Return the name of the list in which the part stands; empty for the job itself."""
    return next((step for step in reversed(loc[:-1]) if isinstance(step, str)), "")


_MUST_BE: Mapping[str, Callable[[object, Mapping[str, Any]], str]] = {
    "int_type": lambda value, _: f"{shown(value)} is not a whole number",
    "string_type": lambda value, _: f"{shown(value)} is not text; put it in quotes",
    "bool_type": lambda value, _: f"{shown(value)} is not true or false",
    "list_type": lambda value, _: f"{shown(value)} is not a list",
    "dict_type": lambda value, _: f"{shown(value)} is not a mapping of names to texts",
    "model_type": lambda value, _: f"{shown(value)} is not a mapping of fields",
    "literal_error": lambda value, said: f"{shown(value)} is not one of {said['expected']}",
    "greater_than_equal": lambda value, said: f"{shown(value)} is less than {said['ge']}",
    "less_than_equal": lambda value, said: f"{shown(value)} is more than {said['le']}",
    "too_short": lambda _, said: f"it must hold at least {said['min_length']}",
}
"""The sentence for each type of pydantic's errors; the fields above can cause no others."""
