"""`omega run`: submit a command, pass on what it writes, and end as it ended.

Goal     Run a command in the cell as if it ran here.
Promise  Ctrl-C and SIGTERM cancel the job. The exit code is the task's; of several tasks the
         highest. Codes of the cell's own: 124 a timeout, 125 the job was cancelled or cannot be
         placed, 127 a program that could not be started, 128 + n the signal n, 137 out of memory.
Source   docs/guide/agents.md; timeout(1) and docker-run(1) for the codes.
"""

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from threading import Event
from typing import Annotated, Final

import typer

from omega.cli.cell_access import cell_store
from omega.cli.job.following import OutputFollower
from omega.clock import Clock, RealClock
from omega.errors import BadInput
from omega.lifecycle.states import FINAL, State
from omega.model.exits import Exit, ExitCause
from omega.model.jobs import JobSpec
from omega.processes.stopping import stop_on_signals
from omega.reports.exits import sentence_of
from omega.reports.jobs import why_waiting
from omega.reports.printable import printable
from omega.reports.processes import live_kinds
from omega.store.protocols import SubmitterStore
from omega.store.status import JobStatus
from omega.terminal.consoles import warnings
from omega.terminal.options import DataDir, read_pairs
from omega.terminal.program import INTERRUPTED
from omega.terminal.program_output import standard_outputs
from omega.workload.spec import parse_specs

POLL_S: Final = 0.05
POLL_S_MAX: Final = 0.5
WAITS_SAID_AFTER_S: Final = 3.0
TIMED_OUT, NOT_RUN, NOT_STARTED, SIGNALLED, KILLED = 124, 125, 127, 128, 137
EXITS_READ: Final = 1_000
EXITS_SAID: Final = 5
OPTIONS: Final = {"--command": "COMMAND", "--constraints": "--constraint", "--groups": "--cpu"}
"""Options whose name is not that of the field of a spec."""


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    words: Annotated[
        list[str], typer.Argument(metavar="COMMAND...", help="The program and its arguments.")
    ],
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The job's; the program's if not given.")
    ] = None,
    scheduler: Annotated[str, typer.Option(metavar="KIND", help="Who places it.")] = "batch",
    tasks: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many; OMEGA_TASK says which.")
    ] = 1,
    gang: Annotated[
        bool, typer.Option("--gang", help="Start all tasks together, or none.")
    ] = False,
    cpu: Annotated[str, typer.Option(metavar="CORES", help="For each task: 2, 0.5 or 500m.")] = "1",
    memory: Annotated[
        str, typer.Option(metavar="SIZE", help="For each task: 512MiB or 4GiB; 0: no limit.")
    ] = "0",
    gpus: Annotated[
        str | None, typer.Option(metavar="N", help="For each task: 1 to 8, or a share: 0.5.")
    ] = None,
    image: Annotated[
        str | None, typer.Option(metavar="IMAGE", help="Run it in a container of this image.")
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A variable for it; can be said again."),
    ] = None,
    working_dir: Annotated[
        str | None, typer.Option(metavar="DIR", help="A folder on the machine that runs it.")
    ] = None,
    timeout: Annotated[
        str | None, typer.Option(metavar="TIME", help="Stop it after 30s, 10m or 2h.")
    ] = None,
    tenant: Annotated[str, typer.Option(metavar="NAME", help="Whose job it is.")] = "default",
    precedence: Annotated[int, typer.Option(metavar="N", help="Higher is served first.")] = 0,
    constraint: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="As in 'zone in a|b'; can be said again."),
    ] = None,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Print the job's number, and do not wait.")
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Run a command in the cell: its output comes here, and its exit code is this one's.

    For example [bold]omega run --cpu 2 --memory 4GiB -- python train.py --lr 0.1[/]
    """
    asked = {
        "cpu": cpu,
        "memory": memory if memory != "0" else 0,
        "gpus": gpus,
        "image": image,
        "env": dict(read_pairs(env or [], option="--env")) or None,
        "working_dir": working_dir,
        "timeout": timeout,
        "constraints": constraint or None,
    }
    spec = _spec(
        {
            "name": name or PurePosixPath(words[0]).name or "run",
            "scheduler": scheduler,
            "tenant": tenant,
            "precedence": precedence,
            **({"minimum": "all"} if gang else {}),
            "groups": [
                {"tasks": tasks, "command": words}
                | {key: value for key, value in asked.items() if value is not None}
            ],
        }
    )
    with stop_on_signals() as stop, cell_store(data_dir) as store:
        (job,) = store.submit([spec])
        if detach:
            warnings().print(f"Job {job} is submitted: omega logs {job} -f", highlight=False)
            return
        code = RunningJob(store, job, RealClock(stop)).wait(stop)
        if code is None:
            store.cancel(job)
            raise typer.Exit(INTERRUPTED)
    raise typer.Exit(code)


def _spec(job: Mapping[str, object]) -> JobSpec:
    """Return a job as a file would describe it. Raises BadInput that names the option."""
    try:
        (spec,) = parse_specs(json.dumps(job), "")
    except BadInput as error:
        field = None if error.field is None else error.field.rpartition(".")[2].partition("[")[0]
        option = None if field is None else f"--{field.replace('_', '-')}"
        raise BadInput(error.sentence, field=OPTIONS.get(str(option), option)) from None
    return spec


class RunningJob:
    """A job that somebody waits for."""

    def __init__(self, store: SubmitterStore, job: int, clock: Clock) -> None:
        self._store = store
        self._job = job
        self._clock = clock
        self._follower = OutputFollower(store, job, standard_outputs(), _say)
        self._told = ""

    def wait(self, stop: Event) -> int | None:
        """Pass outputs on until the job is over; return its exit code, or None if to stop."""
        began_s, pause_s = self._clock.now(), POLL_S
        while True:
            status = self._status()
            printed = self._follower.follow()
            if status.state in FINAL:
                return self._code(status)
            if stop.is_set():
                return None
            if self._clock.now() - began_s > WAITS_SAID_AFTER_S:
                self._tell_why(status)
            pause_s = POLL_S if printed else min(POLL_S_MAX, pause_s * 1.1)
            self._clock.sleep(pause_s)

    def _status(self) -> JobStatus:
        status = self._store.job(self._job)
        assert status is not None, "a job that was submitted is not removed before it is over"
        return status

    def _tell_why(self, status: JobStatus) -> None:
        """Say once for each reason why the job is not placed."""
        why = why_waiting(status, live_kinds(self._store.reports()), self._store.quotas())
        if why is not None and why.reason != self._told:
            self._told = why.reason
            evidence = why.evidence.rstrip(".")
            _say(f"job {self._job} waits: {evidence}. {why.next_step}")

    def _code(self, status: JobStatus) -> int:
        exits = self._store.exits(self._job, exits_max=EXITS_READ)
        failed = [it for it in exits if not it.exit.is_success]
        for it in failed[:EXITS_SAID]:
            if it.exit.cause is not ExitCause.EXITED:
                _say(f"task {it.task} on {it.machine}: {sentence_of(it.exit)}")
        if status.state is State.CANCELLED:
            _say(f"job {self._job} was cancelled")
            return NOT_RUN
        return max((code_of(it.exit) for it in failed), default=0)


def code_of(ended: Exit) -> int:
    """Return the exit code of a process that stands for a task that ended so."""
    match ended.cause:
        case ExitCause.EXITED:
            assert ended.code is not None
            return ended.code
        case ExitCause.TIMEOUT:
            return TIMED_OUT
        case ExitCause.NOT_STARTED:
            return NOT_STARTED
        case ExitCause.OUT_OF_MEMORY:
            return KILLED
        case ExitCause.SIGNALLED if ended.signal is not None:
            return SIGNALLED + ended.signal
        case _:
            return NOT_RUN


def _say(sentence: str) -> None:
    warnings().print(f"omega: {printable(sentence)}", highlight=False, soft_wrap=True)
