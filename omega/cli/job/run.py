"""`omega run`: submit a command, pass on what it writes, and end as it ended.

Goal     Run a command in the cell as if it ran here.
Promise  Ctrl-C and SIGTERM cancel the job, and so does an output that nobody reads any more. If it
         may still run when this command ends, that is said. The exit code is the task's; of several
         tasks the highest. Codes of the cell's own: 124 a timeout, 125 the job was cancelled, 127 a
         program that could not be started, 128 + n the signal n, 137 out of memory.
Source   docs/guide/agents.md; timeout(1) and docker-run(1) for the codes.
"""

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event
from typing import Annotated, Final
from uuid import uuid4

import typer

from omega.cli.cell_access import cell_store
from omega.cli.job.following import AWAY_S, Outage, OutputFollower
from omega.cli.job.planned import PlanFile, commit_plan
from omega.cli.job.run_plan import RunPlan
from omega.clock import Clock, RealClock
from omega.errors import BadInput, OmegaError, StoreUnavailable
from omega.framework.kinds import startable_kinds
from omega.lifecycle.states import FINAL, State
from omega.model.exits import Exit, ExitCause
from omega.processes.stopping import stop_on_signals
from omega.reports.exits import sentence_of
from omega.reports.jobs import why_waiting
from omega.reports.plan_file import read_plan
from omega.reports.processes import live_kinds
from omega.store.protocols import Store, SubmitterStore
from omega.store.status import JobStatus
from omega.terminal.consoles import Output, warn
from omega.terminal.dataclass_options import takes
from omega.terminal.options import DataDir
from omega.terminal.program import INTERRUPTED
from omega.terminal.program_output import standard_outputs

POLL_S_FIRST: Final = 0.02
"""The pause after the first look at the outputs; those after it grow."""
POLL_S: Final = 0.05
POLL_S_MAX: Final = 0.5
WAITS_SAID_AFTER_S: Final = 3.0
"""For so long nothing of the job has run."""
FAILED, TIMED_OUT, NOT_RUN, NOT_STARTED, SIGNALLED, KILLED = 1, 124, 125, 127, 128, 137
EXITS_READ: Final = 1_000
EXITS_SAID: Final = 5


@takes(RunPlan)
def command(
    plan: RunPlan,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="COMMAND...", help="The program and its arguments."),
    ] = None,
    plan_file: PlanFile = None,
    detach: Annotated[
        bool, typer.Option("--detach", "-d", help="Print the job's number, and do not wait.")
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Run a command in the cell; output and exit code come back here.

    For example [bold]omega run --cpu 2 --memory 4GiB -- python train.py --lr 0.1[/]

    With --plan, the job of a plan gets exactly the places that were planned.
    """
    submit = _asked(plan, words or [], plan_file)
    with stop_on_signals() as stop, cell_store(data_dir) as store:
        job = submit(store)
        if detach:
            Output().console.print(str(job), highlight=False)
            return
        try:
            code = _code_of(store, job, RealClock(stop), stop)
        except (KeyboardInterrupt, OmegaError):
            warn(f"job {job} may still run: omega stop {job}")
            raise
    raise typer.Exit(code)


def _code_of(store: SubmitterStore, job: int, clock: Clock, stop: Event) -> int:
    """Wait for a job and return its exit code; cancel it if nobody waits for it any more."""
    try:
        code = RunningJob(store, job, clock).wait(stop)
    except BrokenPipeError:
        code = SIGNALLED + signal.SIGPIPE
    except OSError as error:
        warn(f"job {job} is cancelled: its output cannot be written: {error.strerror}")
        code = FAILED
    else:
        if code is not None:
            return code
        code = INTERRUPTED
    store.cancel(job)
    return code


def _asked(plan: RunPlan, words: Sequence[str], plan_file: Path | None) -> Callable[[Store], int]:
    """Return a function that submits what was asked for, and returns the job. Raises BadInput."""
    if plan_file is None:
        if not words:
            raise BadInput("name a program to run, or a plan by --plan", field="COMMAND")
        spec = plan.spec(words)
        return lambda store: store.submit([spec])[0]
    if words or plan != RunPlan():
        raise BadInput("the plan says all of the job: give nothing else of it", field="--plan")
    planned, names = read_plan(plan_file, uuid4())
    return lambda store: commit_plan(store, planned, names)


class RunningJob:
    """A job that somebody waits for."""

    def __init__(self, store: SubmitterStore, job: int, clock: Clock) -> None:
        self._store = store
        self._job = job
        self._clock = clock
        self._follower = OutputFollower(store, job, standard_outputs(), warn)
        self._outage = Outage(job, warn)
        self._told = ""
        self._idle_since_s = clock.now()
        self._ended = 0
        self._pause_s = POLL_S_FIRST

    def wait(self, stop: Event) -> int | None:
        """Pass outputs on until the job is over; return its exit code, or None if to stop.

        A store that does not answer is asked again. Raises OSError if an output cannot be written.
        """
        while True:
            try:
                code, pause_s = self._look()
            except StoreUnavailable as error:
                self._outage.begin(error)
                code, pause_s = None, AWAY_S
            if code is not None or stop.is_set():
                return code
            self._clock.sleep(pause_s)

    def _look(self) -> tuple[int | None, float]:
        """Pass on what is new; return the exit code of a job that is over, and the next pause."""
        status = self._status()
        self._outage.end()
        if status.placed > status.ended or status.ended > self._ended:
            self._idle_since_s, self._ended = self._clock.now(), status.ended
        printed = self._follower.follow()
        if status.state in FINAL:
            return self._code(status), 0.0
        if self._clock.now() - self._idle_since_s > WAITS_SAID_AFTER_S:
            self._tell_why(status)
        pause_s = POLL_S if printed else self._pause_s
        self._pause_s = POLL_S if printed else min(POLL_S_MAX, self._pause_s * 1.1)
        return None, pause_s

    def _status(self) -> JobStatus:
        status = self._store.job(self._job)
        if status is None:
            raise OmegaError(f"job {self._job} is not on record any more")
        return status

    def _tell_why(self, status: JobStatus) -> None:
        """Say once for each reason why the job is not placed."""
        why = why_waiting(
            status,
            live_kinds(self._store.reports()),
            self._store.quotas(),
            startable=startable_kinds(),
        )
        if why is not None and why.reason != self._told:
            self._told = why.reason
            evidence = why.evidence.rstrip(".")
            warn(f"job {self._job} waits: {evidence}. {why.next_step}")

    def _code(self, status: JobStatus) -> int:
        exits = self._store.exits(self._job, exits_max=EXITS_READ)
        failed = [it for it in exits if not it.exit.is_success]
        for it in failed[:EXITS_SAID]:
            if it.exit.cause is not ExitCause.EXITED:
                warn(f"task {it.task} on {it.machine}: {sentence_of(it.exit)}")
        if status.state is State.CANCELLED:
            warn(f"job {self._job} was cancelled")
            return NOT_RUN
        # How tasks ended may have been pruned while others of the job ran.
        unknown = FAILED if status.state is State.FAILED else 0
        return max((code_of(it.exit) for it in failed), default=unknown)


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
