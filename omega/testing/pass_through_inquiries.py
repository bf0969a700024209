"""A store in front of a store, as far as it explains jobs and shows what was judged.

Goal     The reads of `PassThrough` that tell what happened, and why.
Promise  It changes nothing and keeps nothing.
Source   omega/store/inquiries.py, omega/store/stories.py, omega/store/watching.py.
"""

from omega.store.inquiries import JobTransaction, Line, WaitingJob
from omega.store.protocols import Store
from omega.store.stories import JobRecords, MachineRecords
from omega.store.watching import Judged, QueueLine


class InquiriesPassThrough:
    """Passes reads that explain to another store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def waiting_job(self, job: int) -> WaitingJob | None:
        """Pass on."""
        return self._store.waiting_job(job)

    def line_before(self, scheduler: str, precedence: int, job: int, *, jobs_max: int) -> Line:
        """Pass on."""
        return self._store.line_before(scheduler, precedence, job, jobs_max=jobs_max)

    def transactions_of(self, job: int, *, transactions_max: int) -> list[JobTransaction]:
        """Pass on."""
        return self._store.transactions_of(job, transactions_max=transactions_max)

    def job_records(self, job: int) -> JobRecords:
        """Pass on."""
        return self._store.job_records(job)

    def machine_records(self, machine: int) -> MachineRecords:
        """Pass on."""
        return self._store.machine_records(machine)

    def judged_since(self, mark: int) -> Judged:
        """Pass on."""
        return self._store.judged_since(mark)

    def queue(self) -> list[QueueLine]:
        """Pass on."""
        return self._store.queue()
