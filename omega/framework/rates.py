"""How fast gangs make steps, as somebody says it who knows the work.

Goal     Let a package say what rates depend on, and omega know steps and seconds only.
Promise  A rate is of a gang on given machines. It does not depend on time.
Source   docs/decisions/0027-jobs-in-steps.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class GangMachine:
    """A machine on which tasks of a gang run."""

    gpus: int
    """That it has, whoever uses them."""
    attributes: Mapping[str, str]
    """Those that the model asks for, as far as the machine has them."""


@dataclass(frozen=True)
class Gang:
    """A gang all of whose tasks run."""

    kind: str
    """Of its work, as the job says it."""
    gpus: int
    """That it uses, a part of one counted as one."""
    machines: Sequence[GangMachine]


@runtime_checkable
class RateModel(Protocol):
    """Says how fast gangs make steps."""

    @property
    def attributes(self) -> Sequence[str]:
        """The machine attributes on which a rate depends."""
        ...

    def steps_per_s(self, gang: Gang) -> float:
        """Return the rate of a gang; 0 if none is known: then it makes no steps."""
        ...
