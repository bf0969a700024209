"""The GPUs of gangs that make no step, for jobs that are placed beside the rounds.

Goal     Let no model that nobody knows hold GPUs that another job of the kind could use.
Promise  Only a job without room otherwise is placed so, and only as many gangs fall as it needs.
         What gangs that train have been given in this round is not touched.
Source   docs/decisions/0028-rounds-on-the-shared-cell.md.
"""

from collections.abc import Callable, Sequence

import numpy as np

from omega.cell.view import View
from omega.framework.rounds import JobClaims
from omega.model.allocations import Allocations
from omega.model.arrays import Ids
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.placement.preemption import add_evictions

Place = Callable[[View, LeasedJob, np.random.Generator], Claims]


def in_place_of_idle(
    view: View,
    waiting: Sequence[LeasedJob],
    given: Sequence[JobClaims],
    live: Allocations,
    idle: Ids,
    place: Place,
    rng: np.random.Generator,
) -> list[JobClaims]:
    """Return claims for waiting jobs on what gangs without a rate hold, with their evictions.

    `given` are the claims of the gangs that train, judged before these; `idle` are the others that
    run, and `live` has their allocations.
    """
    fallen = {job for its in given for job in its.claims.evictions.job.tolist()}
    left = sorted(set(idle.tolist()) - fallen)
    if not waiting or not left:
        return []
    gone = live.only(np.isin(live.job, sorted(fallen)))
    yields = live.only(np.isin(live.job, left))
    parts: list[tuple[LeasedJob, Claims]] = []
    with view.tentative():
        view.assume_removed(gone.machine, gone.amounts)
        for its in given:
            view.assume_claims(its.claims)
        with view.tentative():
            view.assume_removed(yields.machine, yields.amounts)
            for job in waiting:
                claims = place(view, job, rng)
                view.assume_claims(claims)
                if len(claims):
                    parts.append((job, claims))
        claims_of = add_evictions(view, parts, live, left)
    return [
        JobClaims(job, claims, job.lacking)
        for (job, _), claims in zip(parts, claims_of, strict=True)
    ]
