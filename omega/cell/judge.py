"""The commit rule in numpy: which claims of a transaction are granted.

Goal     The rule as a pure function of arrays, for memory stores and simulations; Postgres has its
         own. Fast enough for the simulator and simple enough to trust.
Promise  Same verdicts, rows and sequences as the function in Postgres. Property tests compare each
         with a slow twin, `omega.testing.twin`.
Source   Omega (EuroSys 2013), section 3.4; docs/decisions/0003-the-commit-rule.md.
"""

import numpy as np

from omega.cell.commit_context import CommitContext, machine_verdicts
from omega.cell.judge_sequential import judge_sequentially
from omega.model.arrays import Amounts, Index, Verdicts, all_true, any_kind, ascends
from omega.model.claims import Claims, Transaction
from omega.model.machines import MachineRows
from omega.model.outcomes import ACCEPTED, NO_IDS, Outcome, Verdict


def judge(rows: MachineRows, transaction: Transaction, context: CommitContext) -> Outcome:
    """Judge the claims in order, job by job, against what earlier granted claims left.

    The usual case is decided here: the transaction has no evictions, its quotas suffice for all
    claims, and no claim that has alternates is refused because of its own machine.
    `judge_sequentially` decides all other transactions, and has the whole rule.

    `rows` must hold every existing machine that the transaction names or that runs one of
    `context.victims`. The outcome's fresh rows are the machines named or changed, after the commit.
    """
    claims = transaction.claims
    if len(claims.evictions) or not context.quota_balances.cover(transaction):
        return judge_sequentially(rows, transaction, context)
    at = rows.where(claims.machine)
    verdicts = _before_fit(rows, transaction, context, at)
    demand = claims.demand

    free = rows.free
    for job, lacking in zip(transaction.jobs, context.lacking.tolist(), strict=True):
        mine = verdicts[job.claims]  # a numpy view: writing to `mine` writes to `verdicts`
        left = _serve(free, at[job.claims], demand[job.claims], claims.task[job.claims], mine)
        granted = mine == ACCEPTED
        if np.count_nonzero(granted) >= max(job.grants_min, lacking):
            free = left
        else:
            mine[granted] = Verdict.GANG_BROKEN  # `left` is dropped: nothing to roll back

    if len(claims.alternates) and _needs_an_alternate(claims, verdicts):
        return judge_sequentially(rows, transaction, context)
    granted_on = np.zeros(len(rows), dtype=np.bool_)
    granted_on[at[verdicts == ACCEPTED]] = True
    fresh = rows.after_commit(granted_on, touched=granted_on, used=rows.capacity - free)
    named = np.zeros(len(rows) + 1, dtype=np.bool_)  # the last entry, -1, is for unknown machines
    named[at] = True
    if len(claims.alternates):
        named[rows.where(claims.alternates.machine)] = True
    return Outcome(
        verdicts=verdicts,
        machine=claims.machine,
        evicted_job=NO_IDS,
        evicted_task=NO_IDS,
        fresh=fresh if all_true(named[:-1]) else fresh.take(np.flatnonzero(named[:-1])),
    )


def _before_fit(
    rows: MachineRows, transaction: Transaction, context: CommitContext, at: Index
) -> Verdicts:
    """Return the verdicts that do not depend on other claims.

    `at` (claims,) has each claim's row of `rows`, -1 for an unknown machine. The rule's order is
    lease, task, machine. The verdicts are written in the reverse order, so that the first applies.
    """
    verdicts = machine_verdicts(rows, transaction.rule, at, transaction.claims.seen)
    if not all_true(context.unplaced):
        verdicts[~context.unplaced] = Verdict.ALREADY_PLACED
    for job, held in zip(transaction.jobs, context.lease_held, strict=True):
        if not held:
            verdicts[job.claims] = Verdict.LEASE_LOST
    return verdicts


def _needs_an_alternate(claims: Claims, verdicts: Verdicts) -> bool:
    """Return whether a claim that has alternates was refused because of its own machine."""
    of_machines = (Verdict.GONE, Verdict.CLOSED, Verdict.STALE, Verdict.OVERCOMMIT)
    return bool(np.isin(verdicts[claims.alternates.claim], of_machines).any())


def _serve(free: Amounts, at: Index, demand: Amounts, task: Index, verdicts: Verdicts) -> Amounts:
    """Serve one job's claims in order, write refusals to `verdicts`, and return what is left.

    `free` and the result are (machines, resource kinds), `demand` is (claims, resource kinds), and
    `at` (claims,) has each claim's row of `free`.
    """
    # Order matters in two cases. If claims exceed what a machine has, the claims on that machine
    # are judged one by one. If a task is claimed twice, all claims of the job are judged one by
    # one. Both cases are rare, so they do not show in a profile.
    left = free.copy()
    if _distinct(task):
        live = (verdicts == ACCEPTED).nonzero()[0]
        np.subtract.at(left, at[live], demand[live])
        if not left.size or left.min() >= 0:
            return left
        short = any_kind(left < 0)
        left[short] = free[short]
        in_order = live[short[at[live]]]
    else:
        in_order = np.arange(len(task))
    _walk(left, in_order, at, demand, task, verdicts)
    return left


def _distinct(task: Index) -> bool:
    return ascends(task) or len(np.unique(task)) == len(task)


def _walk(
    left: Amounts, in_order: Index, at: Index, demand: Amounts, task: Index, verdicts: Verdicts
) -> None:
    """Serve the claims at positions `in_order` one by one, writing to `left` and `verdicts`."""
    placed: set[int] = set()
    for claim in in_order:
        if int(task[claim]) in placed:  # in the rule, tasks come before machines
            verdicts[claim] = Verdict.ALREADY_PLACED
        elif verdicts[claim] != ACCEPTED:
            continue
        elif (demand[claim] <= left[at[claim]]).all():
            left[at[claim]] -= demand[claim]
            placed.add(int(task[claim]))
        else:
            verdicts[claim] = Verdict.OVERCOMMIT
