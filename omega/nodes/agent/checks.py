"""Checks of running programs: when each is due, and what came of it.

Goal     Find programs that run and do not do their work.
Promise  The agent waits for no check: each runs in a thread of its own, at most `AT_ONCE_MAX` at a
         time, and has failed when its time is up, whether or not its thread comes back.
Source   docs/decisions/0047-checks.md; Kubernetes' liveness probes.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Thread
from typing import Final

from omega.model.programs import Check
from omega.nodes.agent.agent_task import AgentTask, Phase
from omega.nodes.agent.task_driver import Probe, TaskKey

AT_ONCE_MAX: Final = 32
"""Threads, those included whose check was given up."""

Begin = Callable[[Probe], "Future[str | None]"]


@dataclass
class _Checked:
    """The checks of one start of a program. Times are seconds of the agent's clock."""

    started_s: float | None
    due_s: float
    failed: int = 0
    """How many have failed in a row."""
    late_s: float = 0.0
    """When the one under way has failed."""
    under_way: "Future[str | None] | None" = None


class Checks:
    """The checks of an agent's programs."""

    def __init__(self, begin: Begin) -> None:
        """`begin` runs a check in the background."""
        self._begin = begin
        self._checked: dict[TaskKey, _Checked] = {}
        self._threads: set[Future[str | None]] = set()

    def step(
        self,
        tasks: Iterable[AgentTask],
        now_s: float,
        probe_of: Callable[[AgentTask, Check], Probe],
    ) -> list[tuple[AgentTask, str]]:
        """Begin the checks that are due; return the programs that are unhealthy, and why.

        Args:
            tasks: all tasks of the agent.
            now_s: the time by its clock.
            probe_of: returns the probe of a task.
        """
        self._threads = {thread for thread in self._threads if not thread.done()}
        unhealthy = []
        checked: dict[TaskKey, _Checked] = {}
        for task in tasks:
            check = None if task.program is None else task.program.check
            if task.phase is not Phase.RUNNING or check is None:
                continue
            it = self._checked.get(task.key)
            if it is None or it.started_s != task.started_s:
                started_s = now_s if task.started_s is None else task.started_s
                it = _Checked(task.started_s, started_s + check.interval_ms / 1_000)
            checked[task.key] = it
            why = self._finish(it, check, now_s)
            if why is not None and it.failed >= check.failures:
                unhealthy.append((task, why))
            elif it.under_way is None and it.due_s <= now_s and len(self._threads) < AT_ONCE_MAX:
                it.under_way = self._begin(probe_of(task, check))
                it.late_s = now_s + check.timeout_ms / 1_000
                it.due_s = now_s + check.interval_ms / 1_000
                self._threads.add(it.under_way)
        self._checked = checked
        return unhealthy

    def _finish(self, it: _Checked, check: Check, now_s: float) -> str | None:
        """Count a check that is over; return why it failed, if it did."""
        if it.under_way is None:
            return None
        if it.under_way.done():
            error = it.under_way.exception()
            why = it.under_way.result() if error is None else f"the check broke: {error!r}"
        elif now_s >= it.late_s:
            why = f"no answer within {check.timeout_ms / 1_000:g} s"
        else:
            return None
        it.under_way = None
        it.failed = 0 if why is None else it.failed + 1
        return why


def in_a_thread(probe: Probe) -> "Future[str | None]":
    """Run a check in a thread that keeps no process alive."""
    future: Future[str | None] = Future()

    def run() -> None:
        try:
            future.set_result(probe())
        except BaseException as error:
            future.set_exception(error)

    Thread(target=run, name="check", daemon=True).start()
    return future
