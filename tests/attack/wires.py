"""Jobs in the wire form, written down by hand: what `omega.submit_jobs` is to understand.

The kinds of a machine's amounts, too, are told once, here, in the order of the table's columns.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Wire = dict[str, Any]

DEVICES = 8
KINDS = ("cpu_milli", "memory_mib", "disk_mib", *(f"gpu_{n}" for n in range(DEVICES)))
UNLIMITED = 2**58


def a_group(**changed: object) -> Wire:
    """One task of a core."""
    plain: Wire = {
        "tasks": 1,
        "cpu_milli": 1_000,
        "memory_mib": 0,
        "disk_mib": 0,
        "gpus": 0,
        "gpu_slices": 1_000,
        "duration_ms": None,
        "constraints": [],
        "spread_over": None,
        "different_machines": False,
    }
    return {**plain, **changed}


def a_constraint(**changed: object) -> Wire:
    """One that names one value."""
    return {"attribute": "zone", "operator": "in", "values": ["a"], **changed}


def a_job(*groups: Wire, **changed: object) -> Wire:
    """A job of one group with one task, unless told otherwise."""
    plain: Wire = {
        "name": "job",
        "scheduler": "batch",
        "tenant": "ann",
        "precedence": 0,
        "minimum": 0,
        "groups": list(groups) or [a_group()],
        "training": None,
    }
    return {**plain, **changed}


def tasks_of(wire: Mapping[str, Any]) -> int:
    """Count the tasks of a job."""
    return sum(int(group["tasks"]) for group in wire["groups"])


def demand_of(wire: Mapping[str, Any], task: int) -> tuple[int, ...]:
    """Return what a task asks for: a row of amounts, its GPUs on the first devices."""
    for group in wire["groups"]:
        if task < group["tasks"]:
            devices = [group["gpu_slices"]] * group["gpus"] + [0] * (DEVICES - group["gpus"])
            return (group["cpu_milli"], group["memory_mib"], group["disk_mib"], *devices)
        task -= group["tasks"]
    raise AssertionError("the job has no such task")


def cost_of(amounts: Sequence[int]) -> list[int]:
    """Return what amounts are charged at: CPU, memory, disk, slices of all devices; no jobs."""
    return [*amounts[:3], sum(amounts[3:]), 0]
