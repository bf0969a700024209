"""`omega release`: put held jobs back into the queue.

Goal     Let a held job go on.
Promise  What runs goes on. A job that cannot be changed has one sentence on why, and exit code 1.
Source   omega.store.waiting.
"""

from omega.cli.cell_access import DemoOption, cell_store
from omega.cli.job.each import JobsNamed, each_job
from omega.store.status import JobStatus
from omega.terminal.options import DataDir


def command(jobs: JobsNamed, data_dir: DataDir = None, demo: DemoOption = False) -> None:
    """Put held jobs back into the queue."""
    with cell_store(data_dir, demo=demo) as store:

        def act(job: JobStatus) -> str | None:
            return None if store.release(job.id) else f"job {job.id} is not held"

        each_job(store, jobs, "is in the queue again", act)
