"""The starts of containers: in threads, since to pull an image may take minutes.

Goal     Start containers without waiting for them, a few at a time.
Promise  A start can be ended until its program runs: then none does. What does not touch the task's
         containers, such as a pull, is left to itself when the start is ended, and nobody waits for
         it. Before a container is made, all earlier ones of its task are gone. The threads do not
         keep the process from ending.
Source   docs/decisions/0064-engine-calls.md.
"""

import signal
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import closing
from threading import Event, Lock, Thread
from typing import Any, Final

from omega.model.exits import Exit, ExitCause
from omega.nodes.agent.container_engine import Engine, EngineError
from omega.nodes.agent.container_outputs import ContainerOutputs
from omega.nodes.agent.container_spec import LABEL_AGENT, LABEL_TASK, by_age
from omega.nodes.agent.task_driver import Launch, NotStarted

STARTS_AT_ONCE_MAX: Final = 4


class StartEnded(Exception):
    """A start was ended before its program ran."""


class StartLost(Exception):
    """A start came to nothing because the engine was away or had no time: no fault of the task."""


class Start:
    """One start of a task."""

    def __init__(self, launch: Launch, spec: Mapping[str, Any]) -> None:
        self.launch = launch
        self.spec = spec
        self.signal = ""
        """The signal that is to end it; empty if none is."""
        self.done = Event()
        """Set when its thread has nothing more to do."""
        self.refused: Exit | None = None
        """How it ended if no program was started."""
        self.error: Exception | None = None
        """What its thread failed with."""
        self._lock = Lock()
        self._touches_containers = False

    def end(self, name: str) -> bool:
        """Have the program not run, or get this signal if it does by now.

        Returns whether it is clear that none will run. Else that shows when the start is done.
        """
        with self._lock:
            if self.signal != "KILL":
                self.signal = name
            return not self._touches_containers

    def go_on(self, *, touches_containers: bool) -> None:
        """Begin the next step. Raises StartEnded."""
        with self._lock:
            if self.signal:
                raise StartEnded
            self._touches_containers = touches_containers

    def ended(self) -> Exit:
        """Return the exit of a start that was ended by its signal."""
        return Exit(
            cause=ExitCause.SIGNALLED,
            signal=int(signal.Signals[f"SIG{self.signal}"]),
            restarts=self.launch.restarts,
            detail="it was ended before its program had started",
        )

    def run(self, make: Callable[["Start"], None]) -> None:
        """Make it, in a thread, and note how that went."""
        try:
            make(self)
        except StartEnded:
            self.refused = self.ended()
        except NotStarted as error:
            restarts, why = self.launch.restarts, str(error)
            self.refused = Exit(cause=ExitCause.NOT_STARTED, restarts=restarts, detail=why)
        except StartLost as error:
            restarts, why = self.launch.restarts, str(error)
            self.refused = Exit(cause=ExitCause.LOST, restarts=restarts, detail=why)
        except Exception as error:
            self.error = error
        finally:
            self.done.set()


class Starts:
    """The threads that make starts, in their order."""

    def __init__(
        self,
        connected: Callable[[], Engine],
        outputs: ContainerOutputs,
        *,
        agent: str,
        pull: bool,
    ) -> None:
        self._connected = connected
        self._outputs = outputs
        self._agent = agent
        self._pull = pull
        self._lock = Lock()
        self._queue: deque[Start] = deque()
        self._threads = 0

    def begin(self, launch: Launch, spec: Mapping[str, Any]) -> Start:
        """Queue a start, and return it."""
        start = Start(launch, spec)
        with self._lock:
            self._queue.append(start)
            if self._threads < STARTS_AT_ONCE_MAX:
                self._threads += 1
                # No pool of the standard library: those have the process wait for their threads.
                Thread(target=self._work, name="container starts", daemon=True).start()
        return start

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._queue:
                    self._threads -= 1
                    return
                start = self._queue.popleft()
            start.run(self._make)

    def _make(self, start: Start) -> None:
        """Create and start a container. Raises NotStarted, StartEnded and StartLost."""
        start.go_on(touches_containers=False)
        try:
            client = self._connected()
        except EngineError as error:
            raise StartLost(f"the container engine does not answer: {error}") from error
        with closing(client):
            try:
                container = self._created(client, start)
            except (EngineError, OSError) as error:
                raise _failed(f"the container was not created: {error}", error) from error
            try:
                start.go_on(touches_containers=True)
                client.start(container)
            except (EngineError, StartEnded) as error:
                try:
                    client.remove(container)
                except EngineError:
                    return  # it may run: the next list of containers tells
                if isinstance(error, StartEnded):
                    raise
                raise _failed(f"the container was not started: {error}", error) from error

    def _created(self, client: Engine, start: Start) -> str:
        """Create a container and return its id. Raises EngineError, OSError, and as `_make`."""
        launch = start.launch
        image = launch.program.image
        assert image is not None
        start.go_on(touches_containers=True)
        of_task = {LABEL_AGENT: self._agent, LABEL_TASK: str(launch.key)}
        for entry in by_age(client.containers(of_task)):
            self._outputs.end_and_remove(client, launch.key, entry)
        start.go_on(touches_containers=False)
        self._get_image(client, image, start)
        start.go_on(touches_containers=True)
        return client.create(image, start.spec, launch.gpus)

    def _get_image(self, client: Engine, image: str, start: Start) -> None:
        """See to it that the engine has an image. Raises NotStarted."""
        if client.has_image(image):
            return
        if not self._pull:
            raise NotStarted(f"this machine has no image {image!r}, and its agent pulls none")
        try:
            client.pull(image, is_wanted=lambda: not start.signal)
        except EngineError as error:
            raise NotStarted(f"the image {image!r} could not be pulled: {error}") from error


def _failed(why: str, error: Exception) -> Exception:
    """Return what a start fails with: the same start may succeed if the engine did not refuse."""
    is_lost = isinstance(error, EngineError) and not error.is_refusal
    return StartLost(why) if is_lost else NotStarted(why)
