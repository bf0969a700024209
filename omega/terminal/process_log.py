"""The log of a scheduler or of nodes, on standard error, which a supervisor keeps.

Goal     Tell an operator which process met which failure, and when, and what it does meanwhile.
Promise  A line has the time, a level and the name of the process: as text on a terminal, as one
         JSON object elsewhere. A failure that goes on for the same reason is logged at once and
         then once a minute, with the number of lines left out. What is done is summed up once a
         minute; each transaction has a line at the level debug only. Texts from elsewhere are made
         printable. Several threads may log.
Source   docs/decisions/0013-processes.md; docs/decisions/0005-events.md.
"""

import json
import math
import threading
from enum import Enum
from typing import Final

from omega.clock import Clock
from omega.events import (
    AgentWarned,
    Event,
    JobParked,
    JobsRescued,
    JobsWoken,
    MachinesExpired,
    MemoRefused,
    ProcessReported,
    ProgramEnded,
    RateUnknown,
    RecordingStopped,
    StoreCallFailed,
    TasksEnded,
    TasksEvicted,
    TasksLost,
    TransactionJudged,
    TurnChanged,
)
from omega.reports.printable import printable, short
from omega.reports.wording import duration, things
from omega.terminal.consoles import warnings
from omega.terminal.log_minute import LogMinute

REPEATED_AFTER_S: Final = 60.0
SUMMARY_AFTER_S: Final = 60.0
REASONS_MAX: Final = 100
"""How many reasons are remembered; when there are more, all of them are forgotten."""


class LogLevel(Enum):
    """The least serious lines that a process logs."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"


class LogFormat(Enum):
    """The form of a line."""

    AUTO = "auto"
    TEXT = "text"
    JSON = "json"


SERIOUSNESS: Final = {level: number for number, level in enumerate(LogLevel)}


class ProcessLog:
    """The event sink of a process: logs what its operator should know."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        level: LogLevel = LogLevel.INFO,
        form: LogFormat = LogFormat.AUTO,
    ) -> None:
        self._name = name
        self._clock = clock
        self._level = level
        self._is_json = form is LogFormat.JSON
        if form is LogFormat.AUTO:
            self._is_json = not warnings().is_terminal
        self._lock = threading.Lock()
        self._minute = LogMinute(clock.now())
        self._is_at_work = False
        self._failures: dict[str, tuple[float, int]] = {}
        """By reason: when it was last logged, and how many failures were left out since."""

    def __call__(self, event: Event) -> None:
        """Log failures that hinder work, a summary once a minute, and more at the level debug."""
        if self._level is not LogLevel.WARNING:
            with self._lock:
                self._minute.count(event)
        if self._level is LogLevel.DEBUG:
            self._log_detail(event)
        match event:
            case ProcessReported():
                self._summarise()
            case StoreCallFailed(what, why):
                self._log_failure(what, why)
            case _:
                if (line := _problem(event)) is not None:
                    self._log(LogLevel.WARNING, *line)
                elif (line := _news(event)) is not None:
                    self._log(LogLevel.INFO, *line)

    def _summarise(self) -> None:
        """Log the summary if it is due; say once that the process works."""
        now_s = self._clock.now()
        with self._lock:
            is_first, self._is_at_work = not self._is_at_work, True
            last = self._minute
            is_due = now_s - last.began_s >= SUMMARY_AFTER_S
            if is_due:
                self._minute = LogMinute(now_s)
        if is_first:
            self._log(LogLevel.INFO, "start", "at work; a summary follows each minute")
        if is_due:
            self._log(LogLevel.INFO, "minute", last.text(now_s), figures=last.figures(now_s))

    def _log_detail(self, event: Event) -> None:
        """Log an event that is of interest to who looks for a fault."""
        match event:
            case TransactionJudged():
                self._log(LogLevel.DEBUG, "transaction", _judged(event), figures=_figures(event))
            case JobParked(job, reason):
                self._log(LogLevel.DEBUG, f"job {job}", f"parked: {reason}")
            case JobsWoken(jobs):
                self._log(LogLevel.DEBUG, "queue", f"{things(jobs, 'parked job')} woken")
            case TasksEvicted(job, tasks, evictor):
                said = f"{things(tasks, 'task')} evicted for job {evictor}"
                self._log(LogLevel.DEBUG, f"job {job}", said)
            case TasksEnded(tasks) if tasks:
                self._log(LogLevel.DEBUG, "tasks", f"{tasks:,} ended")
            case ProgramEnded(job, task, how, True):
                self._log(LogLevel.DEBUG, f"task {task} of job {job}", how)
            case _:
                pass

    def _log_failure(self, what: str, why: str) -> None:
        now_s = self._clock.now()
        with self._lock:
            logged_s, left_out = self._failures.get(why, (-math.inf, 0))
            if now_s - logged_s < REPEATED_AFTER_S:
                self._failures[why] = logged_s, left_out + 1
                return
            if len(self._failures) >= REASONS_MAX:
                self._failures.clear()
            self._failures[why] = now_s, 0
        again = f" ({left_out:,} more since it was last said)" if left_out else ""
        self._log(LogLevel.WARNING, what, why, again=again)

    def _log(
        self,
        level: LogLevel,
        what: str,
        why: str,
        *,
        again: str = "",
        figures: dict[str, float] | None = None,
    ) -> None:
        if SERIOUSNESS[level] < SERIOUSNESS[self._level]:
            return
        at = self._clock.wall().isoformat(timespec="seconds")
        if self._is_json:
            said = {
                "at": at,
                "level": level.value,
                "process": short(self._name),
                "about": printable(what),
                "message": printable(why) + again,
                **(figures or {}),
            }
            warnings().print_whole(json.dumps(said))
            return
        line = f"{at} {level.name} {short(self._name)}: {printable(what)}: {printable(why)}{again}"
        warnings().print(line, highlight=False, soft_wrap=True)


def _problem(event: Event) -> tuple[str, str] | None:
    """Return what an event that hinders work is about, and its sentence; None for others."""
    match event:
        case RateUnknown(why):
            return "rates", why
        case MemoRefused(why):
            return "memo", why
        case RecordingStopped(why):
            return "recording", f"it has ended, and the scheduler goes on: {why}"
        case AgentWarned(why):
            return "tasks", why
        case MachinesExpired(machines):
            return "machines", _expired(machines)
        case _:
            return None


def _news(event: Event) -> tuple[str, str] | None:
    """Return what a rare event is about, and its sentence; None for others."""
    match event:
        case TasksLost(tasks, why):
            return "machines", f"{things(tasks, 'task')} lost: {why}"
        case JobsRescued(jobs):
            return "rescue", f"{things(jobs, 'job')} back in the queue: the lease had run out"
        case TurnChanged(None):
            return "turn", "none, so everything is read once a gap"
        case TurnChanged((number, of)):
            return "turn", f"{number + 1}/{of}"
        case ProgramEnded(job, task, how, False):
            return f"task {task} of job {job}", how
        case _:
            return None


def _expired(machines: int) -> str:
    if machines == 1:
        return "1 machine is down: its agent has not renewed its lease"
    return f"{machines:,} machines are down: their agents have not renewed their leases"


def _judged(event: TransactionJudged) -> str:
    """Return what became of a transaction, in words."""
    refused = ", ".join(f"{claims:,} {short(verdict)}" for verdict, claims in event.refused.items())
    parts = [
        f"{things(event.jobs, 'job')}, {things(event.accepted, 'task')} placed",
        f"refused: {refused}" if refused else "nothing refused",
        f"{things(event.evicted, 'task')} evicted" if event.evicted else "",
        f"decided in {duration(event.thought_s)}, committed in {duration(event.took_s)}",
    ]
    return "; ".join(part for part in parts if part)


def _figures(event: TransactionJudged) -> dict[str, float]:
    return {
        "jobs": event.jobs,
        "jobs_conflicted": event.jobs_conflicted,
        "tasks_placed": event.accepted,
        "tasks_evicted": event.evicted,
        "claims_refused": sum(event.refused.values()),
        "thought_s": round(event.thought_s, 6),
        "took_s": round(event.took_s, 6),
    }
