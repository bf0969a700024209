"""What a task of a group requires of a machine, rule by rule, on all machines at once.

Goal     One list from which the funnel, the nearest machines and the rules of one machine follow.
Promise  A machine meets all requirements if and only if one more task of the group can be placed
         there now: the machines of `omega.placement.feasibility.room`.
Source   omega/placement/feasibility.py, whose rules these are, one by one.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np

from omega.cell.view import View
from omega.model.arrays import Amounts, Counts, Mask, every_kind
from omega.model.jobs import Constraint, LeasedJob, Operator, TaskGroup
from omega.model.machines import MachineState
from omega.model.resources import GPU_SLICES, Kind
from omega.placement.devices import free_devices, gpus_left
from omega.placement.diagnosis import constraint_text
from omega.placement.feasibility import meets
from omega.reports.machines import state_name
from omega.reports.wording import amounts, things

GPU = "gpu"
"""The kind of GPUs, whichever their slots."""


class Stage(Enum):
    """What a requirement is about, in the order in which machines drop out."""

    ATTRIBUTE = "attribute"
    CONSTRAINT = "constraint"
    CAPACITY = "capacity"
    OPEN = "open"
    ROOM = "room"
    APART = "apart"


@dataclass(frozen=True, eq=False)
class Requirement:
    """One rule, and which machines meet it."""

    stage: Stage
    what: str
    """The rule as a phrase: zone in a|b; 4 cores of capacity."""
    met: Mask
    """(machines,)"""
    kind: str | None = None
    """The kind of resource, for capacity and room ..."""
    wanted: int = 0
    """... the amount that a task asks for ..."""
    there: Counts | None = None
    """... and what each machine has of it, or has free: (machines,)."""
    said: tuple[str, ...] = ()
    """Of each machine, what is there instead of an amount; empty where there is an amount."""

    def found(self, at: int) -> str:
        """Return what the machine in this row has, as a phrase."""
        if self.there is None:
            return self.said[at]
        free = " free" if self.stage is Stage.ROOM else ""
        return f"{measured(self.kind, int(self.there[at]))}{free}"

    @property
    def shortage(self) -> Counts:
        """How much each machine lacks of the amount: (machines,); 0 for rules without amounts."""
        if self.there is None:
            return np.zeros(len(self.met), dtype=np.int64)
        return np.maximum(self.wanted - self.there, 0)


def measured(kind: str | None, amount: int) -> str:
    """Return an amount of a kind as people write it; `GPU` counts whole GPUs or parts of one."""
    if kind == GPU:
        return things(amount, "GPU")
    assert kind is not None
    return amounts({kind: amount})


def requirements_of(view: View, job: LeasedJob, group: int) -> list[Requirement]:
    """Return all that a task of a group requires of a machine, in the order of `Stage`."""
    asked = job.spec.groups[group]
    rules = [
        *_of_attributes(view, asked),
        *_of_amounts(view.capacity, asked, Stage.CAPACITY),
        _open(view),
        *_of_amounts(view.free, asked, Stage.ROOM),
    ]
    if asked.different_machines:
        rules.append(_apart(view, job, group))
    return rules


def _of_attributes(view: View, asked: TaskGroup) -> Iterator[Requirement]:
    for constraint in asked.constraints:
        values = _values(view, constraint.attribute)
        if constraint.operator in (Operator.IN, Operator.EXISTS):
            has = meets(view, Constraint(constraint.attribute, Operator.EXISTS))
            yield Requirement(Stage.ATTRIBUTE, f"has {constraint.attribute}", has, said=values)
        if constraint.operator is not Operator.EXISTS:
            met = meets(view, constraint)
            yield Requirement(Stage.CONSTRAINT, constraint_text(constraint), met, said=values)
    spread = asked.spread_over
    if spread is not None:
        # That the cell has the attribute is all that placement asks for.
        is_there = np.full(len(view), view.catalogue.column(spread) is not None)
        yield Requirement(
            Stage.ATTRIBUTE, f"the cell has {spread}", is_there, said=_values(view, spread)
        )


def _values(view: View, attribute: str) -> tuple[str, ...]:
    column = view.catalogue.column(attribute)
    if column is None:
        return (f"no {attribute}",) * len(view)
    names = [f"no {attribute}", *(f"{attribute} {it}" for it in view.catalogue.values[column])]
    return tuple(names[code] for code in view.codes[:, column].tolist())


def _of_amounts(have: Amounts, asked: TaskGroup, stage: Stage) -> Iterator[Requirement]:
    of_what = "free" if stage is Stage.ROOM else "of capacity"
    for kind in np.flatnonzero(asked.demand).tolist():
        name, wanted, there = Kind(kind).column, int(asked.demand[kind]), have[:, kind]
        what = f"{measured(name, wanted)} {of_what}"
        yield Requirement(stage, what, there >= wanted, name, wanted, there)
    if asked.gpus:
        devices = free_devices(have, np.arange(len(have)))
        there = gpus_left(devices, asked.gpu_slices).sum(axis=1)
        part = "" if asked.gpu_slices == GPU_SLICES else f" with {asked.gpu_slices} slices"
        what = f"{things(asked.gpus, 'GPU')}{part} {of_what}"
        yield Requirement(stage, what, there >= asked.gpus, GPU, asked.gpus, there)


def _open(view: View) -> Requirement:
    within = every_kind(view.free >= 0)
    said = tuple(
        state_name(state) if state != MachineState.OPEN or fits else "used above its capacity"
        for state, fits in zip(view.state.tolist(), within.tolist(), strict=True)
    )
    return Requirement(Stage.OPEN, "is open", view.open.copy(), said=said)


def _apart(view: View, job: LeasedJob, group: int) -> Requirement:
    runs = np.zeros(len(view), dtype=np.bool_)
    taken = view.where(job.machines_of(group)[0])
    runs[taken[taken >= 0]] = True
    said = tuple("runs a task of it" if each else "runs no task of it" for each in runs.tolist())
    return Requirement(Stage.APART, "runs no other task of the group", ~runs, said=said)
