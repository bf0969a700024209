"""Elastic jobs: how many workers a job wants and may have, and the activities that they process.

Goal     Describe a job of many activities, such as a MapReduce job, apart from who places it.
Promise  Frozen. At most `LIMITS.phases_per_job_max` phases, with different names; each comes after
         none or after another phase, without a cycle.
Source   Omega (EuroSys 2013), section 6.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from omega.limits import LIMITS


@dataclass(frozen=True)
class Phase:
    """Activities of one duration. A worker processes one activity at a time."""

    name: str
    activities: int
    duration_ms: int
    """How long one activity takes; virtual nodes need it, and schedulers must not read it."""
    after: str | None = None
    """The phase that must have ended before this one begins."""

    def __post_init__(self) -> None:
        assert 1 <= self.activities <= LIMITS.activities_max
        assert 1 <= self.duration_ms <= LIMITS.duration_ms_max


@dataclass(frozen=True)
class Workers:
    """What makes a job elastic. Its tasks are the workers that its user wants."""

    at_most: int
    """The most workers it may have, helpers included."""
    phases: tuple[Phase, ...] = ()
    """What the workers process; without phases each works for its own duration."""

    def __post_init__(self) -> None:
        assert 1 <= self.at_most <= LIMITS.tasks_per_job_max
        assert len(self.phases) <= LIMITS.phases_per_job_max
        assert problem_with_phases(self.phases) is None


def problem_with_phases(phases: Sequence[Phase]) -> tuple[int, str, str] | None:
    """Return the first phase that is wrong, by position, its field, and a sentence; or None."""
    names = [phase.name for phase in phases]
    by_name = dict(zip(names, phases, strict=True))
    for at, phase in enumerate(phases):
        if phase.name in names[:at]:
            return at, "name", f"there is another phase named {phase.name!r}"
        if phase.after is None:
            continue
        if phase.after not in by_name:
            return at, "after", f"there is no phase {phase.after!r}"
        path = [phase.name]
        while (before := by_name[path[-1]].after) is not None and before in by_name:
            path.append(before)
            if before == phase.name:
                return at, "after", f"the phases wait for each other: {' after '.join(path)}"
            if len(path) > len(names):
                break  # a cycle that this phase is not part of
    return None


@dataclass(frozen=True)
class PhaseProgress:
    """A job whose tasks process activities, and how far these have come."""

    job: int
    elastic: int
    """The elastic job itself: the same one, or the parent if the job is of helpers."""
    phases: tuple[Phase, ...]
    done: tuple[int, ...]
    """By phase, the activities that are done ..."""
    busy_ms: tuple[int, ...]
    """... and the time that workers took for them."""
    helper_jobs: tuple[int, ...] = ()
    """The jobs of helpers of the elastic job that go on; ascending."""
