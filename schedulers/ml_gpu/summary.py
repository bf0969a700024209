"""What a round tells people of its training jobs.

Goal     Show each job's type, rate, promised and received share, and preemptions.
Promise  Told as planned, before the commit: a gang that is refused is told right by the next round.
Source   docs/decisions/0028-rounds-on-the-shared-cell.md.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from omega.framework.rounds import JobClaims
from omega.model.arrays import Counts, Ids, Index, Score
from omega.model.round_summary import JobShare, RoundSummary, TypeUse
from schedulers.ml_gpu.problem import NOWHERE
from schedulers.ml_gpu.record import Record
from schedulers.ml_gpu.throughputs import Rates


def evicted(claims: Sequence[JobClaims], ids: Ids) -> Index:
    """Return the places of those of these jobs that claims evict and do not place anew."""
    victims = {job for its in claims for job in its.claims.evictions.job.tolist()}
    placed = {its.job.id for its in claims}
    return np.flatnonzero(np.isin(ids, list(victims - placed)))


def summary_of(
    record: Record, rate: Rates, gpus: Counts, gangs: Counts, on: Index, age_s: Score
) -> RoundSummary:
    """Return the summary of a round; `on` is the type on which each job trains in it, or NOWHERE.

    `rate` is what is believed of each job on each type: (jobs, types).
    """
    share = record.ledger.share
    used = np.bincount(on[on != NOWHERE], gangs[on != NOWHERE], len(gpus)).astype(np.int64)
    history = record.history
    return RoundSummary(
        policy=record.policy,
        types=[
            TypeUse(name, there, its)
            for name, there, its in zip(record.types, gpus.tolist(), used.tolist(), strict=True)
        ],
        jobs=[
            JobShare(
                job=int(record.ledger.first[at]),
                gpus=int(gangs[at]),
                type=None if on[at] == NOWHERE else record.types[on[at]],
                rate=0.0 if on[at] == NOWHERE else float(rate[at, on[at]]),
                share=_parts(record.types, share[at]),
                pace=float(share[at] @ rate[at]),
                age_s=float(age_s[at]),
                promised_s=float(history.promised_s[at]),
                had_s=float(history.had_s[at]),
                preempted=int(history.preempted[at]),
                preempted_in=int(history.preempted_in[at]),
                is_stalled=not rate[at].any() and bool(history.idle_s[at].any()),
            )
            for at in range(len(on))
        ],
    )


def _parts(types: Sequence[str], share: Score) -> Mapping[str, float]:
    return {name: part for name, part in zip(types, share.tolist(), strict=True) if part > 0}
