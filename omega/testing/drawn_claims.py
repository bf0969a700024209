"""Draws of claims for the random histories: what a scheduler may ask of a cell.

Goal     Reach every verdict in a plausible history.
Promise  Most claims are for unplaced tasks, on machines that the view shows.
Source   docs/decisions/0003-the-commit-rule.md and 0015-evictions-alternates-machines.md.
"""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from omega.cell.view import View
from omega.model.arrays import integers
from omega.model.claims import Alternates, Claims, Evictions
from omega.model.jobs import LeasedJob
from omega.testing.builders import JobAndClaims, claims_of_job, some_claims
from omega.testing.plain_cell import PlainCell

TASKS_MAX = 4
ANY_TASK = st.integers(0, TASKS_MAX)
"""The largest task index that is drawn is one more than a job can have."""


def some_job_claims(
    cell: PlainCell, job: LeasedJob, view: View, data: st.DataObject
) -> JobAndClaims:
    """Draw claims of a leased job, most of them for unplaced tasks on machines of a view."""
    unplaced = sorted(cell.jobs[job.id].unplaced)
    likely = st.sampled_from(unplaced) if unplaced else ANY_TASK
    tasks = data.draw(st.lists(likely, min_size=1, max_size=5, unique=True))
    tasks += data.draw(st.sampled_from([[], [], [], [data.draw(ANY_TASK)]]))
    beyond = [int(view.id[-1]) + 1_000]
    machines = [data.draw(st.sampled_from([*view.id.tolist() * 5, *beyond])) for _ in tasks]
    at = view.where(integers(machines))
    seen = np.where(at < 0, 0, view.sequence[at])
    cores, slices = data.draw(st.sampled_from([(1, 0), (2, 0), (3, 0), (0, 500), (1, 1_000)]))
    claims = some_claims(tasks, machines, seen=seen.tolist(), cpu_milli=cores * 1_000, gpu_0=slices)
    claims = replace(
        claims,
        alternates=_some_alternates(claims, view, data),
        evictions=_some_evictions(cell, job, claims, data),
    )
    return claims_of_job(job, claims, minimum=data.draw(st.sampled_from([0, 0, len(tasks)])))


def _some_alternates(claims: Claims, view: View, data: st.DataObject) -> Alternates:
    """Draw an alternate for some of the claims."""
    machines = st.sampled_from([0, *view.id.tolist()])
    others = [data.draw(machines) for _ in claims.task]
    named = [
        (claim, machine)
        for claim, machine in enumerate(others)
        if machine not in (0, claims.machine[claim])
    ]
    machine = integers([machine for _, machine in named])
    return Alternates(
        claim=np.array([claim for claim, _ in named], dtype=np.intp),
        machine=machine,
        seen=view.sequence[view.where(machine)],
        shape=np.zeros(len(named), dtype=np.intp),
    )


def _some_evictions(
    cell: PlainCell, job: LeasedJob, claims: Claims, data: st.DataObject
) -> Evictions:
    """Draw evictions for some of the claims, a few of which are not allowed."""
    named = []
    for claim, machine in enumerate(claims.machine.tolist()):
        here = [(other, task) for other, task, place in cell.places() if place == machine]
        lower = [
            (other, task)
            for other, task in here
            if cell.jobs[other].spec.yields_to(cell.precedence_gap) <= job.spec.precedence
        ]
        victim = data.draw(st.sampled_from([None, *lower * 5, *here[:1], None]))
        named += [(claim, *victim)] if victim is not None else []
        named += data.draw(st.sampled_from([[]] * 15 + [[(claim, 1, 0)]]))
    return Evictions(
        claim=np.array([claim for claim, _, _ in named], dtype=np.intp),
        job=integers([job for _, job, _ in named]),
        task=np.array([task for _, _, task in named], dtype=np.intp),
    )
