"""The last round of each kind of scheduler, as people read of it.

Goal     Say which round it is, by which policy, and who has how many GPUs of which type.
Promise  Figures are those of the plan; a claim that was refused is told right by the next round.
Source   omega/model/round_summary.py.
"""

from collections.abc import Mapping
from dataclasses import asdict

from omega.model.round_summary import JobShare
from omega.store.protocols import ReaderStore
from omega.store.rounds import LastRound

S_PER_MS = 1 / 1_000


def round_row(last: LastRound) -> dict[str, object] | None:
    """Return a round as JSON types; None if nothing is told of it."""
    told = last.summary
    if told is None:
        return None
    training, preempted = counts(last)
    return {
        "scheduler": last.scheduler,
        "number": last.number,
        "began_ms": last.began_ms,
        "length_ms": last.length_ms,
        "policy": told.policy,
        "types": [asdict(it) for it in told.types],
        "jobs": len(told.jobs),
        "training": training,
        "preempted": preempted,
    }


def counts(last: LastRound) -> tuple[int, int]:
    """Return how many jobs train in a round, and how many it has preempted."""
    jobs = [] if last.summary is None else last.summary.jobs
    return sum(it.type is not None for it in jobs), sum(_was_preempted(it, last) for it in jobs)


def _was_preempted(share: JobShare, last: LastRound) -> bool:
    return share.type is None and share.preempted_in == last.number


def due_in_s(last: LastRound, now_ms: int) -> float:
    """Return the seconds until the next round."""
    return max(0, last.began_ms + last.length_ms - now_ms) * S_PER_MS


def next_round_s(store: ReaderStore, scheduler: str) -> float | None:
    """Return the seconds until the next round of a kind of scheduler; None if it has no rounds."""
    for last in store.last_rounds():
        if last.scheduler == scheduler and last.summary is not None:
            return due_in_s(last, store.now_ms())
    return None


def shares_of(last: LastRound) -> Mapping[int, JobShare]:
    """Return what a round tells of its jobs, by number."""
    return {} if last.summary is None else {it.job: it for it in last.summary.jobs}
