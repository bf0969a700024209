"""The wire form of a job: JSON types that a store keeps and another process reads.

Goal     One way to write a job down, so that every store and every process reads the same job.
Promise  Lossless: `spec_from_wire(spec_to_wire(spec)) == spec`. Every key is always there, so that
         SQL may read one without asking whether it exists; but for `work`, `preemptible`,
         `workers` and a group's `program`, which jobs of earlier versions lack, and for a group's
         `preferences` and `patience_ms`, which only groups with preferences have.
Source   docs/decisions/0004-the-job-queue.md.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from omega.errors import BadInput
from omega.model.elastic import Phase, Workers
from omega.model.jobs import Constraint, JobSpec, Operator, Preference, StepWork, TaskGroup
from omega.model.program_wire import program_from_wire, program_to_wire
from omega.model.wire_values import many, text, truth, whole


def spec_to_wire(spec: JobSpec) -> dict[str, object]:
    """Return the wire form of a job: dicts, lists, texts, numbers, booleans and None."""
    return {
        "name": spec.name,
        "scheduler": spec.scheduler,
        "tenant": spec.tenant,
        "precedence": spec.precedence,
        "minimum": spec.minimum,
        "groups": [_group_to_wire(group) for group in spec.groups],
        "work": None if spec.work is None else asdict(spec.work),
        "preemptible": spec.preemptible,
        "workers": None if spec.workers is None else _workers_to_wire(spec.workers),
    }


def spec_from_wire(wire: Mapping[str, Any]) -> JobSpec:
    """Return the job of a wire form.

    Raises BadInput for anything that `spec_to_wire` cannot have written.
    """
    try:
        return JobSpec(
            name=text(wire["name"]),
            scheduler=text(wire["scheduler"]),
            tenant=text(wire["tenant"]),
            precedence=whole(wire["precedence"]),
            minimum=whole(wire["minimum"]),
            groups=tuple(map(_group_from_wire, many(wire["groups"]))),
            work=_work_from_wire(wire.get("work")),
            preemptible=truth(wire.get("preemptible", True)),
            workers=_workers_from_wire(wire.get("workers")),
        )
    except (AssertionError, KeyError, TypeError, ValueError) as error:
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise BadInput(f"this is not the wire form of a job ({said})") from error


def shape_from_wire(wire: Mapping[str, Any]) -> TaskGroup:
    """Return a task group of its wire form, to which its duration and program need not belong.

    Raises BadInput for anything that a job cannot have.
    """
    try:
        return _group_from_wire(wire)
    except (AttributeError, KeyError, TypeError, ValueError, AssertionError) as error:
        raise BadInput(f"this is not the wire form of a task group ({error})") from error


def _group_to_wire(group: TaskGroup) -> dict[str, object]:
    wire: dict[str, object] = {
        "tasks": group.tasks,
        "cpu_milli": group.cpu_milli,
        "memory_mib": group.memory_mib,
        "disk_mib": group.disk_mib,
        "gpus": group.gpus,
        "gpu_slices": group.gpu_slices,
        "duration_ms": group.duration_ms,
        "constraints": [_constraint_to_wire(constraint) for constraint in group.constraints],
        "spread_over": group.spread_over,
        "different_machines": group.different_machines,
        "program": None if group.program is None else program_to_wire(group.program),
    }
    if group.preferences:
        wire["preferences"] = [
            {**_constraint_to_wire(one.constraint), "weight": one.weight}
            for one in group.preferences
        ]
        wire["patience_ms"] = group.patience_ms
    return wire


def _group_from_wire(wire: Mapping[str, Any]) -> TaskGroup:
    return TaskGroup(
        tasks=whole(wire["tasks"]),
        cpu_milli=whole(wire["cpu_milli"]),
        memory_mib=whole(wire["memory_mib"]),
        disk_mib=whole(wire["disk_mib"]),
        gpus=whole(wire["gpus"]),
        gpu_slices=whole(wire["gpu_slices"]),
        duration_ms=None if wire["duration_ms"] is None else whole(wire["duration_ms"]),
        constraints=tuple(map(_constraint_from_wire, many(wire["constraints"]))),
        spread_over=None if wire["spread_over"] is None else text(wire["spread_over"]),
        different_machines=truth(wire["different_machines"]),
        program=None if wire.get("program") is None else program_from_wire(wire["program"]),
        preferences=tuple(
            Preference(_constraint_from_wire(one), whole(one["weight"]))
            for one in many(wire.get("preferences", []))
        ),
        patience_ms=whole(wire.get("patience_ms", 0)),
    )


def _work_from_wire(wire: Mapping[str, Any] | None) -> StepWork | None:
    if wire is None:
        return None
    return StepWork(
        kind=text(wire["kind"]), steps=whole(wire["steps"]), weight=whole(wire.get("weight", 1))
    )


def _workers_to_wire(workers: Workers) -> dict[str, object]:
    return {"at_most": workers.at_most, "phases": [asdict(phase) for phase in workers.phases]}


def _workers_from_wire(wire: Mapping[str, Any] | None) -> Workers | None:
    if wire is None:
        return None
    return Workers(whole(wire["at_most"]), tuple(map(phase_from_wire, many(wire["phases"]))))


def phase_from_wire(wire: Mapping[str, Any]) -> Phase:
    """Return a phase of its wire form; raise KeyError, TypeError, ValueError or AssertionError."""
    return Phase(
        name=text(wire["name"]),
        activities=whole(wire["activities"]),
        duration_ms=whole(wire["duration_ms"]),
        after=None if wire["after"] is None else text(wire["after"]),
    )


def _constraint_to_wire(constraint: Constraint) -> dict[str, object]:
    return {
        "attribute": constraint.attribute,
        "operator": constraint.operator.value,
        "values": list(constraint.values),
    }


def _constraint_from_wire(wire: Mapping[str, Any]) -> Constraint:
    return Constraint(
        attribute=text(wire["attribute"]),
        operator=Operator(wire["operator"]),
        values=tuple(map(text, many(wire["values"]))),
    )
