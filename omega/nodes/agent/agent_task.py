"""One task on a machine, as its agent follows it.

Goal     Say what is to be done next with a task: start, stop, kill, start again, report, drop.
Promise  No I/O: the agent acts, and tells the task what it saw. A task is never started while it
         runs, and its exit is kept until it was reported.
Source   docs/decisions/0044-programs-and-agents.md; after Nomad's task runner.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final

import numpy as np

from omega.model.arrays import Amounts
from omega.model.exits import Exit, ExitCause, TaskExit
from omega.model.jobs import JobSpec
from omega.model.programs import Program, Restart
from omega.nodes.agent.task_driver import TaskKey

SIGNAL_UNKNOWN: Final = "TERM"
GRACE_UNKNOWN_MS: Final = 10_000
"""How a task is stopped whose program is not known any more: the signal, the time to SIGKILL."""
START_AGAIN_S: Final = 0.5
"""The time to the next start of a task whose end was no fault of its own."""


class Phase(Enum):
    """Where a task is in its life on the machine."""

    WAITING = "waiting"  # for room, or for the delay before a restart
    RUNNING = "running"
    STOPPING = "stopping"  # was asked to stop, and is killed at its deadline
    ENDED = "ended"  # its exit is to be reported
    OVER = "over"  # it is not this machine's any more, and nothing of it runs


class StopReason(Enum):
    """Why the agent stops a task."""

    LOST = "lost"  # the cell gave its place away, or its job is over
    TIMEOUT = "timeout"
    UNHEALTHY = "unhealthy"
    FENCED = "fenced"  # the lease is half over, or the agent ends its tasks


@dataclass
class AgentTask:
    """A task that was placed on this machine. Times are seconds of the agent's clock."""

    key: TaskKey
    amounts: Amounts
    """What it holds, (kinds,)."""
    spec: JobSpec | None = None
    """Its job; None until that is read, and of tasks that were lost before."""
    phase: Phase = Phase.WAITING
    starts: int = 0
    """How many starts of it began here, as far as is known."""
    start_due_s: float = 0.0
    ran_before_boot: bool = False
    """Whether its last start was before the machine's: then nothing of it runs."""
    started_s: float | None = None
    """When it was started last; None: never, as far as is known."""
    engine: str = ""
    """The address of the container engine where it was started last; empty of processes."""
    restart: Restart = field(default_factory=Restart)
    """How often it may be started again, as its job said when it was last known."""
    restarts: list[float] = field(default_factory=list)
    """When it was started again, lately: so that it counts for `restart`."""
    restarts_before: int = 0
    """How often it was started again before these."""
    reason: StopReason | None = None
    why: str = ""
    """What is to be said of that reason."""
    kill_due_s: float = 0.0
    exit: Exit | None = None
    addresses: tuple[str, ...] | None = None
    """Where each task of its gang runs, by task, empty of those that are over; None if unknown."""

    steps_done: int | None = None
    """Of a job in steps, how many were on record when it was placed here; None if unknown."""
    run_ms: int = 0
    """Of a job in steps, for how long it had run before its last start."""
    was_put_off: bool = False
    """Whether a start of it was refused by the disk."""

    @property
    def is_described(self) -> bool:
        """Whether all is known that it is to be told when it starts."""
        if self.spec is None:
            return False
        knows_peers = self.addresses is not None or not self.spec.needs_all_tasks
        return knows_peers and (self.steps_done is not None or self.spec.work is None)

    def run_ms_at(self, now_s: float) -> int:
        """Return for how long its job has run, as far as that is seen from this task."""
        if not self.runs or self.started_s is None:
            return self.run_ms
        return self.run_ms + max(0, round((now_s - self.started_s) * 1_000))

    @property
    def program(self) -> Program | None:
        """What it runs; None if it has no program, or if its job is not known."""
        first = 0
        for group in () if self.spec is None else self.spec.groups:
            first += group.tasks
            if self.key.task < first:
                return group.program
        return None

    @property
    def exit_to_report(self) -> TaskExit:
        """How it ended, for the store. It has ended."""
        assert self.exit is not None
        return TaskExit(self.key.job, self.key.task, self.key.started_ms, self.exit)

    @property
    def was_started(self) -> bool:
        """Whether it was started here."""
        return self.started_s is not None

    @property
    def runs(self) -> bool:
        """Whether it was started and its exit was not seen yet."""
        return self.phase in (Phase.RUNNING, Phase.STOPPING)

    @property
    def holds_room(self) -> bool:
        """Whether it runs, or waits to be started again after a failure."""
        return self.runs or (self.phase is Phase.WAITING and self.restarts_made > 0)

    @property
    def restarts_made(self) -> int:
        """How often it was started again after a failure."""
        return self.restarts_before + len(self.restarts)

    @property
    def is_live(self) -> bool:
        """Whether it still belongs to the machine, as far as the agent knows."""
        return self.phase is not Phase.OVER and self.reason is not StopReason.LOST

    def started(self, now_s: float, engine: str = "") -> None:
        """Record that it was started, in this engine if it is a container."""
        assert self.phase is Phase.WAITING
        self.phase, self.started_s, self.engine = Phase.RUNNING, now_s, engine
        self.ran_before_boot = False
        self.starts += 1
        self._note_restart()

    def shown_in(self, engine: str, now_s: float, *, runs: bool) -> bool:
        """Record that the driver of an engine shows it; return whether that is news.

        One that is not known to run was started by an earlier agent, whose record is lost.
        """
        if self.phase is Phase.WAITING and (runs or not self.was_started):
            before = self.starts
            self.started(now_s, engine)
            self.starts = before  # its number is not known
            return True
        is_news = self.runs and self.engine != engine
        if is_news:
            self.engine = engine
        return is_news

    def after_boot(self, now_s: float) -> None:
        """Replace the times, which are of an earlier boot; restarts before it are long ago."""
        self.start_due_s = self.kill_due_s = 0.0
        self.restarts_before, self.restarts = self.restarts_made, []
        self.started_s = None if self.started_s is None else now_s
        self.ran_before_boot = self.runs

    def put_off(self, now_s: float) -> None:
        """Record that it was not started after all, and is to be a little later."""
        assert self.phase is Phase.RUNNING
        self.phase, self.start_due_s = Phase.WAITING, now_s + START_AGAIN_S
        self.was_put_off = True

    def failed_to_start(self, why: str) -> None:
        """Record that its program cannot be started."""
        assert self.phase in (Phase.WAITING, Phase.RUNNING)
        cause = ExitCause.NOT_STARTED
        self.phase = Phase.ENDED
        self.exit = Exit(cause=cause, restarts=self.restarts_made, detail=why)

    def stop(self, reason: StopReason, now_s: float, why: str = "") -> str | None:
        """Record that it is to stop, and why; return the signal to send, if something runs."""
        if self.phase in (Phase.WAITING, Phase.ENDED):
            assert reason is StopReason.LOST
            self.phase = Phase.OVER
        elif self.phase is Phase.STOPPING and reason is StopReason.LOST:
            self.reason = reason
        elif self.phase is Phase.RUNNING:
            program = self.program
            grace_ms = GRACE_UNKNOWN_MS if program is None else program.stop_grace_ms
            self.phase, self.reason, self.why = Phase.STOPPING, reason, why
            self.kill_due_s = now_s + grace_ms / 1_000
            return self._stop_signal
        return None

    def fence(self, kill_due_s: float) -> str | None:
        """Record that nothing of it may run after a moment; return the signal to send, if any."""
        if not self.runs or self.ran_before_boot:
            return None
        is_told = self.phase is Phase.STOPPING
        if not is_told:
            self.phase, self.reason, self.kill_due_s = Phase.STOPPING, StopReason.FENCED, kill_due_s
        self.kill_due_s = min(self.kill_due_s, kill_due_s)
        return None if is_told else self._stop_signal

    def is_too_long(self, now_s: float) -> bool:
        """Return whether it runs longer than it may."""
        program = self.program
        if self.phase is not Phase.RUNNING or program is None or program.timeout_ms is None:
            return False
        assert self.started_s is not None
        return now_s - self.started_s >= program.timeout_ms / 1_000

    def is_to_be_killed(self, now_s: float) -> bool:
        """Return whether its time to stop by itself is over."""
        return self.phase is Phase.STOPPING and now_s >= self.kill_due_s

    def ended(self, seen: Exit, now_s: float) -> None:
        """Record the exit that its driver shows: it ends, waits for its restart, or is over.

        An exit of an earlier start than the last one means that the last one was not made.
        """
        assert self.runs
        self.run_ms = self.run_ms_at(now_s)
        if self.reason is StopReason.LOST:
            self.phase = Phase.OVER
            return
        if seen.restarts < self.starts - 1:
            seen = Exit(cause=ExitCause.LOST, detail="the agent ended before it started it")
        self.starts = max(self.starts, seen.restarts + 1)
        # The machine was restarted, or could not hold its lease: that is no fault of the program.
        is_its_fault = self.reason in (StopReason.TIMEOUT, StopReason.UNHEALTHY)
        is_lost = seen.cause is ExitCause.LOST and not is_its_fault
        if is_lost or self.reason is StopReason.FENCED:
            self.phase, self.reason = Phase.WAITING, None
            self.start_due_s = now_s + START_AGAIN_S
            return
        if self.reason is StopReason.TIMEOUT:
            seen = replace(seen, cause=ExitCause.TIMEOUT, code=None)
        elif self.reason is StopReason.UNHEALTHY:
            seen = replace(seen, cause=ExitCause.UNHEALTHY, code=None, detail=self.why)
        self._note_restart()  # the record of its start may be of an earlier version
        self._drop_old_restarts(now_s)
        if not seen.is_success and len(self.restarts) < self.restart.attempts:
            self.restarts.append(now_s)
            self.phase, self.reason = Phase.WAITING, None
            self.start_due_s = now_s + self.restart.delay_ms / 1_000
            return
        self.phase, self.exit = Phase.ENDED, replace(seen, restarts=self.restarts_made)

    @property
    def _stop_signal(self) -> str:
        return SIGNAL_UNKNOWN if self.program is None else self.program.stop_signal

    def _note_restart(self) -> None:
        if self.program is not None:
            self.restart = self.program.restart

    def _drop_old_restarts(self, now_s: float) -> None:
        """Only count the restarts that are too long ago to count for `restart`."""
        since_s = now_s - self.restart.within_ms / 1_000
        lately = [at for at in self.restarts if at > since_s]
        self.restarts_before, self.restarts = self.restarts_made - len(lately), lately


def room_for(tasks: Iterable[AgentTask], offered: Amounts) -> Amounts:
    """Return what tasks may hold at a time on a machine that offers so much, (kinds,).

    An operator may have said that the machine has more than its agent offers.
    """
    live = (task.amounts for task in tasks if task.is_live)
    return np.maximum(offered, sum(live, start=np.zeros_like(offered)))
