"""Changes of machines while a workload runs: they leave, come back, and are resized.

Goal     One form for recorded and drawn events, so that their users need not know any trace.
Promise  Events are in order of time. The drawn events of one machine alternate: it leaves, then
         comes back.
Source   docs/decisions/0012-workloads.md; the machine events of Google ClusterData2011_2.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from omega.model.arrays import Amounts


@dataclass(frozen=True, eq=False)
class MachineEvent:
    """One change of one machine."""

    time_s: float
    """Seconds from the start of the workload."""
    machine: int
    """Position in the workload's machines."""
    up: bool
    """Whether it takes tasks from now on; if not, the tasks on it are lost."""
    capacity: Amounts | None = None
    """Its capacity from now on, where that changes."""


@dataclass(frozen=True, kw_only=True)
class Failures:
    """Failures of machines: independent of each other, with exponential times up and down."""

    every_s: float
    """Mean time that a machine is up."""
    repair_s: float
    """Mean time until it is back."""

    def __post_init__(self) -> None:
        assert self.every_s > 0
        assert self.repair_s > 0

    def mean(self, machines: int, horizon_s: float) -> float:
        """Return the approximate mean number of failures of so many machines."""
        return machines * horizon_s / (self.every_s + self.repair_s)

    def draw(
        self, machines: int, horizon_s: float, rng: np.random.Generator
    ) -> tuple[MachineEvent, ...]:
        """Return the events of so many machines, all of which are up at the start."""
        events = (
            event for machine in range(machines) for event in self._of(machine, horizon_s, rng)
        )
        return tuple(sorted(events, key=lambda event: event.time_s))

    def _of(
        self, machine: int, horizon_s: float, rng: np.random.Generator
    ) -> Iterator[MachineEvent]:
        time_s, up = rng.exponential(self.every_s), False
        while time_s <= horizon_s:
            yield MachineEvent(time_s, machine, up)
            time_s += rng.exponential(self.repair_s if not up else self.every_s)
            up = not up
