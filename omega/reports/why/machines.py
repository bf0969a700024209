"""Which machines drop out where, which come nearest, and what one machine answers rule by rule.

Goal     Show in a few lines of figures why no machine of thousands takes a task.
Promise  The funnel's last figure is the number of machines that take a task now. Machines that are
         gone are not counted. Of the nearest machines each is told with all that it lacks.
Source   Filters of the Kubernetes and Nomad schedulers, with their counts; docs/decisions/0054.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from omega.cell.view import View
from omega.model.machines import MachineState
from omega.reports.why.requirements import Requirement, Stage, measured

NEAREST_MAX: Final = 5
FIXED: Final = frozenset({Stage.ATTRIBUTE, Stage.CONSTRAINT, Stage.CAPACITY})
"""What a machine lacks whatever ends on it."""


@dataclass(frozen=True)
class FunnelStep:
    """How many machines are left after a rule and all before it."""

    what: str
    left: int


@dataclass(frozen=True)
class NearMachine:
    """A machine that does not take a task, and what it lacks."""

    name: str
    lacks: tuple[str, ...]


@dataclass(frozen=True)
class MachineRule:
    """One rule's answer for one machine."""

    stage: str
    what: str
    holds: bool
    found: str


def funnel(view: View, rules: Sequence[Requirement]) -> list[FunnelStep]:
    """Return how many machines are left after each rule."""
    left = view.state != MachineState.GONE
    steps = [FunnelStep("machines in all", int(left.sum()))]
    for rule in rules:
        left = left & rule.met
        steps.append(FunnelStep(rule.what, int(left.sum())))
    return steps


def nearest(view: View, rules: Sequence[Requirement]) -> list[NearMachine]:
    """Return the machines that lack least.

    What no freed room can change, attributes and sizes, counts most; then the number of rules, then
    the amounts.
    """
    fixed, unmet = np.zeros((2, len(view)), dtype=np.int64)
    short = np.zeros(len(view), dtype=np.float64)
    for rule in rules:
        unmet += ~rule.met
        if rule.stage in FIXED:
            fixed += ~rule.met
        if rule.wanted:
            short += rule.shortage / rule.wanted
    there = np.flatnonzero((view.state != MachineState.GONE) & (unmet > 0))
    order = there[np.lexsort((view.id[there], short[there], unmet[there], fixed[there]))]
    return [NearMachine(view.names[at], _lacks(rules, at)) for at in order[:NEAREST_MAX].tolist()]


def rules_on(rules: Sequence[Requirement], at: int) -> list[MachineRule]:
    """Return each rule's answer for the machine in this row."""
    return [
        MachineRule(rule.stage.value, rule.what, bool(rule.met[at]), rule.found(at))
        for rule in rules
    ]


def _lacks(rules: Sequence[Requirement], at: int) -> tuple[str, ...]:
    unmet = [rule for rule in rules if not rule.met[at]]
    too_small = {rule.kind for rule in unmet if rule.stage is Stage.CAPACITY}
    absent = any(rule.stage is Stage.ATTRIBUTE for rule in unmet)
    lacks = []
    for rule in unmet:
        if rule.stage is Stage.ROOM and rule.kind in too_small:
            continue  # a machine that is too small is not also said to be full
        if rule.stage is Stage.CONSTRAINT and absent and rule.found(at).startswith("no "):
            continue  # nor is a machine without an attribute said to have the wrong value of it
        lacks.append(_lack(rule, at))
    return tuple(lacks)


def _lack(rule: Requirement, at: int) -> str:
    if rule.there is None:
        return f"{rule.found(at)} (asked: {rule.what})"
    more = measured(rule.kind, int(rule.shortage[at]))
    where = "in all" if rule.stage is Stage.CAPACITY else "free"
    return f"{more} more {where} (has {measured(rule.kind, int(rule.there[at]))})"
