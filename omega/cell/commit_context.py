"""The commit context: what the store knows of a transaction's jobs, victims and quotas.

Goal     Give the judge all that it needs besides machine rows, and nothing that claims change.
Promise  Frozen arrays. The store reads them as the commit begins, under the locks of the jobs.
Source   docs/decisions/0003-the-commit-rule.md, 0015-evictions-alternates-machines.md,
         0016-quotas.md.
"""

from dataclasses import dataclass

import numpy as np

from omega.cell.quota_balances import NO_QUOTA_BALANCES, QuotaBalances
from omega.model.arrays import (
    Amounts,
    Counts,
    Ids,
    Index,
    Mask,
    Sequences,
    Verdicts,
    all_true,
    ascends,
    freeze,
)
from omega.model.claims import ConflictRule
from omega.model.machines import MachineRows, MachineState
from omega.model.outcomes import Verdict
from omega.model.resources import KINDS


@dataclass(frozen=True, eq=False)
class Victims:
    """All running tasks of the jobs of which a transaction's evictions name tasks.

    Any of them may have to be evicted: if a gang breaks, its other tasks are evicted too.
    """

    job: Ids
    """The job of each running task; ascending by job, then by task."""
    task: Index
    machine: Ids
    amounts: Amounts

    distinct_job: Ids
    """The jobs named, distinct, ascending; the next three arrays have one entry for each."""
    yields_to: Counts
    """The least precedence that a claim's job must have for its claims to evict the job's tasks."""
    minimum: Counts
    placed: Counts
    """Tasks that run or have ended."""
    own: Mask
    """(jobs of the transaction, `distinct_job`): whether both jobs are of one kind of scheduler and
    the transaction presents the current leases of both. Then claims of the first may evict any task
    of the second, whatever the precedences."""

    def __post_init__(self) -> None:
        assert len(self.job) == len(self.task) == len(self.machine) == len(self.amounts)
        assert len(self.distinct_job) == len(self.yields_to) == len(self.minimum)
        assert len(self.distinct_job) == len(self.placed) == self.own.shape[1]
        assert ascends(self.distinct_job)
        freeze(self.job, self.task, self.machine, self.amounts)
        freeze(self.distinct_job, self.yields_to, self.minimum, self.placed, self.own)

    def __len__(self) -> int:
        return len(self.job)


_NONE = np.zeros(0, np.int64)
NO_VICTIMS = Victims(
    job=_NONE,
    task=_NONE,
    machine=_NONE,
    amounts=np.zeros((0, KINDS), np.int64),
    distinct_job=_NONE,
    yields_to=_NONE,
    minimum=_NONE,
    placed=_NONE,
    own=np.zeros((0, 0), np.bool_),
)


@dataclass(frozen=True, eq=False)
class CommitContext:
    """What the store knows of the transaction's jobs as the commit begins."""

    lease_held: Mask
    """For each job, whether the token presented is the current one."""
    minimum: Counts
    """For each job, how many placed tasks its gang needs; 0 for a job that is no gang."""
    placed: Counts
    """For each job, how many of its tasks run or have ended."""
    precedence: Counts
    """For each job, its precedence: it may evict tasks of jobs that yield to it."""
    unplaced: Mask
    """For each claim, whether its task exists and has no place yet."""
    victims: Victims = NO_VICTIMS
    quota_balances: QuotaBalances = NO_QUOTA_BALANCES

    def __post_init__(self) -> None:
        assert len(self.lease_held) == len(self.minimum) == len(self.placed) == len(self.precedence)
        freeze(self.lease_held, self.minimum, self.placed, self.precedence, self.unplaced)

    @property
    def lacking(self) -> Counts:
        """For each job, how many grants its gang still needs if none of its tasks is evicted."""
        return np.asarray(np.maximum(self.minimum - self.placed, 0))


def machine_verdicts(rows: MachineRows, rule: ConflictRule, at: Index, seen: Sequences) -> Verdicts:
    """Return the verdict that each claim gets from its machine's state alone, before fit is judged.

    `at` (claims,) has each claim's row of `rows`, -1 for a machine that is not there; `seen`
    (claims,) has the sequence in the claimant's view. Where several verdicts apply, GONE takes
    precedence over CLOSED, and CLOSED over STALE.
    """
    verdicts = np.zeros(len(at), dtype=np.int8)  # all ACCEPTED
    known = at >= 0
    if rule is ConflictRule.FIT and all_true(known) and not np.count_nonzero(rows.state):
        return verdicts  # the usual case
    if rule is ConflictRule.SEQUENCE:
        verdicts[known] = np.where(
            rows.sequence[at[known]] == seen[known], Verdict.ACCEPTED, Verdict.STALE
        )
    state = rows.state[at[known]]
    verdicts[np.flatnonzero(known)[state != MachineState.OPEN]] = Verdict.CLOSED
    verdicts[np.flatnonzero(known)[state == MachineState.GONE]] = Verdict.GONE
    verdicts[~known] = Verdict.GONE
    return verdicts
