"""How far jobs have come whose work is counted in steps.

Goal     Say of many jobs at once what nodes count, schedulers plan by and users ask for.
Promise  Frozen arrays, one entry a job.
Source   docs/decisions/0027-jobs-in-steps.md.
"""

from dataclasses import dataclass

from omega.model.arrays import Ids, freeze


@dataclass(frozen=True, eq=False)
class JobProgress:
    """Jobs in steps, ascending by id, and how far each has come."""

    job: Ids
    kind: tuple[str, ...]
    """Of the work of each."""
    wanted: Ids
    """Steps after which each is over ..."""
    done: Ids
    """... and those made so far, as far as is on record."""
    run_ms: Ids
    """Time for which all its tasks have run at once, interruptions left out; in the job's own time,
    which a speed-up makes pass faster, as a duration would."""
    tasks: Ids
    """Tasks of the whole gang."""
    since_ms: Ids
    """When the last of its tasks was granted, by the store's clock; -1 while not all run."""

    def __post_init__(self) -> None:
        freeze(self.job, self.wanted, self.done, self.run_ms, self.tasks, self.since_ms)

    def __len__(self) -> int:
        return len(self.job)
