"""The commit rule in numpy: who gets what, claim by claim.

Goal     Decide conflicts in one place, fast enough for the simulator and plain enough to trust.
Promise  Same verdicts, rows and sequences as the function in Postgres and as the slow twin in
         `omega.testing.twin`: a property test drives all three with the same histories.
Source   Omega (EuroSys 2013), section 3.4; docs/decisions/0003-the-commit-rule.md.
"""

from dataclasses import dataclass

import numpy as np

from omega.model.arrays import Amounts, Counts, Index, Mask, Verdicts, freeze, some_kind
from omega.model.claims import ConflictRule, Transaction
from omega.model.machines import MachineRows, MachineState
from omega.model.outcomes import Outcome, Verdict


@dataclass(frozen=True, eq=False)
class Standing:
    """What the store knows of the transaction's jobs as the commit begins."""

    lease_held: Mask
    """For each job, whether the token presented is the current one."""
    lacking: Counts
    """For each job, grants that its gang still needs to stand; 0 for an incremental one."""
    unplaced: Mask
    """For each claim, whether its task exists and has no place yet."""

    def __post_init__(self) -> None:
        freeze(self.lease_held, self.lacking, self.unplaced)


def judge(rows: MachineRows, transaction: Transaction, standing: Standing) -> Outcome:
    """Weigh the claims, job by job, against what earlier jobs left.

    `rows` are the machines that the transaction names, as far as they exist; the outcome's fresh
    rows are the same machines as the commit leaves them.
    """
    claims = transaction.claims
    at = rows.where(claims.machine)
    verdicts = _before_fit(rows, transaction, standing, at)
    demand = claims.demand

    free = rows.free
    for job, lacking in zip(transaction.jobs, standing.lacking, strict=True):
        mine = verdicts[job.claims]  # a window: what is written here is written there
        left = _serve(free, at[job.claims], demand[job.claims], claims.task[job.claims], mine)
        granted = mine == Verdict.ACCEPTED
        if np.count_nonzero(granted) >= max(job.minimum, lacking):
            free = left
        else:
            mine[granted] = Verdict.GANG_BROKEN  # `left` is dropped: nothing to roll back

    touched = np.unique(at[verdicts == Verdict.ACCEPTED])
    return Outcome(verdicts, fresh=rows.after_grants(touched, rows.capacity - free))


def _before_fit(
    rows: MachineRows, transaction: Transaction, standing: Standing, at: Index
) -> Verdicts:
    """Give the verdicts that do not depend on other claims; later lines outrank earlier ones."""
    verdicts = np.full(len(at), Verdict.ACCEPTED, dtype=np.int8)
    known = np.flatnonzero(at >= 0)
    if transaction.rule is ConflictRule.SEQUENCE:
        moved = rows.sequence[at[known]] != transaction.claims.seen[known]
        verdicts[known[moved]] = Verdict.STALE
    state = np.full(len(at), MachineState.GONE, dtype=np.int8)  # also of what never was
    state[known] = rows.state[at[known]]
    verdicts[state != MachineState.OPEN] = Verdict.CLOSED
    verdicts[state == MachineState.GONE] = Verdict.GONE
    verdicts[~standing.unplaced] = Verdict.ALREADY_PLACED
    for job, held in zip(transaction.jobs, standing.lease_held, strict=True):
        if not held:
            verdicts[job.claims] = Verdict.LEASE_LOST
    return verdicts


def _serve(free: Amounts, at: Index, demand: Amounts, task: Index, verdicts: Verdicts) -> Amounts:
    """Serve one job's claims in order, mark those that miss out, and say what is left."""
    # Order matters only on machines asked for more than they have, and where a task is claimed
    # twice. Both are rare, so walking the claims one by one costs nothing that a profile shows.
    left = free.copy()
    if _distinct(task):
        live = np.flatnonzero(verdicts == Verdict.ACCEPTED)
        np.subtract.at(left, at[live], demand[live])
        short = some_kind(left < 0)
        left[short] = free[short]
        in_order = live[short[at[live]]]
    else:
        in_order = np.arange(len(task))
    _walk(left, in_order, at, demand, task, verdicts)
    return left


def _distinct(task: Index) -> bool:
    return bool((np.diff(task) > 0).all()) or len(np.unique(task)) == len(task)


def _walk(
    left: Amounts, in_order: Index, at: Index, demand: Amounts, task: Index, verdicts: Verdicts
) -> None:
    """Serve these claims one after the other, writing to `left` and `verdicts`."""
    placed: set[int] = set()
    for claim in in_order:
        if int(task[claim]) in placed:
            verdicts[claim] = Verdict.ALREADY_PLACED
        elif verdicts[claim] != Verdict.ACCEPTED:
            continue
        elif (demand[claim] <= left[at[claim]]).all():
            left[at[claim]] -= demand[claim]
            placed.add(int(task[claim]))
        else:
            verdicts[claim] = Verdict.OVERCOMMIT
