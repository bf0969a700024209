"""Allocation problems as JSON files: the jobs of one moment and the GPUs that they share.

Goal     Read what researchers exchange, and say in one sentence what is wrong with it.
Promise  A Problem that can be solved, or BadInput with file and field. What the solver could not
         make sense of is refused: negative rates, unknown types, gangs larger than the cluster.
Source   The format of the instances that the tests solve; README.md of tests/samples/gavel.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from omega.errors import BadInput, shortened
from omega.workload.text_file import read_text
from schedulers.ml_gpu.problem import Problem
from schedulers.ml_gpu.throughputs import GPUS_MAX, Kind, PairRates, a_rate

# Limits that no cluster meets. Within them a solver's tolerance of 1e-9 still says something.
Rate = Annotated[float, AfterValidator(a_rate)]
Weight = Annotated[float, Field(ge=1e-6, le=1e6, allow_inf_nan=False)]
"""A weight, or dollars per hour."""
Steps = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True)


class JobType(_Part):
    """A kind of job."""

    model: str
    scale_factor: Annotated[int, Field(ge=1, le=GPUS_MAX)]
    throughput: list[Rate]
    """Steps/s of the whole gang, on each of the worker types."""


class Jobs(_Part):
    """The jobs, column by column."""

    type: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
    weight: list[Weight]
    total_steps: list[Annotated[Steps, Field(gt=0)]]
    steps_remaining: list[Steps]
    seconds_since_arrival: list[Seconds]
    entity: list[Annotated[int, Field(ge=0)]] | None = None
    seconds_left: list[Seconds | None] | None = None
    """Until each job's deadline; null without one."""


class Instance(_Part):
    """One file."""

    name: str = ""
    worker_types: Annotated[list[str], Field(min_length=1)]
    num_workers: dict[str, Annotated[int, Field(ge=0, le=GPUS_MAX)]]
    instance_costs_per_hour: dict[str, Weight] | None = None
    job_types: Annotated[list[JobType], Field(min_length=1)]
    jobs: Jobs
    entity_weights: Annotated[list[Weight], Field(min_length=1)] = [1.0]
    entity_policies: list[Literal["fairness", "fifo"]] | None = None
    """How each entity serves its own; all fairly if not given."""

    @property
    def kinds(self) -> Sequence[Kind]:
        """Model and GPUs of each kind of job."""
        return [(one.model, one.scale_factor) for one in self.job_types]

    def problem(self, pairs: PairRates | None = None) -> Problem:
        """Return the instance as arrays."""
        jobs, entities = self.jobs, len(self.entity_weights)
        policies = self.entity_policies or ["fairness"] * entities
        prices = self.instance_costs_per_hour
        left = jobs.seconds_left
        return Problem(
            types=tuple(self.worker_types),
            gpus=np.array([self.num_workers[name] for name in self.worker_types], np.int64),
            table=np.array([one.throughput for one in self.job_types]),
            gang=np.array([one.scale_factor for one in self.job_types], np.int64),
            kind=np.array(jobs.type, np.intp),
            weight=np.array(jobs.weight),
            total_steps=np.array(jobs.total_steps),
            remaining_steps=np.array(jobs.steps_remaining),
            age_s=np.array(jobs.seconds_since_arrival),
            entity=np.array(jobs.entity or (), np.intp),
            entity_weight=np.array(self.entity_weights),
            entity_is_fifo=np.array([policy == "fifo" for policy in policies]),
            cost_per_hour=None
            if prices is None
            else np.array([prices[name] for name in self.worker_types]),
            due_s=None
            if left is None
            else np.array([np.inf if one is None else one for one in left]),
            pairs=pairs,
        )


def read_instance(path: Path) -> Instance:
    """Read a file; raise BadInput that says what is wrong with it and where."""
    try:
        instance = Instance.model_validate(json.loads(read_text(path)))
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        field = ".".join(str(step) for step in problem["loc"]) or None
        value = "" if problem["type"] == "missing" else f"{shortened(repr(problem['input']))}: "
        raise BadInput(f"{value}{problem['msg']}", file=str(path), field=field) from None
    except (ValueError, RecursionError) as error:
        raise BadInput(f"it is no JSON: {error}", file=str(path)) from None
    for field, sentence in _contradictions(instance):
        raise BadInput(sentence, file=str(path), field=field)
    return instance


def _contradictions(instance: Instance) -> Iterator[tuple[str, str]]:
    """Yield field and sentence of each thing that fits its field and nothing else."""
    types = instance.worker_types
    if len(set(types)) < len(types):
        yield "worker_types", "a type is named twice"
    yield from _types(instance, set(types))
    jobs = instance.jobs
    for field, column in jobs:
        if isinstance(column, list) and len(column) != len(jobs.type):
            yield f"jobs.{field}", f"it has {len(column)} entries for {len(jobs.type)} jobs"
    if instance.entity_policies is not None and len(instance.entity_policies) != len(
        instance.entity_weights
    ):
        yield "entity_policies", "it has not as many entries as entity_weights"
    for job, kind in enumerate(jobs.type):
        yield from _job(instance, job, kind)


def _types(instance: Instance, known: set[str]) -> Iterator[tuple[str, str]]:
    prices = instance.instance_costs_per_hour
    named: list[tuple[str, dict[str, Any]]] = [("num_workers", instance.num_workers)]
    if prices is not None:
        named.append(("instance_costs_per_hour", prices))
    for field, values in named:
        for name in values.keys() - known:
            yield f"{field}.{name}", "there is no such type in worker_types"
        for name in sorted(known - values.keys()):
            yield field, f"it says nothing of type {shortened(name)!r}"
    if not any(instance.num_workers.values()):
        yield "num_workers", "there is no GPU at all"
    for row, one in enumerate(instance.job_types):
        if len(one.throughput) != len(instance.worker_types):
            yield (
                f"job_types.{row}.throughput",
                f"it has {len(one.throughput)} rates for {len(instance.worker_types)} types",
            )


def _job(instance: Instance, job: int, kind: int) -> Iterator[tuple[str, str]]:
    jobs = instance.jobs
    if kind >= len(instance.job_types):
        yield f"jobs.type.{job}", f"there is no job type {kind}"
        return
    one = instance.job_types[kind]
    gpus = sum(instance.num_workers.values())
    if one.scale_factor > gpus:
        yield f"jobs.type.{job}", f"its gang of {one.scale_factor} is larger than all {gpus} GPUs"
    runs = zip(instance.worker_types, one.throughput, strict=True)
    if not any(rate > 0 and instance.num_workers[name] > 0 for name, rate in runs):
        yield f"jobs.type.{job}", f"{shortened(one.model)} runs on no type that there is"
    if jobs.steps_remaining[job] > jobs.total_steps[job]:
        yield f"jobs.steps_remaining.{job}", "more steps remain than there are in total"
    if jobs.entity is not None and jobs.entity[job] >= len(instance.entity_weights):
        yield f"jobs.entity.{job}", f"there is no entity {jobs.entity[job]}"
