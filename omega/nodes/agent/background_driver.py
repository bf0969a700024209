"""A task driver that runs in a thread of its own.

Goal     Keep an agent's loop, which renews its lease, from waiting for a container engine.
Promise  No method waits for the engine, except the constructor and `close`. After the constructor
         only the thread starts, signals, removes and lists tasks, and reads their outputs, in this
         order: starts and signals, a look that is due, removals, outputs. A look that is late by
         `LATE_LOOK_S` comes before all. A task is shown as running from its start on. A forgotten
         task is not shown while its removal waits; it is shown again if the driver still lists it
         then. An end is shown together with the last output that the task wrote. A start replaces
         what still waits to be done for an earlier start of its task. After an error of the driver
         the thread has ended, and every `look` raises that error.
Source   docs/decisions/0064-engine-calls.md; the pod workers of Kubernetes' kubelet.
"""

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Condition, Thread
from typing import Final

from omega.clock import Clock
from omega.limits import LIMITS
from omega.model.exits import Exit, ExitCause
from omega.model.programs import Check
from omega.nodes.agent.task_driver import (
    ClosableDriver,
    Launch,
    NotStarted,
    Probe,
    Stream,
    TaskKey,
)

LOOK_S: Final = 0.2
"""The shortest time between two looks at the tasks. One that takes longer is followed by a pause as
long as itself, in which other calls are made. A start makes the next look due at once."""
IDLE_LOOK_S: Final = 2.0
"""The time between two looks while nothing runs. A container that an earlier agent began to start
may appear."""
LATE_LOOK_S: Final = 1.0
"""How long a look that is due waits for starts and signals. Else repeated SIGKILLs could keep the
queue full, and no look would show that the tasks have ended."""
OUTPUT_S: Final = 1.0
"""The shortest time between two readings of one running task's outputs."""
OUTPUT_PAUSE: Final = 4
"""The pause after a reading of outputs, as a multiple of the time that the reading took: readings
of one task take at most a fifth of the thread's time."""
KILL_AGAIN_S: Final = 1.0
"""For how long further SIGKILLs of a task are dropped after one was queued. The agent asks for one
in each pass until the end is shown."""
CLOSE_S: Final = 10.0
"""How long `close` waits for what is still to be done."""


@dataclass(frozen=True)
class _Request:
    """Something that the thread is to do."""

    key: TaskKey
    do: Callable[[], None]
    signal: str = ""
    """The signal that it sends; empty if it sends none."""


class BackgroundDriver:
    """A `TaskDriver` that hands what it is told to another one, in a thread."""

    def __init__(self, driver: ClosableDriver, clock: Clock) -> None:
        """List the tasks once, read the outputs of those that have ended, and start the thread.

        From then on only the thread calls `driver`, except for `probe_of` and `steps`: those are
        called in the caller's thread, and must not call the engine. `close` closes `driver`.
        """
        self._driver = driver
        self._clock = clock
        self._changed = Condition()
        """Guards what follows, which both threads use."""
        self._starts_and_signals: deque[_Request] = deque()
        self._removals: deque[_Request] = deque()
        self._shown: dict[TaskKey, Exit | None] = {}
        self._outputs: dict[tuple[TaskKey, Stream], tuple[int, bytes]] = {}
        self._killed_s: dict[TaskKey, float] = {}
        """When SIGKILL was last queued for a task."""
        self._error: BaseException | None = None
        self._is_closed = False
        # What follows is the thread's own.
        self._refused: dict[TaskKey, Exit] = {}
        """Starts that the driver refused."""
        self._look_due_s = 0.0
        self._output_due_s: dict[TaskKey, float] = {}
        self._look()
        self._thread = Thread(target=self._run, name="task driver", daemon=True)
        self._thread.start()

    def start(self, launch: Launch) -> None:
        """Queue the start of a task. Raises NotStarted if the task runs.

        If the driver refuses the start later, for a full disk too, the task's exit is
        `NOT_STARTED`: unlike those of other drivers, a start never raises DiskFull.
        """
        with self._changed:
            if self._shown.get(launch.key, _UNKNOWN) is None:
                raise NotStarted("this task runs already")
            self._shown[launch.key] = None
            self._killed_s.pop(launch.key, None)
            for requests in (self._starts_and_signals, self._removals):
                for request in [it for it in requests if it.key == launch.key]:
                    requests.remove(request)
            self._starts_and_signals.append(_Request(launch.key, lambda: self._start(launch)))
            self._changed.notify()

    def look(self) -> Mapping[TaskKey, Exit | None]:
        """Return every task that was started and not forgotten: None if it runs, else its exit.

        Raises any error of the driver that has ended the thread.
        """
        with self._changed:
            if self._error is not None:
                raise self._error
            return dict(self._shown)

    def signal(self, key: TaskKey, signal: str) -> None:
        """Queue a signal of `SIGNALS` for a task; harmless if it has ended.

        A signal that waits already is dropped, and so is a SIGKILL within `KILL_AGAIN_S` of the
        last one.
        """
        with self._changed:
            now_s = self._clock.now()
            is_queued = any((it.key, it.signal) == (key, signal) for it in self._starts_and_signals)
            if self._shown.get(key, _UNKNOWN) is not None or is_queued:
                return
            if signal == "KILL":
                if now_s < self._killed_s.get(key, -KILL_AGAIN_S) + KILL_AGAIN_S:
                    return
                self._killed_s[key] = now_s
            request = _Request(key, lambda: self._driver.signal(key, signal), signal)
            self._starts_and_signals.append(request)
            self._changed.notify()

    def forget(self, key: TaskKey) -> None:
        """Queue the removal of a task that has ended; harmless if it is unknown.

        The copy of its output that is kept here is dropped.
        """
        with self._changed:
            if self._shown.get(key) is None:
                return
            del self._shown[key]
            for stream in Stream:
                self._outputs.pop((key, stream), None)
            self._removals.append(_Request(key, lambda: self._forget(key)))
            self._changed.notify()

    def probe_of(self, launch: Launch, check: Check) -> Probe:
        """Return a probe of a task that runs; see `TaskDriver`."""
        with self._changed:
            if any(it.key == launch.key and not it.signal for it in self._starts_and_signals):
                return lambda: None  # the driver knows at most an earlier start
        return self._driver.probe_of(launch, check)

    def steps(self, key: TaskKey) -> int | None:
        """Return how many steps a task says that its job has made; None if it says nothing."""
        return self._driver.steps(key)

    def output(self, key: TaskKey, stream: Stream, bytes_max: int) -> tuple[int, bytes]:
        """Return how many bytes a task had written when that was read last, and the last of them.

        At most `LIMITS.output_bytes_kept` of them are known, and none of a task that was forgotten.
        """
        with self._changed:
            total, content = self._outputs.get((key, stream), (0, b""))
        return total, content[-bytes_max:] if bytes_max else b""

    def close(self) -> None:
        """Have the thread end when all that waits is done, and close the driver.

        The thread is waited for, `CLOSE_S` at most; one that takes longer ends with the process,
        and so does the driver, which it uses.
        """
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        self._thread.join(CLOSE_S)
        if not self._thread.is_alive():
            self._driver.close()

    # In the thread.

    def _run(self) -> None:
        try:
            while (act := self._next()) is not None:
                act()
        except BaseException as error:
            with self._changed:
                self._error = error

    def _next(self) -> Callable[[], None] | None:
        """Wait for something to do, and return it; None if all is done and the end was asked for.

        Starts and signals come first, but for a late look: a task that is to end must end in time.
        """
        with self._changed:
            while True:
                now_s = self._clock.now()
                late_s = -math.inf if self._is_closed else now_s - self._look_due_s
                if self._starts_and_signals and late_s < LATE_LOOK_S:
                    return self._starts_and_signals.popleft().do
                if late_s >= 0:
                    return self._look
                if self._removals:
                    return self._removals.popleft().do
                if self._is_closed:
                    return None
                due_s, key = min(
                    ((due_s, key) for key, due_s in self._output_due_s.items()),
                    default=(math.inf, None),
                )
                if key is not None and now_s >= due_s:
                    return partial(self._read_outputs, key)
                self._changed.wait(min(self._look_due_s, due_s) - now_s)

    def _start(self, launch: Launch) -> None:
        self._refused.pop(launch.key, None)
        try:
            self._driver.start(launch)
        except NotStarted as error:
            self._refused[launch.key] = Exit(
                cause=ExitCause.NOT_STARTED, restarts=launch.restarts, detail=str(error)
            )
        self._look_due_s = min(self._look_due_s, self._clock.now())

    def _forget(self, key: TaskKey) -> None:
        self._refused.pop(key, None)
        self._driver.forget(key)

    def _look(self) -> None:
        """Look at the tasks; show them as they will be when starts and removals are done."""
        began_s = self._clock.now()
        seen = {**self._driver.look(), **self._refused}
        with self._changed:
            known = {request.key for request in self._removals}
            known |= {key for key, end in self._shown.items() if end is not None}
        for key, end in seen.items():
            if end is not None and key not in known:
                self._read_outputs(key)
        running = {key for key, end in seen.items() if end is None}
        now_s = self._clock.now()
        self._output_due_s = {key: self._output_due_s.get(key, now_s) for key in running}
        self._look_due_s = now_s + (max(LOOK_S, now_s - began_s) if running else IDLE_LOOK_S)
        with self._changed:
            for request in self._removals:
                seen.pop(request.key, None)
            for request in self._starts_and_signals:
                if not request.signal:
                    seen[request.key] = None
            self._shown = seen
            self._killed_s = {key: at for key, at in self._killed_s.items() if key in seen}

    def _read_outputs(self, key: TaskKey) -> None:
        began_s = self._clock.now()
        for stream in Stream:
            output = self._driver.output(key, stream, LIMITS.output_bytes_kept)
            with self._changed:
                before, _ = self._outputs.get((key, stream), (0, b""))
                if output[0] > before:
                    self._outputs[key, stream] = output
        now_s = self._clock.now()
        self._output_due_s[key] = now_s + max(OUTPUT_S, OUTPUT_PAUSE * (now_s - began_s))


_UNKNOWN: Final = Exit(cause=ExitCause.LOST)
"""What lookups of tasks that are not shown return, so that these count as not running."""
