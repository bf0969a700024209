"""Quotas: how much the jobs of a tenant, or of a kind of scheduler, may hold at a time.

Goal     One declaration of what quotas limit, which the judge, the tables and the screens follow.
Promise  The device slots, which users do not distinguish, are charged to one budget.
Source   docs/decisions/0016-quotas.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, IntEnum

import numpy as np

from omega.model.arrays import Amounts, freeze
from omega.model.resources import KINDS, Kind

UNLIMITED = 2**58
"""The limit of an unlimited budget: more than jobs can ever use, and still far from overflow."""


class Budget(IntEnum):
    """What a quota may limit; the name carries the unit. The order is stored: never change it."""

    CPU_MILLI = 0
    MEMORY_MIB = 1
    DISK_MIB = 2
    GPU_SLICES = 3
    JOBS = 4  # those with at least one running task

    @property
    def column(self) -> str:
        """The budget's name in reports."""
        return self.name.lower()

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The resource kinds whose amounts are charged to it."""
        if self is Budget.GPU_SLICES:
            return tuple(kind for kind in Kind if kind.is_device)
        return tuple(kind for kind in Kind if kind.name == self.name)


BUDGETS = len(Budget)

_CHARGED = np.array([[kind in budget.kinds for budget in Budget] for kind in Kind], np.int64)
freeze(_CHARGED)
assert _CHARGED.shape == (KINDS, BUDGETS)


def cost(amounts: Amounts) -> Amounts:
    """Return what amounts, (rows, kinds) or (kinds,), are charged: (rows, budgets) or (budgets,).

    The entry of `Budget.JOBS` is 0.
    """
    return amounts @ _CHARGED


class QuotaScope(Enum):
    """Whose jobs are charged to a quota."""

    TENANT = "tenant"
    SCHEDULER = "scheduler"


@dataclass(frozen=True)
class Quota:
    """A limit on what the jobs of a tenant or of a kind of scheduler hold together."""

    scope: QuotaScope
    name: str
    limits: Mapping[Budget, int]
    """Limits by budget; a budget that is left out is unlimited."""

    def __post_init__(self) -> None:
        assert self.name
        assert all(limit >= 0 for limit in self.limits.values())

    @property
    def row(self) -> Amounts:
        """All limits in the order of `Budget`: (budgets,)."""
        return np.array([self.limits.get(budget, UNLIMITED) for budget in Budget], np.int64)


@dataclass(frozen=True)
class QuotaUse:
    """A quota and what is left of it."""

    quota: Quota
    left: Mapping[Budget, int]
    """For each limited budget; negative where the limit was lowered below what is used."""
    counted: bool = True
    """Whether the use of its jobs has been added up. Until then nothing is left of the quota."""

    @classmethod
    def of_rows(
        cls, scope: QuotaScope, name: str, limits: Amounts, left: Amounts, *, counted: bool = True
    ) -> "QuotaUse":
        """Return a quota and its use from (budgets,) rows of limits and of what is left."""
        limited = {b: int(limits[b]) for b in Budget if limits[b] != UNLIMITED}
        remains = {budget: int(left[budget]) for budget in limited}
        return cls(Quota(scope, name, limited), remains, counted)
