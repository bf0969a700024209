"""Verdicts and outcomes: what the cell answers.

Goal     Make conflict a value: cheap, typed, counted.
Promise  One verdict a claim, and the fresh row of every machine that the transaction named.
Source   docs/decisions/0003-the-commit-rule.md; the forced refresh of Nomad's plan applier.
"""

from collections import Counter
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from omega.model.arrays import Ids, Index, Mask, Verdicts, freeze
from omega.model.machines import MachineRows


class Verdict(IntEnum):
    """The answer to one claim. The numbers are stored: never renumber."""

    ACCEPTED = 0
    STALE = 1  # sequence rule: the machine changed since the planner looked
    OVERCOMMIT = 2  # no room left
    GANG_BROKEN = 3  # would have fitted; too few siblings did
    LEASE_LOST = 4  # somebody else may plan this job now
    ALREADY_PLACED = 5  # the task runs, or is over
    GONE = 6  # no such machine in the cell
    CLOSED = 7  # the machine is down or draining
    PRECEDENCE = 8  # it may not evict what it names
    QUOTA = 9  # its tenant or its kind of scheduler holds all that it may


NOBODY: Final[Ids] = np.zeros(0, np.int64)
freeze(NOBODY)
ACCEPTED: Final = int(Verdict.ACCEPTED)
"""For comparisons with arrays: to look a member up and convert it takes as long as to compare."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """The answer to a transaction."""

    verdicts: Verdicts
    """One a claim; of a claim with alternates that was refused everywhere, the first refusal."""
    machine: Ids
    """Where each claim was granted, its own machine or an alternate; its own where refused."""
    evicted_job: Ids
    """What was evicted, task by task: what claims named, and what of their gangs fell with it."""
    evicted_task: Index
    fresh: MachineRows
    """Every machine named or touched, as the commit left it: the loser needs no extra read."""

    def __post_init__(self) -> None:
        assert len(self.verdicts) == len(self.machine)
        assert len(self.evicted_job) == len(self.evicted_task)
        freeze(self.verdicts, self.machine, self.evicted_job, self.evicted_task)

    @classmethod
    def nothing(cls) -> "Outcome":
        """Return the answer to no claims at all."""
        return cls(np.zeros(0, np.int8), NOBODY, NOBODY, NOBODY, MachineRows.none())

    @property
    def accepted(self) -> Mask:
        """Which claims were granted."""
        accepted: Mask = self.verdicts == ACCEPTED
        return accepted

    def conflicted(self, claims: slice) -> bool:
        """Say whether any of a job's claims was refused for what others did.

        A quota refuses whoever is fastest, and with one claim perhaps the rest of its gang.
        """
        refusals = set(self.verdicts[claims].tolist()) - {Verdict.ACCEPTED}
        if Verdict.QUOTA in refusals:
            refusals -= {Verdict.QUOTA, Verdict.GANG_BROKEN}
        return bool(refusals)

    @property
    def refused(self) -> int:
        """How many claims were refused, for whatever reason."""
        return int(np.count_nonzero(self.verdicts))

    def by_verdict(self) -> dict[Verdict, int]:
        """Count the claims by verdict, those that occur."""
        return {Verdict(v): n for v, n in sorted(Counter(self.verdicts.tolist()).items())}
