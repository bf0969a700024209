"""The start state in virtual time: which tasks run where at the start, and when they end.

Goal     End the tasks of a recorded start state at their recorded times, with few events.
Promise  A task runs from time 0 for the duration in its group's spec; without one it does not end.
         For a part of the machines, positions and ids are counted within the part.
Source   docs/decisions/0012-workloads.md; omega.workload.traces.google_2011, whose tasks end.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np
from numpy.typing import NDArray

from omega.model.arrays import Amounts, Ids, Index
from omega.workload.arrivals import MS_PER_S, Prefill


@dataclass(frozen=True, eq=False)
class StartState:
    """Tasks that run at the start on the machines of one cell; columns with a row for each task."""

    job: Ids
    """Negative, from -1 down; ids of arriving jobs count up from 1."""
    task: Index
    machine: Ids
    amounts: Amounts
    ends_s: NDArray[np.float64]
    """Infinite for a task that does not end."""

    @classmethod
    def of(cls, prefill: Prefill, machines: slice) -> "StartState":
        """Return the tasks on the machines at these positions."""
        first, last = machines.start, machines.stop
        here = np.flatnonzero((prefill.machine >= first) & (prefill.machine < last))
        return cls(
            job=-1 - prefill.job[here].astype(np.int64),
            task=prefill.task[here],
            machine=(prefill.machine[here] - first + 1).astype(np.int64),
            amounts=prefill.shapes[prefill.shape[here]],
            ends_s=_ends_s(prefill)[here],
        )

    def __len__(self) -> int:
        return len(self.task)

    def used(self, machines: int) -> Amounts:
        """Return the amounts used on each of so many machines: a new array, (machines, kinds)."""
        used = np.zeros((machines, self.amounts.shape[1]), dtype=np.int64)
        np.add.at(used, self.machine - 1, self.amounts)
        return used

    def by_end(self) -> Iterator[tuple[float, Index]]:
        """Yield each time at which tasks end, and the rows of these tasks; infinity comes last."""
        order = np.argsort(self.ends_s, kind="stable")
        times, first = np.unique(self.ends_s[order], return_index=True)
        for ends_s, (start, stop) in zip(
            times.tolist(), pairwise([*first.tolist(), len(self)]), strict=True
        ):
            yield ends_s, order[start:stop]


def _ends_s(prefill: Prefill) -> NDArray[np.float64]:
    """Return the time at which each task ends: (tasks,)."""
    groups = [group for spec in prefill.jobs for group in spec.groups]
    lasts_s = [inf if one.duration_ms is None else one.duration_ms / MS_PER_S for one in groups]
    of_tasks = np.repeat(np.array(lasts_s), [one.tasks for one in groups])
    first = np.cumsum([0, *(spec.tasks for spec in prefill.jobs)], dtype=np.intp)
    return np.asarray(of_tasks[first[prefill.job] + prefill.task])
