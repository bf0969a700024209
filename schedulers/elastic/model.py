"""How long a job of activities takes with so many workers: a staircase.

Goal     Predict what further workers would bring to a job.
Promise  T(w) = sum of ceil(M / w) x d over the phases. T never rises with w. It falls only at the
         worker counts that `falls` returns. A phase of which no duration is known adds nothing, so
         that no gain is predicted from it.
Source   Omega (EuroSys 2013), section 6: ideal linear speed-up until all activities of a phase run
         at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt

import numpy as np

from omega.model.arrays import Counts, Score


@dataclass(frozen=True)
class PhaseLeft:
    """What is left of one phase of a job."""

    activities: int
    """Activities that are not done yet."""
    mean_s: float | None
    """Mean duration of one activity, from history; None if there is none yet."""

    def __post_init__(self) -> None:
        assert self.activities >= 0
        assert self.mean_s is None or self.mean_s >= 0

    @property
    def is_known(self) -> bool:
        """Whether more workers may be predicted to shorten the phase."""
        return bool(self.activities and self.mean_s)


@dataclass(frozen=True)
class Growth:
    """Workers to add to a job, and the seconds by which it is predicted to end earlier."""

    workers: int
    gain_s: float

    @property
    def gain_per_worker_s(self) -> float:
        """The seconds gained for each worker added."""
        return self.gain_s / self.workers


def predicted_s(phases: Sequence[PhaseLeft], workers: int) -> float:
    """Return T(workers), the seconds that the phases take one after the other."""
    assert workers >= 1
    return float(_predicted_s(phases, np.array([workers]))[0])


def falls(phases: Sequence[PhaseLeft], above: int, at_most: int) -> Counts:
    """Return the worker counts in (above, at_most] at which T falls, ascending.

    They are those at which some ceil(M / w) falls: ceil(M / k) for k = 1, 2 and so on.
    """
    assert above >= 1
    counts = [_falls(phase.activities, above, at_most) for phase in phases if phase.is_known]
    return np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *counts]))


def best_growth(phases: Sequence[PhaseLeft], workers: int, at_most: int) -> Growth | None:
    """Return the growth to at most so many workers with the largest gain for each worker.

    Of equal ones the smallest. None if no growth makes the job end earlier.
    """
    counts = falls(phases, workers, at_most)
    if not len(counts):
        return None
    gain_s = predicted_s(phases, workers) - _predicted_s(phases, counts)
    best = int(np.argmax(gain_s / (counts - workers)))
    return Growth(int(counts[best]) - workers, float(gain_s[best]))


def _predicted_s(phases: Sequence[PhaseLeft], workers: Counts) -> Score:
    total = np.zeros(len(workers))
    for phase in phases:
        if phase.is_known and phase.mean_s is not None:
            total += -(-phase.activities // workers) * phase.mean_s
    return total


def _falls(activities: int, above: int, at_most: int) -> Counts:
    """Return the worker counts in (above, at_most] at which ceil(activities / w) falls.

    Such a count is ceil(activities / k) for some k: up to the root of the activities for small
    counts, and for small k each of the others. So few thousands are looked at, of a million.
    """
    root = isqrt(activities) + 1
    small = np.arange(above + 1, min(root, at_most) + 1)
    large = -(-activities // np.arange(1, root + 1))
    counts = np.concatenate([small, large[(large > above) & (large <= at_most)]])
    before = np.maximum(counts - 1, 1)
    return np.asarray(counts[-(-activities // counts) < -(-activities // before)])
