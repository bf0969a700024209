"""How far jobs have come whose work is counted in steps.

Goal     Say of many jobs at once what nodes count, schedulers plan by and users ask for.
Promise  Frozen arrays, one entry per job.
Source   docs/decisions/0027-jobs-in-steps.md.
"""

from dataclasses import dataclass

from omega.model.arrays import Ids, freeze


@dataclass(frozen=True, eq=False)
class JobProgress:
    """Jobs in steps, ascending by id, and how far each has come."""

    job: Ids
    kind: tuple[str, ...]
    """The kind of each job's work."""
    wanted: Ids
    """The number of steps after which each job has ended ..."""
    done: Ids
    """... and the steps recorded so far."""
    run_ms: Ids
    """How long all tasks of the job have run at once, without interruptions. It is in the job's
    time, which a speed-up of the nodes makes faster than real time, as for durations."""
    tasks: Ids
    """The number of the job's tasks."""
    since_ms: Ids
    """When the last of its tasks was granted, by the store's clock; -1 while not all tasks run."""

    def __post_init__(self) -> None:
        freeze(self.job, self.wanted, self.done, self.run_ms, self.tasks, self.since_ms)

    def __len__(self) -> int:
        return len(self.job)
