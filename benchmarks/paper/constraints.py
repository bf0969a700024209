"""Constraints for a cell that has none: jobs that want certain machines, the same or each its own.

The paper's trace-driven simulator obeys the placement constraints of Google's jobs. Of these the
published data has one kind alone: that tasks of a job go to different machines.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from omega.model.jobs import Constraint, Operator, TaskGroup
from omega.workload.arrivals import Arrival, Workload

LOT: Final = "lot"
"""The attribute by which machines are told apart."""


def constrained(
    workload: Workload, one_in: int, rng: np.random.Generator, *, alike: bool
) -> Workload:
    """Return the workload with every job constrained to one machine in so many.

    All want the same machines, or each job those of a lot of its own choice.
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
    """Return the workload with tasks of one job on whatever machines, be they the same."""

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
