"""Rate models: how fast gangs make steps, supplied by packages that know the work.

Goal     Keep knowledge of rates in packages; omega itself knows only steps and seconds.
Promise  A rate belongs to a gang on given machines. It does not depend on time.
Source   docs/decisions/0027-jobs-in-steps.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class GangMachine:
    """A machine on which tasks of a gang run."""

    gpus: int
    """The number of its GPUs, in use or not."""
    attributes: Mapping[str, str]
    """The values of the attributes that the model names, as far as the machine has them."""


@dataclass(frozen=True)
class Gang:
    """A gang all of whose tasks run."""

    kind: str
    """The kind of the job's work, as in its spec."""
    gpus: int
    """The number of GPUs that it uses; a part of one counts as one."""
    machines: Sequence[GangMachine]


@runtime_checkable
class RateModel(Protocol):
    """The rates of gangs."""

    @property
    def attributes(self) -> Sequence[str]:
        """The machine attributes on which a rate depends."""
        ...

    def steps_per_s(self, gang: Gang) -> float:
        """Return the rate of a gang in steps/s; 0 if none is known: it then makes no steps."""
        ...
