"""Wakeable jobs: which of many parked jobs fit a view together, and their quotas.

Goal     Wake about as many jobs as there is room for: each of thousands may fit by itself where
         there is room for ten.
Promise  Jobs are considered in the order given, each beside those before it. The first that fits by
         itself is always returned. A job that its quota would not admit takes no room, and a job
         without room takes no quota. The result is an estimate, because schedulers choose other
         machines. The view is left unchanged.
Source   docs/decisions/0004-the-job-queue.md, waking. Jobs that are alike are tried in batches: on
         10,000 machines, 10,000 jobs of five shapes take 0.15 s, all different 1.3 s (one core).
"""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from uuid import UUID

import numpy as np

from omega.cell.view import View
from omega.framework.quota_admission import QuotaAdmission
from omega.limits import LIMITS
from omega.model.jobs import LeasedJob
from omega.placement.diagnosis import has_room
from omega.placement.groups import pack, waiting_groups
from omega.store.leases import ParkedJob

BATCHES_MAX = 256
"""The number of batches whose claims are tried on; later jobs must only fit beside those."""

NO_QUOTAS = QuotaAdmission({})
"""Admits every job."""

NO_LEASE = UUID(int=0)
"""The token of a job that is examined without a lease."""


def wakeable(
    view: View, parked: Sequence[ParkedJob], admission: QuotaAdmission = NO_QUOTAS
) -> list[int]:
    """Return, in order, the ids of the jobs that fit beside those before them."""
    known: dict[Hashable, _Alike] = {}
    fit, batches = [], 0
    with view.tentative():
        for whole in parked:
            job = admission.within(whole)
            if job is None:
                continue
            shape = _shape(job)
            alike = known.get(shape) or known.setdefault(shape, _Alike(job))
            if not alike.held and not alike.is_full:
                if batches < BATCHES_MAX:
                    batches += alike.hold_room(view)
                else:
                    alike.held = len(parked) if has_room(view, alike.job) else 0
                    alike.is_full = not alike.held
            if alike.held:
                alike.held -= 1
                admission.admit(job)
                fit.append(job.id)
    return fit


class _Alike:
    """Jobs that need the same room."""

    def __init__(self, example: ParkedJob) -> None:
        self.job = LeasedJob(
            id=example.id,
            token=NO_LEASE,
            spec=example.spec,
            unplaced=example.unplaced,
            placed_task=example.placed_task,
            placed_machine=example.placed_machine,
            placed=example.placed,
        )
        self.held = 0
        """The number of further jobs for which room has been tried on."""
        self.is_full = False
        """Whether there is no room for more than `held` further jobs."""
        self._batch = 1

    def hold_room(self, view: View) -> bool:
        """Try on the claims of one more batch; return whether there is room for any job of it.

        Each batch is twice as large as the one before, so the room that is tried on in advance for
        later jobs is never much more than earlier jobs needed.
        """
        tasks = len(self.job.unplaced)
        if has_room(view, self.job):
            claims = pack(view, _copies(self.job, self._batch))
            # The last job needs only the tasks that its gang lacks, or one; the others get all.
            self.held = (len(claims) - max(1, self.job.lacking)) // tasks + 1
            if self.held:
                view.assume_claims(claims)
        self.is_full = self.held < self._batch
        self._batch = max(1, min(2 * self._batch, LIMITS.claims_per_transaction_max // tasks))
        return self.held > 0


def _shape(job: ParkedJob) -> Hashable:
    """Return a key that is equal for jobs that need the same room."""
    groups = job.spec.groups
    ends = np.cumsum([group.tasks for group in groups])
    waiting = np.bincount(np.searchsorted(ends, job.unplaced, side="right"), minlength=len(groups))
    lacking = max(0, job.spec.minimum - job.placed)
    places = job.placed_task.tobytes(), job.placed_machine.tobytes()
    return groups, lacking, waiting.tobytes(), places


def _copies(job: LeasedJob, copies: int) -> LeasedJob:
    """Return one incremental job with as many tasks as `copies` such jobs have unplaced.

    Tasks that need different machines within their job may share a machine with another job's. In
    the job returned they may share with any, as its tasks stand for several jobs.
    """
    if copies == 1:
        return job
    groups = tuple(
        replace(
            job.spec.groups[group],
            tasks=copies * len(job.unplaced_in(group)),
            different_machines=False,
        )
        for group in waiting_groups(job)
    )
    spec = replace(job.spec, groups=groups, minimum=0, workers=None)
    return LeasedJob(job.id, job.token, spec, np.arange(spec.tasks))
