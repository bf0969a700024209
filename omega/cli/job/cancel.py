"""`omega cancel` and `omega stop`: end jobs.

Goal     End jobs that should not run, and free their capacity.
Promise  If one has ended already or does not exist, exit 1 with a sentence; the others are ended.
Source   SubmitterStore.cancel.
"""

from omega.cli.cell_access import DemoOption, cell_store
from omega.cli.job.each import JobsNamed, each_job
from omega.store.protocols import SubmitterStore
from omega.store.status import JobStatus
from omega.terminal.options import DataDir


def command(jobs: JobsNamed, data_dir: DataDir = None, demo: DemoOption = False) -> None:
    """End jobs and free their room.

    Their programs get their time to stop. All that can be ended are; the exit code is 1 if one
    cannot.
    """
    with cell_store(data_dir, demo=demo) as store:
        each_job(store, jobs, "is cancelled", lambda job: cancelled(store, job))


def cancelled(store: SubmitterStore, job: JobStatus) -> str | None:
    """Cancel a job; return the reason why that cannot be, None if it is done."""
    if store.cancel(job.id):
        return None
    now = store.job(job.id) or job
    return f"job {job.id} is over already: {now.state.value}"
