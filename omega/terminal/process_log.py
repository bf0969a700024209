"""The log of a scheduler or of nodes, on standard error, which a supervisor keeps.

Goal     Tell an operator which process met which failure, and when.
Promise  A line has the time, a level and the name of the process. A failure that goes on for the
         same reason is logged at once and then once a minute, with the number of lines left out.
         Texts from elsewhere are made printable. Several threads may log.
Source   docs/decisions/0013-processes.md.
"""

import math
import threading
from typing import Final

from omega.clock import Clock
from omega.events import (
    AgentWarned,
    Event,
    MachinesExpired,
    MemoRefused,
    ProgramEnded,
    RateUnknown,
    StoreCallFailed,
    TurnChanged,
)
from omega.reports.printable import printable, short
from omega.terminal.consoles import warnings

REPEATED_AFTER_S: Final = 60.0
REASONS_MAX: Final = 100
"""How many reasons are remembered; when there are more, all of them are forgotten."""


class ProcessLog:
    """The event sink of a process: logs what its operator should know."""

    def __init__(self, name: str, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        self._lock = threading.Lock()
        self._failures: dict[str, tuple[float, int]] = {}
        """By reason: when it was last logged, and how many failures were left out since."""

    def __call__(self, event: Event) -> None:
        """Log failures that hinder work, and changes of the turn that the process has."""
        match event:
            case StoreCallFailed(what, why):
                self._log_failure(what, why)
            case RateUnknown(why):
                self._log("WARNING", "rates", why)
            case MemoRefused(why):
                self._log("WARNING", "memo", why)
            case AgentWarned(why):
                self._log("WARNING", "tasks", why)
            case MachinesExpired(machines):
                self._log("WARNING", "machines", _expired(machines))
            case TurnChanged(None):
                self._log("INFO", "turn", "none, so everything is read once a gap")
            case TurnChanged((number, of)):
                self._log("INFO", "turn", f"{number + 1}/{of}")
            case ProgramEnded(job, task, how, False):
                self._log("INFO", f"task {task} of job {job}", how)
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
        self._log("WARNING", what, why, again)

    def _log(self, level: str, what: str, why: str, again: str = "") -> None:
        at = self._clock.wall().isoformat(timespec="seconds")
        line = f"{at} {level} {short(self._name)}: {printable(what)}: {printable(why)}{again}"
        warnings().print(line, highlight=False, soft_wrap=True)


def _expired(machines: int) -> str:
    if machines == 1:
        return "1 machine is down: its agent has not renewed its lease"
    return f"{machines:,} machines are down: their agents have not renewed their leases"
