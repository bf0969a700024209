"""Jobs in the JSON form that `omega.submit_jobs` reads, and the kinds of a machine's amounts.

The kinds are in the order of the columns of `omega.machine`.
"""

from collections.abc import Mapping
from typing import Any

Wire = dict[str, Any]

DEVICES = 8
KINDS = ("cpu_milli", "memory_mib", "disk_mib", *(f"gpu_{n}" for n in range(DEVICES)))
UNLIMITED = 2**58


def a_group(**changed: object) -> Wire:
    """Return a group of one task that asks for one core."""
    defaults: Wire = {
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
    return {**defaults, **changed}


RESTART: Wire = {"attempts": 0, "within_ms": 1, "delay_ms": 0}


def a_program(**changed: object) -> Wire:
    """Return a program of one word."""
    defaults: Wire = {
        "command": ["true"],
        "env": {},
        "env_file": None,
        "image": None,
        "user": None,
        "working_dir": None,
        "timeout_ms": None,
        "stop_signal": "TERM",
        "stop_grace_ms": 0,
        "restart": RESTART,
    }
    return {**defaults, **changed}


def a_constraint(**changed: object) -> Wire:
    """Return a constraint with one value."""
    return {"attribute": "zone", "operator": "in", "values": ["a"], **changed}


def a_job(*groups: Wire, **changed: object) -> Wire:
    """Return a job; without groups, it has one group of one task."""
    defaults: Wire = {
        "name": "job",
        "scheduler": "batch",
        "tenant": "ann",
        "precedence": 0,
        "minimum": 0,
        "groups": list(groups) or [a_group()],
        "work": None,
    }
    return {**defaults, **changed}


def tasks_of(wire: Mapping[str, Any]) -> int:
    """Count the tasks of a job."""
    return sum(int(group["tasks"]) for group in wire["groups"])


def demand_of(wire: Mapping[str, Any], task: int) -> tuple[int, ...]:
    """Return the amounts that a task asks for, its GPUs on the first devices."""
    for group in wire["groups"]:
        if task < group["tasks"]:
            devices = [group["gpu_slices"]] * group["gpus"] + [0] * (DEVICES - group["gpus"])
            return (group["cpu_milli"], group["memory_mib"], group["disk_mib"], *devices)
        task -= group["tasks"]
    raise AssertionError("the job has no such task")
