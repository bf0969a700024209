"""The start state in virtual time: which tasks run where as a run begins, and until when.

Goal     Let recorded tasks of the start state end as recorded, in few events.
Promise  A task lasts as long as its group's spec says, from time 0; without a duration it runs on.
         Of a part of the machines, positions and ids are those within the part.
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
    """Tasks that run at the start, on the machines of one cell; columns with a row a task."""

    job: Ids
    """Negative, from -1 on: those that arrive count from 1."""
    task: Index
    machine: Ids
    amounts: Amounts
    ends_s: NDArray[np.float64]
    """Infinite for one that runs on."""

    @classmethod
    def of(cls, prefill: Prefill, machines: slice) -> "StartState":
        """Return what runs on the machines at these positions."""
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
        """Return what is taken of each of so many machines, as a new array."""
        used = np.zeros((machines, self.amounts.shape[1]), dtype=np.int64)
        np.add.at(used, self.machine - 1, self.amounts)
        return used

    def by_end(self) -> Iterator[tuple[float, Index]]:
        """Yield each time at which tasks end, and the rows of those; infinity comes last."""
        order = np.argsort(self.ends_s, kind="stable")
        times, first = np.unique(self.ends_s[order], return_index=True)
        for ends_s, (start, stop) in zip(
            times.tolist(), pairwise([*first.tolist(), len(self)]), strict=True
        ):
            yield ends_s, order[start:stop]


def _ends_s(prefill: Prefill) -> NDArray[np.float64]:
    """Return when each task ends."""
    groups = [group for spec in prefill.jobs for group in spec.groups]
    lasts_s = [inf if one.duration_ms is None else one.duration_ms / MS_PER_S for one in groups]
    of_tasks = np.repeat(np.array(lasts_s), [one.tasks for one in groups])
    first = np.cumsum([0, *(spec.tasks for spec in prefill.jobs)], dtype=np.intp)
    return np.asarray(of_tasks[first[prefill.job] + prefill.task])
