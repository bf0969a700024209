"""Verdicts and outcomes: the answers to claims and transactions.

Goal     Make conflict a value: cheap, typed, counted.
Promise  One verdict for each claim, and the fresh row of every machine that the transaction named.
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
    STALE = 1  # sequence rule: the machine's sequence is not the one in the claimant's view
    OVERCOMMIT = 2  # the machine lacks room
    GANG_BROKEN = 3  # it would fit, but fewer claims of its job do than must be granted together
    LEASE_LOST = 4  # the token presented is not that of the job's current lease
    ALREADY_PLACED = 5  # the task runs, has ended, or does not exist
    GONE = 6  # no such machine in the cell
    CLOSED = 7  # the machine is down or draining
    PRECEDENCE = 8  # the job may not evict what the claim names
    QUOTA = 9  # it would exceed the quota of the tenant or of the kind of scheduler


NO_IDS: Final[Ids] = np.zeros(0, np.int64)
freeze(NO_IDS)
ACCEPTED: Final = int(Verdict.ACCEPTED)
"""For comparisons with arrays: looking the enum member up would take as long as comparing."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """The answer to a transaction."""

    verdicts: Verdicts
    """One for each claim. A claim with alternates that is refused everywhere has the verdict of
    its own machine."""
    machine: Ids
    """Where each claim was granted: its own machine or an alternate; its own if refused."""
    evicted_job: Ids
    """The job of each evicted task: the tasks that claims named, and the rest of broken gangs."""
    evicted_task: Index
    fresh: MachineRows
    """Every machine named or changed, after the commit: a refused scheduler needs no extra read."""

    def __post_init__(self) -> None:
        assert len(self.verdicts) == len(self.machine)
        assert len(self.evicted_job) == len(self.evicted_task)
        freeze(self.verdicts, self.machine, self.evicted_job, self.evicted_task)

    @classmethod
    def nothing(cls) -> "Outcome":
        """Return the outcome of a transaction without claims."""
        return cls(np.zeros(0, np.int8), NO_IDS, NO_IDS, NO_IDS, MachineRows.none())

    @property
    def accepted(self) -> Mask:
        """Which claims were granted."""
        accepted: Mask = self.verdicts == ACCEPTED
        return accepted

    def conflicted(self, claims: slice) -> bool:
        """Return whether any of a job's claims was refused because of others' changes.

        A refusal by a quota is not a conflict: it does not depend on who commits first. Nor is
        GANG_BROKEN in a job with such a refusal.
        """
        refusals = set(self.verdicts[claims].tolist()) - {Verdict.ACCEPTED}
        if Verdict.QUOTA in refusals:
            refusals -= {Verdict.QUOTA, Verdict.GANG_BROKEN}
        return bool(refusals)

    @property
    def refused(self) -> int:
        """How many claims were refused, for any reason."""
        return int(np.count_nonzero(self.verdicts))

    def by_verdict(self) -> dict[Verdict, int]:
        """Return the number of claims by verdict, for verdicts that occur."""
        return {Verdict(v): n for v, n in sorted(Counter(self.verdicts.tolist()).items())}
