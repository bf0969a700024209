"""What an agent must know of its tasks after it was killed: a small file each.

Goal     Take tasks up again where an earlier agent left them.
Promise  A file is whole or absent. What cannot be read counts as absent. Times are seconds since
         the machine's boot, and a record names the boot: times of another one are not used. The
         records of tasks that run name every engine where containers of the agent may run; records
         of earlier versions name none.
Source   docs/decisions/0044-programs-and-agents.md.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from omega.limits import LIMITS
from omega.model.arrays import integers
from omega.model.exits import CODE_MAX, SIGNAL_MAX, Exit, ExitCause
from omega.model.programs import Restart
from omega.model.resources import KINDS
from omega.nodes.agent.agent_task import AgentTask, Phase, StopReason
from omega.nodes.agent.linux_processes import boot_id
from omega.nodes.agent.small_files import read_small, write_small
from omega.nodes.agent.task_driver import TaskKey

RECORDS: Final = "records"
"""The folder of the records, in an agent's."""
SUFFIX: Final = ".json"
RECORD_BYTES_MAX: Final = 2**20


class Records:
    """The records of one agent's tasks, in a folder that is the agent's alone."""

    def __init__(self, folder: Path, warn: Callable[[str], None] = lambda sentence: None) -> None:
        """`warn` is told when the disk takes no record, and when it does so again."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._warn = warn
        self._fails = False

    def write(self, task: AgentTask) -> bool:
        """Write a task's record, in place of an earlier one; return False if the disk refuses."""
        record = {
            "amounts": task.amounts.tolist(),
            "phase": task.phase.value,
            "boot": boot_id(),
            "starts": task.starts,
            "start_due_s": task.start_due_s,
            "started_s": task.started_s,
            "engine": task.engine,
            "restart": vars(task.restart),
            "restarts": task.restarts,
            "restarts_before": task.restarts_before,
            "reason": None if task.reason is None else task.reason.value,
            "why": task.why,
            "kill_due_s": task.kill_due_s,
            "addresses": task.addresses,
            "steps_done": task.steps_done,
            "run_ms": task.run_ms,
            "exit": None if task.exit is None else _exit_to_json(task.exit),
        }
        try:
            write_small(self._path(task.key), json.dumps(record))
        except OSError as error:
            if not self._fails:
                self._warn(f"records of tasks cannot be written: {error.strerror}")
            self._fails = True
            return False
        if self._fails:
            self._warn("records of tasks can be written again")
        self._fails = False
        return True

    def remove(self, key: TaskKey) -> None:
        """Remove a task's record; harmless if there is none."""
        self._path(key).unlink(missing_ok=True)

    def read(self, now_s: float) -> Iterator[AgentTask]:
        """Return the tasks of all records, by key, at a time of the agent's clock."""
        return _read_all(self._folder, now_s)

    def _path(self, key: TaskKey) -> Path:
        return self._folder / f"{key}{SUFFIX}"


def engines_of(folder: Path) -> list[str]:
    """Return the addresses of the engines of the tasks that run, by the records of a folder."""
    tasks = _read_all(folder, now_s=0.0)  # no time matters here
    return sorted({task.engine for task in tasks if task.runs and task.engine})


def _read_all(folder: Path, now_s: float) -> Iterator[AgentTask]:
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        if (task := _read(path, now_s)) is not None:
            yield task


def _read(path: Path, now_s: float) -> AgentTask | None:
    try:
        key = TaskKey.of_text(path.name.removesuffix(SUFFIX))
        said = json.loads(read_small(path, RECORD_BYTES_MAX) or "")
        amounts = integers(said["amounts"])
        phase = Phase(said["phase"])
        if amounts.shape != (KINDS,) or (amounts < 0).any():
            return None
        if phase is Phase.ENDED and said.get("exit") is None:
            phase = Phase.RUNNING  # of an earlier version: its driver still has the exit
        started_s = None if said["started_s"] is None else float(said["started_s"])
        task = AgentTask(
            key,
            np.asarray(amounts),
            phase=phase,
            starts=int(said.get("starts", len(said["restarts"]) + (started_s is not None))),
            start_due_s=float(said["start_due_s"]),
            started_s=started_s,
            engine=str(said.get("engine", "")),
            restart=_restart_of_json(said["restart"]) if "restart" in said else Restart(),
            restarts=[float(at) for at in said["restarts"]],
            restarts_before=int(said.get("restarts_before", 0)),
            reason=None if said["reason"] is None else StopReason(said["reason"]),
            why=str(said.get("why", "")),
            kill_due_s=float(said["kill_due_s"]),
            steps_done=None if (done := said.get("steps_done")) is None else int(done),
            run_ms=int(said.get("run_ms", 0)),
            addresses=None if (them := said.get("addresses")) is None else tuple(map(str, them)),
            exit=None if (how := said.get("exit")) is None else _exit_of_json(how),
        )
        if said.get("boot", boot_id()) != boot_id():
            task.after_boot(now_s)
        return task
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _restart_of_json(said: Mapping[str, Any]) -> Restart:
    """Return the restarts of a record. Raises ValueError, KeyError or TypeError."""
    attempts, within_ms, delay_ms = (int(said[it]) for it in ("attempts", "within_ms", "delay_ms"))
    is_sound = (
        0 <= attempts <= LIMITS.restarts_max
        and 1 <= within_ms <= LIMITS.duration_ms_max
        and 0 <= delay_ms <= LIMITS.duration_ms_max
    )
    if not is_sound:
        raise ValueError
    return Restart(attempts=attempts, within_ms=within_ms, delay_ms=delay_ms)


def _exit_to_json(ended: Exit) -> dict[str, object]:
    return {**vars(ended), "cause": ended.cause.value}


def _exit_of_json(said: Mapping[str, Any]) -> Exit:
    """Return the exit of a record. Raises ValueError, KeyError or TypeError."""
    cause, code, signal, restarts = (said[name] for name in ("cause", "code", "signal", "restarts"))
    is_sound = (
        (ExitCause(cause) is ExitCause.EXITED) == (code is not None)
        and (code is None or 0 <= int(code) <= CODE_MAX)
        and (signal is None or 1 <= int(signal) <= SIGNAL_MAX)
        and int(restarts) >= 0
    )
    if not is_sound:
        raise ValueError
    return Exit(
        cause=ExitCause(cause),
        code=code,
        signal=signal,
        restarts=restarts,
        detail=str(said["detail"]),
    )
