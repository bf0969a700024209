"""`omega cancel` and `omega stop`: end a job.

Goal     End a job that should not run, and free its capacity.
Promise  If the job has ended already or does not exist, exit 1 with a sentence; nothing changes.
Source   SubmitterStore.cancel.
"""

from omega.cli.cell_access import DemoOption, cell_store
from omega.cli.job.show import JobNamed, named_job
from omega.errors import OmegaError
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir


def command(job: JobNamed, data_dir: DataDir = None, demo: DemoOption = False) -> None:
    """End a job and free its room.

    Its programs get their time to stop.
    """
    with cell_store(data_dir, demo=demo) as store:
        status = named_job(store, job)
        if not store.cancel(status.id):
            now = store.job(status.id) or status
            raise OmegaError(f"job {status.id} is over already: {now.state.value}")
    Output().console.print(f"Job {status.id} is cancelled.", highlight=False)
