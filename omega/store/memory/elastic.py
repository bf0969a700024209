"""Elastic jobs in a memory store: their helpers, and the activities that they have done.

Goal     Do what `elastic.sql` does, on plain records.
Promise  A helper that loses its place is over. Helpers end with their parent, in the same call.
Source   docs/decisions/0043-elastic-jobs.md.
"""

from dataclasses import replace

import numpy as np

from omega.errors import BadInput
from omega.lifecycle.states import FINAL, State, Trigger
from omega.limits import LIMITS
from omega.model.arrays import Ids, Mask
from omega.model.elastic_jobs import ElasticJob
from omega.model.jobs import JobSpec, LeasedJob
from omega.store.memory.forced_eviction import ForcedEvictions
from omega.store.memory.job_records import JobRecord


class MemoryElasticJobs(ForcedEvictions):
    """A job queue with elastic jobs."""

    def add_helpers(
        self,
        scheduler: str,
        parent: int,
        tasks: int,
        *,
        precedence: int,
        holder: str,
        lease_ms: int,
    ) -> LeasedJob | None:
        """Make a job of up to so many helpers, of the shape of the parent's tasks, and lease it."""
        if not 1 <= tasks <= LIMITS.tasks_per_job_max:
            raise BadInput(f"bad helpers: {tasks} of them")
        of = self._jobs.get(parent)
        if of is None or of.spec.scheduler != scheduler or of.spec.workers is None:
            return None
        if of.state is not State.RUNNING and not (of.token is not None and of.holder == holder):
            return None
        if precedence >= of.spec.precedence:
            raise BadInput(f"bad helpers: their precedence is not below that of job {parent}")
        has = of.spec.tasks + sum(len(it.slot) - it.ended for it in self._live_helpers(parent))
        added = min(tasks, of.spec.workers.at_most - has)
        if added < 1:
            return None
        number, now_s = len(self._jobs) + 1, self._clock.now()
        spec = _spec_of_helpers(of.spec, added, precedence)
        self._jobs[number] = job = JobRecord.submitted(number, spec, now_s, parent=parent)
        self._helpers.setdefault(parent, []).append(number)
        leased = self._leased_to(holder, job, now_s + lease_ms / 1_000)
        return replace(leased, waited_ms=None)

    def elastic_jobs(self, scheduler: str, *, jobs_max: int) -> list[ElasticJob]:
        """Return the elastic jobs of a kind that go on, oldest first."""
        mine = (
            job
            for job in self._jobs.values()
            if job.spec.scheduler == scheduler
            and job.spec.workers is not None
            and job.state not in FINAL
        )
        return [self._as_elastic(job) for job, _ in zip(mine, range(jobs_max), strict=False)]

    def _as_elastic(self, job: JobRecord) -> ElasticJob:
        live = self._live_helpers(job.id)
        told = [job.of_phases.get(at, (0, 0)) for at in range(len(job.phases))]
        return ElasticJob(
            id=job.id,
            spec=job.spec,
            runs=job.state is State.RUNNING,
            helper_jobs=tuple(it.id for it in live),
            helpers=sum(len(it.slot) - it.ended for it in live),
            done=tuple(done for done, _ in told),
            busy_ms=tuple(busy_ms for _, busy_ms in told),
        )

    def _are_helpers(self, job: Ids, scheduler: str) -> Mask:
        """Return which of these jobs are of helpers of a kind's jobs."""
        known = [self._jobs.get(number) for number in job.tolist()]
        return np.array(
            [
                it is not None and it.parent is not None and it.spec.scheduler == scheduler
                for it in known
            ],
            dtype=np.bool_,
        )

    def _finish_helpers(self, parent: int, trigger: Trigger) -> list[int]:
        """End the helpers of a job that has ended; return the slots that they held."""
        slots: list[int] = []
        for job in self._live_helpers(parent):
            slots += job.slot[job.running].tolist()
            job.placed = job.ended = job.spec.tasks
            job.finish(trigger, self._clock.now())
            self._leased.pop(job.id, None)
        return slots


def _spec_of_helpers(parent: JobSpec, tasks: int, precedence: int) -> JobSpec:
    (group,) = parent.groups
    return replace(
        parent,
        groups=(replace(group, tasks=tasks, patience_ms=0),),
        precedence=precedence,
        minimum=0,
        preemptible=True,
        workers=None,
    )
