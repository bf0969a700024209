"""Occupied machines: on which of them victims are looked for.

Goal     Name few machines for the store to read who runs there, on which it can be of use.
Promise  A task of the job would fit on each of them if nothing ran there. At most a thousand are
         named: those with room as they are, and of the others some that are drawn, so that replicas
         name different ones and a later attempt sees others.
Source   docs/decisions/0037-who-makes-way.md, 0042-rounds-make-way.md.
"""

from typing import Final

import numpy as np

from omega.cell.view import View
from omega.limits import LIMITS
from omega.model.arrays import Ids
from omega.model.jobs import LeasedJob
from omega.model.resources import DEVICES
from omega.placement.diagnosis import has_room
from omega.placement.feasibility import room
from omega.placement.groups import waiting_groups

SPARE: Final = 64
"""Machines that are looked at besides two for each task to place."""


def machines_to_look_at(
    view: View, job: LeasedJob, rng: np.random.Generator, *, keeps_gpus: bool = False
) -> Ids:
    """Return machines on which tasks of the job would fit if nothing ran there.

    With `keeps_gpus` only CPU, memory and disk are taken for free; the result is empty if then
    not even one task, or what the gang lacks, would fit.
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
