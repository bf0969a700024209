"""Occupants: who runs on some machines, and whether they would make way.

Goal     Let placement choose victims, without a copy of all that runs in every view.
Promise  Frozen arrays. The jobs of all tasks on the machines that were named are complete; of each
         job only its tasks on these machines are listed.
Source   Omega (EuroSys 2013), section 3.4: preemption by precedence; docs/decisions/0036.
"""

from dataclasses import dataclass

from omega.model.arrays import Amounts, Counts, Ids, Index, ascends, freeze


@dataclass(frozen=True, eq=False)
class Occupants:
    """Running tasks on some machines, and what decides whether each may be evicted."""

    job: Ids
    """The job of each task; ascending by job, then by task."""
    task: Index
    machine: Ids
    amounts: Amounts
    started_ms: Ids

    about: Ids
    """The distinct jobs, ascending; the next five arrays have one entry for each."""
    precedence: Counts
    yields_to: Ids
    """The least precedence that may evict its tasks; NEVER_YIELDS if none may."""
    minimum: Counts
    placed: Counts
    """Tasks that run or have ended, anywhere."""
    running: Counts
    """Tasks that run, anywhere."""

    def __post_init__(self) -> None:
        assert len(self.job) == len(self.task) == len(self.machine) == len(self.amounts)
        assert len(self.about) == len(self.precedence) == len(self.yields_to) == len(self.minimum)
        assert len(self.about) == len(self.placed) == len(self.running)
        assert ascends(self.about)
        freeze(self.job, self.task, self.machine, self.amounts, self.started_ms, self.about)
        freeze(self.precedence, self.yields_to, self.minimum, self.placed, self.running)

    def __len__(self) -> int:
        return len(self.job)
