"""Allocations: which task runs where.

Goal     The one form in which a store returns what runs.
Promise  Frozen arrays, one entry an allocation.
Source   Omega (EuroSys 2013), section 3.4: the shared cell state.
"""

from dataclasses import dataclass, fields

from omega.model.arrays import Amounts, Ids, Index, Mask, freeze


@dataclass(frozen=True, eq=False)
class Allocations:
    """Live allocations: which task runs where, since when and for how long."""

    job: Ids
    task: Index
    machine: Ids
    amounts: Amounts
    started_ms: Ids
    """When each was granted, in milliseconds since the epoch by the store's clock."""
    duration_ms: Ids
    """How long each is to run; -1 if until it is cancelled."""

    def __post_init__(self) -> None:
        freeze(self.job, self.task, self.machine, self.amounts, self.started_ms, self.duration_ms)

    def __len__(self) -> int:
        return len(self.job)

    def only(self, which: Mask) -> "Allocations":
        """Return the allocations for which `which` is true."""
        return Allocations(*(getattr(self, field.name)[which] for field in fields(self)))
