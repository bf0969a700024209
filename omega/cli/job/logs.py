"""`omega logs`: what the tasks of a job wrote.

Goal     Read the outputs of tasks, wherever they run or ran.
Promise  The store keeps the end of each output, also of tasks that have ended. With `--follow` it
         ends when the job does, and waits for a store that does not answer. What is not kept is
         said, on standard error.
Source   docs/guide/agents.md.
"""

from enum import Enum
from typing import Annotated, Final

import typer

from omega.cli.cell_access import ReadFrom, cell_reader
from omega.cli.job.following import AWAY_S, Outage, OutputFollower
from omega.cli.job.show import JobNamed, named_job
from omega.clock import RealClock
from omega.errors import OmegaError, StoreUnavailable
from omega.lifecycle.states import FINAL
from omega.processes.stopping import stop_on_signals
from omega.terminal.consoles import warn
from omega.terminal.options import DataDir
from omega.terminal.program_output import standard_outputs

POLL_S: Final = 0.2


class Which(Enum):
    """Which of a task's outputs to print."""

    BOTH = "both"
    STDOUT = "stdout"
    STDERR = "stderr"


def command(
    job: JobNamed,
    task: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Of this task only; from 0.")
    ] = None,
    stream: Annotated[Which, typer.Option(help="Which output.")] = Which.BOTH,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job is over.")
    ] = False,
    data_dir: DataDir = None,
    read_from: ReadFrom = None,
) -> None:
    """Print what a job's tasks wrote.

    Its outputs come as output here, its errors as errors.
    """
    outputs = {
        name: one for name, one in standard_outputs().items() if stream.value in ("both", name)
    }
    with stop_on_signals() as stop, cell_reader(data_dir, read_from) as store:
        status = named_job(store, job)
        if task is not None and task >= status.tasks:
            raise OmegaError(
                f"job {status.id} has no task {task}: they are 0 to {status.tasks - 1}"
            )
        clock = RealClock(stop)
        follower = OutputFollower(store, status.id, outputs, warn, task=task)
        outage = Outage(status.id, warn)
        while True:
            try:
                now = store.job(status.id)
                follower.follow()
            except StoreUnavailable as error:
                if not follow or stop.is_set():
                    raise
                outage.begin(error)
                clock.sleep(AWAY_S)
                continue
            outage.end()
            if not follow or now is None or now.state in FINAL or stop.is_set():
                return
            clock.sleep(POLL_S)
