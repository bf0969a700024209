"""The arithmetic of running gangs: the steps that they have made, and their time.

Goal     Compute the steps of a gang at any moment, independently of earlier computations.
Promise  Arrays in, arrays out. Never more steps than rate x time, and none counted twice: steps are
         computed from the start of the run, so they do not depend on how often that is done.
Source   docs/decisions/0027-jobs-in-steps.md.
"""

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from omega.model.arrays import Ids, Mask, Score, freeze, integers


@dataclass(frozen=True, eq=False)
class Runs:
    """Gangs all of whose tasks have run since some moment. Times are of the store's clock."""

    job: Ids
    since_ms: Ids
    """When the last of its tasks was granted; this distinguishes two runs of a job."""
    counts_from_ms: Ids
    """From when on its time is counted."""
    steps_from_ms: Ids
    """From when on it makes steps."""
    rate: Score
    """Steps/s."""
    steps: Ids
    """The steps on record when the run began here."""
    run_ms: Ids
    """The milliseconds on record when the run began here."""
    wanted: Ids

    def __post_init__(self) -> None:
        freeze(*(getattr(self, field.name) for field in fields(self)))

    def __len__(self) -> int:
        return len(self.job)

    @cached_property
    def _left(self) -> Ids:
        return np.asarray(np.maximum(self.wanted - self.steps, 0))

    def steps_at(self, now_ms: int, speedup: float) -> Ids:
        """Return the whole steps that each job has made in all by then, at most those wanted."""
        passed_s = np.maximum(now_ms - self.steps_from_ms, 0) * (speedup / 1_000)
        made = np.minimum(np.floor(self.rate * passed_s), self._left)
        return np.asarray(self.steps + made.astype(np.int64))

    def run_ms_at(self, now_ms: int, speedup: float) -> Ids:
        """Return the milliseconds of the jobs' time for which each has run in all by then."""
        passed_ms = np.maximum(now_ms - self.counts_from_ms, 0) * speedup
        return np.asarray(self.run_ms + np.floor(passed_ms).astype(np.int64))

    def only(self, which: Mask) -> "Runs":
        """Return these of the runs."""
        return Runs(*(getattr(self, field.name)[which] for field in fields(self)))

    def and_(self, others: "Runs") -> "Runs":
        """Return these and others."""
        pairs = ((getattr(self, f.name), getattr(others, f.name)) for f in fields(self))
        return Runs(*(np.concatenate(pair) for pair in pairs))


def begun(
    job: Ids,
    since_ms: Ids,
    rate: Score,
    record: tuple[Ids, Ids, Ids],
    *,
    seen_from_ms: int,
    restart_ms: float,
) -> Runs:
    """Return runs that begin now; `record` has the steps, the time and the steps wanted of each.

    A job that has run before makes no steps for `restart_ms`. Nothing before `seen_from_ms` counts.
    """
    steps, run_ms, wanted = record
    waits_ms = np.where(run_ms > 0, np.ceil(restart_ms), 0).astype(np.int64)
    return Runs(
        job=job,
        since_ms=since_ms,
        counts_from_ms=np.maximum(since_ms, seen_from_ms),
        steps_from_ms=np.maximum(since_ms + waits_ms, seen_from_ms),
        rate=rate,
        steps=steps,
        run_ms=run_ms,
        wanted=wanted,
    )


NO_RUNS = begun(
    integers(),
    integers(),
    np.zeros(0),
    (integers(), integers(), integers()),
    seen_from_ms=0,
    restart_ms=0.0,
)
