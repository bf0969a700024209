"""Looks: the machines on which victims are looked for.

Goal     Read who runs on a few machines of many, and miss none that is needed.
Promise  Never more machines than one read takes. The first look draws machines, so that replicas
         name different ones; the second names machines whose yielding tasks are known to be enough.
Source   docs/decisions/0037-who-makes-way.md, 0042-rounds-make-way.md.
"""

from typing import Final

import numpy as np

from omega.cell.view import View
from omega.limits import LIMITS
from omega.model.arrays import Ids, distinct
from omega.model.jobs import LeasedJob
from omega.model.occupants import Yielding
from omega.model.resources import DEVICES
from omega.placement.diagnosis import has_room
from omega.placement.feasibility import room
from omega.placement.groups import waiting_groups

SPARE: Final = 64
"""Machines that are drawn besides two for each task to place."""


def machines_to_look_at(
    view: View, job: LeasedJob, rng: np.random.Generator, *, keeps_gpus: bool = False
) -> Ids:
    """Return machines on which tasks of the job would fit if nothing ran there, at most a thousand.

    Machines that have room as they are come first; of the others some are drawn. With `keeps_gpus`
    only CPU, memory and disk count as free. The result is empty if then not even one task, or what
    the gang lacks, would fit.
    """
    groups = waiting_groups(job)
    first = np.unique(np.concatenate([view.id[room(view, job, group).at] for group in groups]))
    used = view.capacity - view.free
    if keeps_gpus:
        used[:, DEVICES] = 0
    with view.tentative():
        view.assume_removed(view.id, used)
        if keeps_gpus and not has_room(view, job):
            return first[:0]
        fits = np.concatenate([view.id[room(view, job, group).at] for group in groups])
    rest = np.setdiff1d(fits, first)
    wanted = min(2 * len(job.unplaced) + SPARE, LIMITS.occupied_machines_max)
    drawn = rng.permutation(rest)[: max(0, wanted - len(first))]
    return np.sort(np.concatenate([first[:wanted], drawn]))


def machines_that_yield(
    view: View, job: LeasedJob, yielding: Yielding, rng: np.random.Generator
) -> Ids:
    """Return machines on which tasks of the job fit once all that yields is evicted.

    The result is empty if these machines together do not hold what the job needs to progress.
    Otherwise they are at most a thousand, those that hold most of its tasks.
    """
    with view.tentative():
        view.assume_removed(yielding.machine, yielding.amounts)
        if not has_room(view, job):
            return yielding.machine[:0]
        holds = np.zeros(len(view), dtype=np.int64)
        for group in waiting_groups(job):
            there = room(view, job, group)
            holds[there.at] += np.minimum(there.tasks, len(job.unplaced_in(group)))
    at = rng.permutation(holds.nonzero()[0])
    most = at[np.argsort(-holds[at], kind="stable")][: LIMITS.occupied_machines_max]
    return view.id[distinct(most)]
