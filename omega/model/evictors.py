"""Who evicted whom: read from a transaction and its outcome.

Goal     Name, for each job that lost tasks to a commit, the job for which it did; in one place for
         the store that records it and for the events that report it.
Promise  A job that moves its own tasks is not evicted by itself.
Source   docs/decisions/0036-preemption.md.
"""

from collections.abc import Iterator

import numpy as np

from omega.model.claims import Transaction
from omega.model.outcomes import Outcome


def evictors(transaction: Transaction, outcome: Outcome) -> dict[int, int]:
    """Return, for each job of others that lost tasks, the job for which it did.

    Of several, the one with the highest id. A claim evicts only where it was granted on its own
    machine.
    """
    by_job: dict[int, int] = {}
    for evictor, job, _ in _carried_out(transaction, outcome):
        if evictor != job:
            by_job[job] = max(evictor, by_job.get(job, evictor))
    return by_job


def evicted_tasks(transaction: Transaction, outcome: Outcome) -> dict[int, int]:
    """Return how many tasks each job of `evictors` lost, without those that its own claims moved.

    The tasks that a broken gang lost besides are counted.
    """
    lost = dict.fromkeys(evictors(transaction, outcome), 0)
    moved = {
        (job, task) for evictor, job, task in _carried_out(transaction, outcome) if evictor == job
    }
    for job, task in zip(outcome.evicted_job.tolist(), outcome.evicted_task.tolist(), strict=True):
        if job in lost and (job, task) not in moved:
            lost[job] += 1
    return lost


def _carried_out(transaction: Transaction, outcome: Outcome) -> Iterator[tuple[int, int, int]]:
    """Yield (job of the claim, job that lost the task, task) of each eviction that happened."""
    if not len(outcome.evicted_job):
        return
    claims, evictions = transaction.claims, transaction.claims.evictions
    evicts = outcome.accepted & (outcome.machine == claims.machine)
    claimant = np.concatenate(
        [np.full(part.claims.stop - part.claims.start, part.job) for part in transaction.jobs]
    )
    for claim, job, task in zip(
        evictions.claim.tolist(), evictions.job.tolist(), evictions.task.tolist(), strict=True
    ):
        if evicts[claim]:
            yield int(claimant[claim]), job, task
