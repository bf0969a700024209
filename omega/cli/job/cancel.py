"""`omega cancel`: end a job.

Goal     End a job that should not run, and free its capacity.
Promise  If the job has ended already or does not exist, exit 1 with a sentence; nothing changes.
Source   SubmitterStore.cancel.
"""

from omega.cli.cell_access import DemoOption, cell_store
from omega.cli.job.show import JobId
from omega.errors import OmegaError
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir


def command(job_id: JobId, data_dir: DataDir = None, demo: DemoOption = False) -> None:
    """End a job and free its room."""
    with cell_store(data_dir, demo=demo) as store:
        cancelled = store.cancel(job_id)
        job = None if cancelled else store.job(job_id)
    if cancelled:
        Output().console.print(f"Job {job_id} is cancelled.", highlight=False)
    elif job is None:
        raise OmegaError(f"there is no job {job_id}")
    else:
        raise OmegaError(f"job {job_id} is over already: {job.state.value}")
