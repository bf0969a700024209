"""The progress of jobs in a memory store: steps, and activities of phases.

Goal     Record how far jobs have come, as far as nodes report it.
Promise  What is on record only grows, whatever is reported twice or late.
Source   docs/decisions/0027-jobs-in-steps.md, docs/decisions/0043-elastic-jobs.md.
"""

from omega.lifecycle.states import FINAL
from omega.limits import LIMITS
from omega.model.arrays import Ids, Index, integers
from omega.model.elastic import PhaseProgress
from omega.model.progress import JobProgress
from omega.store.memory.job_records import JobRecord
from omega.store.memory.jobs import MemoryJobs


class MemoryProgress(MemoryJobs):
    """A job queue that knows how far jobs have come."""

    def report_progress(self, job: Ids, steps: Ids, run_ms: Ids) -> None:
        """Note how far jobs in steps have come since they were submitted."""
        for number, made, ran in zip(job.tolist(), steps.tolist(), run_ms.tolist(), strict=True):
            assert min(made, ran) >= 0
            record = self._jobs.get(number)
            if record is None or record.spec.work is None or record.state in FINAL:
                continue
            record.steps = max(record.steps, min(made, record.spec.work.steps))
            record.run_ms = max(record.run_ms, ran)

    def progress(self, job: Ids) -> JobProgress:
        """Read how far those of these jobs have come whose work is counted in steps."""
        known = [self._jobs[number] for number in sorted(self._jobs.keys() & set(job.tolist()))]
        jobs = [(it, it.spec.work) for it in known if it.spec.work is not None]
        return JobProgress(
            job=integers(it.id for it, _ in jobs),
            kind=tuple(work.kind for _, work in jobs),
            wanted=integers(work.steps for _, work in jobs),
            done=integers(it.steps for it, _ in jobs),
            run_ms=integers(it.run_ms for it, _ in jobs),
            tasks=integers(it.spec.tasks for it, _ in jobs),
            since_ms=integers(self._whole_since_ms(it) for it, _ in jobs),
        )

    def report_phases(self, job: Ids, phase: Index, done: Ids, busy_ms: Ids) -> None:
        """Note the activities that elastic jobs have done, and the time that they took."""
        entries = zip(job.tolist(), phase.tolist(), done.tolist(), busy_ms.tolist(), strict=True)
        for number, at, its_done, its_busy_ms in entries:
            assert min(at, its_done, its_busy_ms) >= 0
            record = self._jobs.get(number)
            if record is None or record.state in FINAL or at >= len(record.phases):
                continue
            before, before_ms = record.of_phases.get(at, (0, 0))
            activities = record.phases[at].activities
            record.of_phases[at] = (
                max(before, min(its_done, activities)),
                max(before_ms, min(its_busy_ms, activities * LIMITS.duration_ms_max)),
            )

    def phases(self, job: Ids) -> list[PhaseProgress]:
        """Return the progress of those of these jobs that have phases or help such a job."""
        progress = []
        for number in sorted(self._jobs.keys() & set(job.tolist())):
            of = self._jobs[self._jobs[number].parent or number]
            if of.phases:
                told = [of.of_phases.get(at, (0, 0)) for at in range(len(of.phases))]
                done, busy_ms = zip(*told, strict=True)
                helpers = tuple(it.id for it in self._live_helpers(of.id))
                progress.append(PhaseProgress(number, of.id, of.phases, done, busy_ms, helpers))
        return progress

    def _whole_since_ms(self, job: JobRecord) -> int:
        """Return when the last task of a job was granted; -1 unless all its tasks run."""
        slots = job.slot[job.running]
        if len(slots) < job.spec.tasks:
            return -1
        return int(self._allocations.rows["started_ms"][slots].max())
