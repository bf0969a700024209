"""What an agent asks its store, as functions of the store.

Goal     Bind the arguments of a call when it is made, and not when it is repeated.
Promise  Each may be repeated.
Source   omega.store.agents.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from omega.framework.effects import Effects
from omega.limits import LIMITS
from omega.model.arrays import Ids, Mask, integers
from omega.model.exits import TaskExit
from omega.model.jobs import JobSpec
from omega.model.progress import JobProgress
from omega.nodes.agent.task_driver import TaskKey
from omega.nodes.calling import called, parts_for_calls
from omega.store.protocols import NodeStore


def if_running(keys: Sequence[TaskKey]) -> Callable[[NodeStore], Mask]:
    """Ask which of these tasks still have their allocations."""
    job, task, started_ms = zip(*((key.job, key.task, key.started_ms) for key in keys), strict=True)
    return lambda store: store.running(
        integers(job), np.array(task, dtype=np.intp), integers(started_ms)
    )


def specs_of(jobs: Iterable[int]) -> Effects[dict[int, JobSpec]]:
    """Read those of these jobs that run here and that this program can read."""
    specs: dict[int, JobSpec] = {}
    unread = sorted(jobs)
    while unread:
        part = unread[: LIMITS.tasks_per_release_max]
        read = yield from called("programs", _for_programs(integers(part)))
        specs.update(read)
        # Of large jobs one call returns only some. If it returns none, there is nothing to return.
        unread = [job for job in unread if job not in read] if read else unread[len(part) :]
    return specs


def _for_programs(jobs: Ids) -> Callable[[NodeStore], Mapping[int, JobSpec]]:
    return lambda store: store.programs(jobs)


def addresses_of(jobs: Iterable[int]) -> Effects[dict[int, Mapping[int, str]]]:
    """Read where the tasks of these gangs run, by job and task."""
    found: dict[int, Mapping[int, str]] = {}
    wanted = sorted(jobs)
    for part in parts_for_calls(len(wanted)):
        found.update((yield from called("addresses", _for_addresses(integers(wanted[part])))))
    return found


def _for_addresses(jobs: Ids) -> Callable[[NodeStore], Mapping[int, Mapping[int, str]]]:
    return lambda store: store.addresses(jobs)


def progress_of(jobs: Iterable[int]) -> Effects[dict[int, tuple[int, int]]]:
    """Read of these jobs in steps how many they have made, and their milliseconds."""
    found: dict[int, tuple[int, int]] = {}
    wanted = sorted(jobs)
    for part in parts_for_calls(len(wanted)):
        told = yield from called("progress", _for_progress(integers(wanted[part])))
        columns = (told.job.tolist(), told.done.tolist(), told.run_ms.tolist())
        found.update((job, (done, run_ms)) for job, done, run_ms in zip(*columns, strict=True))
    return found


def _for_progress(jobs: Ids) -> Callable[[NodeStore], JobProgress]:
    return lambda store: store.progress(jobs)


def to_record(exits: Sequence[TaskExit]) -> Callable[[NodeStore], int]:
    """Report these exits."""
    return lambda store: store.report_exits(exits)
