"""Making way in a round: tasks of other kinds are evicted for jobs that found no room.

Goal     Let a gang have the CPU and memory beside GPUs that no other gang needs.
Promise  Only tasks of other kinds that yield are named, of jobs that hold no GPU there, and as few
         as `place_with_evictions` finds. Who runs there is read once, and only if a job would fit
         if no CPU, memory or disk were taken.
Source   Omega (EuroSys 2013), section 3.4; docs/decisions/0042-rounds-make-way.md.
"""

from collections.abc import MutableMapping, Sequence
from functools import partial
from typing import Final

import numpy as np

from omega.cell.view import View
from omega.framework.attempt import PlanningContext, occupants_of
from omega.framework.effects import Effects, called
from omega.framework.rounds import JobClaims
from omega.limits import LIMITS
from omega.model.arrays import Ids, Mask, integers
from omega.model.jobs import JobSpec, LeasedJob
from omega.model.occupants import Occupants
from omega.model.resources import DEVICES
from omega.placement.looks import machines_to_look_at
from omega.placement.victims import place_with_evictions

WANTING_MAX: Final = 64
"""Jobs for which one try looks for victims; of more, so many are drawn."""


def claims_that_evict(
    context: PlanningContext,
    view: View,
    wanting: Sequence[LeasedJob],
    rng: np.random.Generator,
    looked_at: MutableMapping[int, tuple[int, JobSpec]],
) -> Effects[list[JobClaims]]:
    """Return claims with evictions for those of the jobs that others can make way for.

    `looked_at` gets, by job, on how many machines victims were looked for, and what was placed.
    """
    machines = integers()
    candidates: list[tuple[LeasedJob, Ids]] = []
    for job in _some(wanting, rng):
        its = machines_to_look_at(view, job, rng, keeps_gpus=True)
        together = np.union1d(machines, its)
        if len(its) and len(together) <= LIMITS.occupied_machines_max:
            machines = together
            candidates.append((job, its))
    if not candidates:
        return []
    read = yield from called("occupants", partial(occupants_of, machines))
    occupants = read.only(_may_go(read, context.scheduler.kind))
    planned: dict[int, JobClaims] = {}
    with view.tentative():
        for job, its in candidates:
            if job.id in planned:
                continue
            looked_at[job.id] = len(its), job.spec
            claims = place_with_evictions(view, job, its, occupants, rng)
            if len(claims):
                planned[job.id] = JobClaims(job, claims, job.lacking)
                occupants = _evicted(view, occupants, occupants.named_in(claims.evictions))
                view.assume_claims(claims)
    return list(planned.values())


def _some(wanting: Sequence[LeasedJob], rng: np.random.Generator) -> list[LeasedJob]:
    """Return the jobs, or as many as one try looks at, in their order."""
    if len(wanting) <= WANTING_MAX:
        return list(wanting)
    drawn = np.sort(rng.choice(len(wanting), WANTING_MAX, replace=False))
    return [wanting[at] for at in drawn.tolist()]


def _may_go(occupants: Occupants, kind: str) -> Mask:
    """Return which tasks may be evicted: of other kinds, and of jobs without GPUs there.

    The round decides itself which jobs of its kind run, and has counted the GPUs that are free.
    """
    of = np.searchsorted(occupants.distinct_job, occupants.job)
    kept = np.array([its == kind for its in occupants.scheduler], dtype=np.bool_)
    kept[of[(occupants.amounts[:, DEVICES] > 0).any(axis=1)]] = True
    return np.asarray(~kept[of])


def _evicted(view: View, occupants: Occupants, gone: Mask) -> Occupants:
    """Free what these tasks hold, and the rest of gangs that break; return the others."""
    for _ in range(2):
        view.assume_removed(occupants.machine[gone], occupants.amounts[gone])
        occupants = occupants.without(gone)
        is_broken = occupants.placed < occupants.minimum
        gone = np.asarray(is_broken[np.searchsorted(occupants.distinct_job, occupants.job)])
    return occupants
