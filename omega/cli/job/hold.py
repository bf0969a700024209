"""`omega hold`: keep jobs from being placed.

Goal     Set a job aside without losing its place in the history of the queue.
Promise  What runs goes on. A job that cannot be changed has one sentence on why, and exit code 1.
Source   omega.store.waiting.
"""

from omega.cli.cell_access import DemoOption, cell_store
from omega.cli.job.each import JobsNamed, each_job
from omega.cli.job.waiting import why_not
from omega.store.status import JobStatus
from omega.terminal.options import DataDir


def command(jobs: JobsNamed, data_dir: DataDir = None, demo: DemoOption = False) -> None:
    """Keep jobs from being placed until they are released.

    Tasks that run go on.
    """
    with cell_store(data_dir, demo=demo) as store:

        def act(job: JobStatus) -> str | None:
            return None if store.hold(job.id) else why_not(store, job)

        each_job(store, jobs, "is held", act)
