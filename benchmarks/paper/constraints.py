"""Constraints for a cell that has none: jobs are limited to a part of the machines.

The paper's trace-driven simulator obeys the placement constraints of Google's jobs. The published
data has only one kind of these: the tasks of a job go to different machines.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from omega.model.jobs import Constraint, Operator, TaskGroup
from omega.workload.arrivals import Arrival, Workload

LOT: Final = "lot"
"""The attribute that constraints name: the number of the machine's lot."""


def constrained(
    workload: Workload, one_in: int, rng: np.random.Generator, *, alike: bool
) -> Workload:
    """Return the workload with every job constrained to a lot, one machine in `one_in`.

    With `alike`, all jobs have the same lot; otherwise each job's lot is drawn at random.
    """
    lots = rng.integers(one_in, size=len(workload.machines))
    wanted = rng.integers(1 if alike else one_in, size=len(workload.arrivals))
    attributes = {**workload.machines.attributes, LOT: [str(lot) for lot in lots]}
    return replace(
        workload,
        machines=replace(workload.machines, attributes=attributes),
        arrivals=tuple(
            _each_group(arrival, partial(_in_lot, str(lot)))
            for arrival, lot in zip(workload.arrivals, wanted, strict=True)
        ),
    )


def anywhere(workload: Workload) -> Workload:
    """Return the workload without constraints; tasks of one job may share a machine."""

    def freed(group: TaskGroup) -> TaskGroup:
        return replace(group, constraints=(), different_machines=False)

    arrivals = tuple(_each_group(arrival, freed) for arrival in workload.arrivals)
    return replace(workload, arrivals=arrivals)


def _in_lot(lot: str, group: TaskGroup) -> TaskGroup:
    wants = Constraint(LOT, Operator.IN, (lot,))
    return replace(group, constraints=(*group.constraints, wants))


def _each_group(arrival: Arrival, change: Callable[[TaskGroup], TaskGroup]) -> Arrival:
    groups = tuple(change(group) for group in arrival.spec.groups)
    return replace(arrival, spec=replace(arrival.spec, groups=groups))
