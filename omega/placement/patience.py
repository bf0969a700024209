"""Patience: how long a job waits for machines that it prefers.

Goal     Let a task wait for a machine that it prefers, for a while, and then run elsewhere.
Promise  While a group is patient, its preferences are constraints. It is patient until its job is
         as old as the group's `patience`. It is not patient at all if no machine that meets its
         preferences could run one of its tasks in an empty cell. Nor are the groups of a gang that
         would not fit an empty cell with their preferences as constraints.
Source   Delay scheduling (Zaharia et al., EuroSys 2010); docs/decisions/0062-preferences.md.
"""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from omega.cell.view import View
from omega.model.jobs import LeasedJob, TaskGroup
from omega.placement.diagnosis import emptied, has_room, with_no_task_placed
from omega.placement.feasibility import room
from omega.placement.groups import waiting_groups


def patient_groups(view: View, job: LeasedJob) -> frozenset[int]:
    """Return the numbers of the groups whose unplaced tasks wait for machines that they prefer."""
    if all(group.patience_ms <= job.age_ms for group in job.spec.groups):
        return frozenset()  # the usual case, found without looking up the unplaced tasks
    empty, anew = emptied(view), with_no_task_placed(job)
    in_time = [g for g in waiting_groups(job) if job.spec.groups[g].patience_ms > job.age_ms]
    patient = frozenset(
        g for g in in_time if len(room(empty, with_preferences_required(anew, [g]), g).at)
    )
    return patient if has_room(empty, with_preferences_required(anew, patient)) else frozenset()


def with_preferences_required(job: LeasedJob, groups: Collection[int]) -> LeasedJob:
    """Return the job with the preferences of these groups as constraints; the same if none."""
    if not groups:
        return job
    parts = tuple(
        _strict(group) if number in groups else group
        for number, group in enumerate(job.spec.groups)
    )
    return replace(job, spec=replace(job.spec, groups=parts))


def patience_left_ms(job: LeasedJob, patient: Collection[int]) -> int:
    """Return for how much longer the most patient of these groups waits; 0 if none waits."""
    waiting = [group for group in patient if len(job.unplaced_in(group))]
    return max((job.spec.groups[group].patience_ms - job.age_ms for group in waiting), default=0)


def impatient_part(job: LeasedJob, patient: Collection[int]) -> LeasedJob:
    """Return the job without the unplaced tasks of the patient groups."""
    if not patient:
        return job
    tasks = np.concatenate([job.unplaced_in(group) for group in patient])
    return replace(job, unplaced=np.setdiff1d(job.unplaced, tasks))


def _strict(group: TaskGroup) -> TaskGroup:
    """Return the group with its preferences as constraints."""
    wanted = tuple(preference.constraint for preference in group.preferences)
    return replace(group, constraints=(*group.constraints, *wanted), preferences=(), patience_ms=0)
