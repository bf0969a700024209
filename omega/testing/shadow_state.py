"""The auditor's shadow state: what must be true of a cell, whatever its store says.

Goal     Keep tasks, use and counters apart from the checks that compare them.
Promise  It is computed only from what callers were told.
Source   TigerBeetle's auditor; omega/testing/auditor.py.
"""

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from omega.errors import InvariantBroken
from omega.model.arrays import Amounts
from omega.model.resources import KINDS, named
from omega.store.protocols import Store

STORY_LINES_MAX = 30


@dataclass(frozen=True, eq=False)
class Held:
    """The machine and the amounts of one task."""

    machine: int
    amounts: Amounts


class ShadowState:
    """What must be true of a cell, computed from what its callers were told."""

    def __init__(self, store: Store) -> None:
        self.live: dict[int, dict[int, Held]] = defaultdict(dict)
        """By job and task, the machine and amounts of running tasks."""
        self.over: dict[int, set[int]] = defaultdict(set)
        """By job, the tasks that have ended."""
        self.used: dict[int, Amounts] = defaultdict(lambda: np.zeros(KINDS, dtype=np.int64))
        self.counters: dict[int, tuple[int, int]] = {}
        """By machine, its sequence and revision."""
        self.states: dict[int, int] = {}
        self.tolerated: dict[int, Amounts] = {}
        """By resized machine, what may be used above its capacity."""
        self.stories: dict[int, deque[str]] = defaultdict(lambda: deque(maxlen=STORY_LINES_MAX))
        live = store.allocations()
        entries = zip(live.job.tolist(), live.task.tolist(), live.machine.tolist(), strict=True)
        for at, (job, task, machine) in enumerate(entries):
            self.grant(job, task, machine, live.amounts[at])

    def placed(self, job: int) -> int:
        """Return how many tasks of a job have a place or have ended."""
        return len(self.live[job]) + len(self.over[job])

    def grant(self, job: int, task: int, machine: int, amounts: Amounts) -> None:
        """Enter an allocation; fail if the task has one already or has ended."""
        if task in self.live[job] or task in self.over[job]:
            self.fail(machine, f"task {task} of job {job} was granted twice")
        self.live[job][task] = Held(machine, amounts)
        self.used[machine] = self.used[machine] + amounts
        self.tell(machine, f"granted to task {task} of job {job}: {named(amounts)}")

    def end(self, job: int, task: int) -> bool:
        """Remove the allocation of a task that has ended; return whether it had one."""
        if not self.unplace(job, task, "ended"):
            return False
        self.over[job].add(task)
        return True

    def fail_gang(self, job: int) -> None:
        """Remove the allocations of a gang that has failed: it holds nothing any more."""
        for task in list(self.live[job]):
            self.end(job, task)

    def unplace(self, job: int, task: int, why: str) -> bool:
        """Remove the allocation of a task that may be placed again; return whether it had one."""
        held = self.live[job].pop(task, None)
        if held is None:
            return False
        self.used[held.machine] = self.used[held.machine] - held.amounts
        self.tell(held.machine, f"{why} task {task} of job {job}: {named(held.amounts)}")
        return True

    def tell(self, machine: int, line: str) -> None:
        """Add a line to the events of a machine."""
        self.stories[machine].append(line)

    def fail(self, machine: int, what: str) -> NoReturn:
        """Raise InvariantBroken with the last events of a machine."""
        raise InvariantBroken(f"machine {machine}: {what}", story=tuple(self.stories[machine]))
