"""What an agent asks its store, as functions of the store.

Goal     Bind the arguments of a call when it is made, and not when it is repeated.
Promise  Each may be repeated.
Source   omega.store.agents.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from omega.model.arrays import Ids, Mask, integers
from omega.model.exits import TaskExit
from omega.model.jobs import JobSpec
from omega.nodes.agent.task_driver import TaskKey
from omega.store.protocols import NodeStore


def if_running(keys: Sequence[TaskKey]) -> Callable[[NodeStore], Mask]:
    """Ask which of these tasks still have their allocations."""
    job, task, started_ms = zip(*((key.job, key.task, key.started_ms) for key in keys), strict=True)
    return lambda store: store.running(
        integers(job), np.array(task, dtype=np.intp), integers(started_ms)
    )


def for_programs(jobs: Ids) -> Callable[[NodeStore], Mapping[int, JobSpec]]:
    """Ask for these jobs."""
    return lambda store: store.programs(jobs)


def to_record(exits: Sequence[TaskExit]) -> Callable[[NodeStore], int]:
    """Report these exits."""
    return lambda store: store.report_exits(exits)
