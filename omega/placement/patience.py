"""Patience: how long a job waits for machines that it prefers.

Goal     Let a task wait for a machine that it prefers, for a while, and then run elsewhere.
Promise  While a group is patient, its preferences are constraints. No group waits for machines that
         could not take the job even if the cell were empty, and none once the job is as old as the
         group's patience.
Source   Delay scheduling (Zaharia et al., EuroSys 2010); docs/decisions/0062-preferences.md.
"""

from dataclasses import replace

from omega.cell.view import View
from omega.model.jobs import LeasedJob, TaskGroup
from omega.placement.diagnosis import diagnose
from omega.placement.groups import waiting_groups


def patience_left_ms(job: LeasedJob) -> int:
    """Return for how much longer the most patient of the groups that have unplaced tasks waits."""
    patience_ms = max((group.patience_ms for group in job.spec.groups), default=0)
    if patience_ms <= job.age_ms:
        return 0  # the usual case: no group is asked for its tasks
    left = (job.spec.groups[group].patience_ms - job.age_ms for group in waiting_groups(job))
    return max(0, *left)


def while_patient(view: View, job: LeasedJob) -> LeasedJob:
    """Return the job as it may be placed now: preferences of patient groups are constraints.

    The same job is returned if none of its groups is patient, or if waiting cannot help.
    """
    if not patience_left_ms(job):
        return job
    groups = tuple(
        _strict(group) if group.patience_ms > job.age_ms else group for group in job.spec.groups
    )
    strict = replace(job, spec=replace(job.spec, groups=groups))
    found = diagnose(view, strict)
    return job if found is not None and found.reason.is_permanent else strict


def _strict(group: TaskGroup) -> TaskGroup:
    """Return the group with its preferences as constraints."""
    wanted = tuple(preference.constraint for preference in group.preferences)
    return replace(group, constraints=(*group.constraints, *wanted), preferences=(), patience_ms=0)
