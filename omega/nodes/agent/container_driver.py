"""The container driver: runs the programs of tasks as containers of Docker or Podman.

Goal     Run images with the limits that a task asked for, kept by the engine.
Promise  See `TaskDriver`. Containers are found again by their labels; of several of one task, that
         of the latest start counts, and the others are removed. Starts are made in threads, since
         to pull an image may take minutes: what the engine refuses is an exit `NOT_STARTED`, and a
         start that it does not answer is `LOST`. A signal ends a start that waits or pulls: its
         program does not run, and its exit is `SIGNALLED`. While the engine does not answer,
         `look` returns what it knew. Other calls wait for the engine: an agent has them made by a
         `BackgroundDriver`. Nothing of the machine's files is shown to a container; inside it, a
         program may be any user.
Source   The Docker Engine API, which `podman system service` speaks, too;
         docs/decisions/0044-programs-and-agents.md; docs/decisions/0064-engine-calls.md.

A signal goes to the container's init, which hands it to the command; SIGKILL ends all processes.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from omega.clock import Clock
from omega.errors import SettingsError
from omega.model.exits import Exit, ExitCause
from omega.model.programs import Check
from omega.nodes.agent.container_engine import Engine, EngineError
from omega.nodes.agent.container_outputs import ContainerOutputs
from omega.nodes.agent.container_spec import (
    LABEL_AGENT,
    LABEL_TASK,
    RUNNING,
    by_age,
    exit_of_container,
    labels_of,
    restarts_of,
    spec_of,
)
from omega.nodes.agent.container_starts import Start, Starts
from omega.nodes.agent.env_file import variables_of_file
from omega.nodes.agent.linux_processes import boot_id
from omega.nodes.agent.network_checks import answers, connects
from omega.nodes.agent.task_driver import (
    Launch,
    NotStarted,
    Probe,
    Stream,
    TaskKey,
    why_of_check,
)

POLL_S: Final = 0.2
"""The time between two questions to the engine."""
CLOSE_S: Final = 10.0
"""How long `close` waits for containers that are being made."""


class ContainerDriver:
    """A `TaskDriver` of containers."""

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        *,
        agent: str,
        engine: str,
        pull: bool = True,
        outputs_max: int = 1_000,
        env_dirs: Sequence[Path] = (),
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Find the containers that an earlier driver of this agent started.

        Args:
            folder: keeps the output of containers that are gone.
            clock: times the questions to the engine.
            agent: the name by which this agent finds its containers.
            engine: the address of the engine, such as `unix:///run/docker.sock`.
            pull: whether an image that is missing may be pulled.
            outputs_max: of so many forgotten tasks the output is kept.
            env_dirs: where files of variables may lie.
            warn: receives a line for the operator; equal ones once, until a look needs none.

        Raises:
            SettingsError: the engine does not answer.
        """
        self._clock = clock
        self._agent = agent
        self._engine = engine
        self._env_dirs = tuple(env_dirs)
        self._warn = warn
        self._said: set[str] = set()
        """Warnings since the last look without any."""
        self._has_warned = False
        self._outputs = ContainerOutputs(folder, outputs_max, self._warn_once)
        self._starts = Starts(self._connected, self._outputs, agent=agent, pull=pull)
        self._starting: dict[TaskKey, Start] = {}
        self._restarts: dict[TaskKey, int] = {}
        self._pending: dict[TaskKey, str] = {}
        self._ids: dict[TaskKey, tuple[str, ...]] = {}
        """The containers of each task, in the order of their starts: the last one counts."""
        self._shown: dict[TaskKey, Exit | None] = {}
        self._poll_at = clock.now()
        try:
            self._client = Engine(engine)
            self._refresh()
        except EngineError as error:
            raise SettingsError(
                [f"the container engine at {engine!r} does not answer: {error}"]
            ) from error

    def start(self, launch: Launch) -> None:
        """Start a task. Raises NotStarted for what is clear at once."""
        key = launch.key
        if key in self._shown and self._shown[key] is None:
            raise NotStarted("this task runs already")
        if launch.program.image is None:
            raise NotStarted("the program has no image, and this driver runs containers")
        from_file = variables_of_file(launch.program.env_file, self._env_dirs)
        labels = labels_of(launch, self._agent, boot_id())
        spec = {**spec_of(launch, from_file), "labels": labels}
        self._ids.pop(key, None)
        self._outputs.hold(key)
        self._shown[key] = None
        self._restarts[key] = launch.restarts
        self._pending.pop(key, None)
        self._starting[key] = self._starts.begin(launch, spec)

    def look(self) -> Mapping[TaskKey, Exit | None]:
        """Return every task that was started and not forgotten: None if it runs, else its exit."""
        now = self._clock.now()
        if now >= self._poll_at:
            self._poll_at = now + POLL_S
            self._has_warned = False
            try:
                self._finish_starts()
                self._refresh()
            except EngineError as error:
                self._warn_once(f"the container engine does not answer: {error}")
            else:
                if not self._has_warned:
                    self._said.clear()
        return dict(self._shown)

    def signal(self, key: TaskKey, signal: str) -> None:
        """Send a signal of `SIGNALS` to a task; harmless if it has ended.

        A program that has not started yet will not.
        """
        if key not in self._shown or self._shown[key] is not None:
            return
        start = self._starting.get(key)
        if start is not None:
            if start.end(signal):
                del self._starting[key]
                self._shown[key] = start.ended()
            return
        container = self._container(key)
        try:
            if container is None:
                self._wait_with(key, signal)  # it was started, and is not listed yet
            else:
                self._client.kill(container, f"SIG{signal}")
        except EngineError as error:
            if container is not None and self._runs(container):
                self._warn_once(f"a container could not be sent SIG{signal}: {error}")
                self._wait_with(key, signal)

    def _wait_with(self, key: TaskKey, signal: str) -> None:
        """Have the next look send a signal."""
        if self._pending.get(key) != "KILL":
            self._pending[key] = signal

    def forget(self, key: TaskKey) -> None:
        """Drop what is kept of a task that has ended, but its output; harmless if unknown."""
        if self._shown.get(key) is None:
            return
        try:
            for container in self._ids.get(key, ()):
                self._outputs.save_and_remove(self._client, key, container)
        except (EngineError, OSError) as error:
            self._warn_once(f"a container could not be removed: {error}")
            return  # it stays, and may be forgotten once more
        self._ids.pop(key, None)
        self._pending.pop(key, None)
        self._restarts.pop(key, None)
        del self._shown[key]
        self._outputs.forget(key)

    def probe_of(self, launch: Launch, check: Check) -> Probe:
        """Return a probe of a task that runs; see `TaskDriver`."""
        container, timeout_s = self._container(launch.key), check.timeout_ms / 1_000
        if container is None or launch.key in self._starting:
            return lambda: None  # its image may still be on its way
        return lambda: _check(self._connected, container, check, timeout_s)

    def steps(self, key: TaskKey) -> int | None:
        """Return None: a container shares no file with the agent."""
        return None

    def output(self, key: TaskKey, stream: Stream, bytes_max: int) -> tuple[int, bytes]:
        """Return how many bytes a task has written so far, and the last of them.

        The engine is asked for all that the container wrote: it counts lines, not bytes.
        """
        if key in self._starting:
            self.look()
        saved, total, content = self._outputs.read(key, stream, bytes_max)
        container = self._container(key)
        if container in {None, saved}:
            return total, content
        try:
            more, tail = self._client.logs(
                container, is_stdout=stream is Stream.STDOUT, bytes_max=bytes_max
            )
        except EngineError:
            return total, content
        return total + more, (content + tail)[-bytes_max:]

    def _connected(self) -> Engine:
        """Return a connection of this thread's own. Raises EngineError."""
        return Engine(self._engine, version=self._client.version)

    def _container(self, key: TaskKey) -> str | None:
        """Return the container that counts of a task."""
        return next(reversed(self._ids.get(key, ())), None)

    def _finish_starts(self) -> None:
        for key, start in list(self._starting.items()):
            if not start.done.is_set():
                continue
            del self._starting[key]
            if start.error is not None:
                raise start.error
            if start.refused is not None:
                self._shown[key] = start.refused
                if start.refused.cause is ExitCause.LOST:
                    self._warn_once(f"task {key} is started again: {start.refused.detail}")
            elif start.signal:
                self._pending[key] = start.signal

    def _refresh(self) -> None:
        """Ask the engine for all containers of this agent."""
        found: dict[TaskKey, list[Mapping[str, Any]]] = {}
        for entry in self._client.containers({LABEL_AGENT: self._agent}):
            try:
                key = TaskKey.of_text(entry["Labels"][LABEL_TASK])
            except (KeyError, ValueError):
                continue
            if key not in self._starting:
                found.setdefault(key, []).append(entry)
        is_late = False  # an engine that hangs is asked once
        for key, entries in found.items():
            *earlier, latest = by_age(entries)
            left = [entry["Id"] for entry in earlier if not self._is_removed(key, entry)]
            self._ids[key] = (*left, latest["Id"])
            self._outputs.hold(key)
            self._restarts.setdefault(key, restarts_of(latest["Labels"]))
            if self._shown.setdefault(key, None) is None and not is_late:
                try:
                    self._shown[key] = self._end_of(key, latest)
                except EngineError as error:  # the others do not wait for one that is broken
                    is_late = error.status is None
                    self._warn_once(f"the container of task {key} cannot be looked at: {error}")
            if self._shown[key] is None and (signal := self._pending.pop(key, None)) is not None:
                self.signal(key, signal)
        for key, end in list(self._shown.items()):
            if end is None and key not in found and key not in self._starting:
                why = "its container was removed"
                self._shown[key] = Exit(
                    cause=ExitCause.LOST, restarts=self._restarts[key], detail=why
                )

    def _is_removed(self, key: TaskKey, entry: Mapping[str, Any]) -> bool:
        """Remove a container that is not the latest of its task; return whether it is gone."""
        try:
            self._outputs.end_and_remove(self._client, key, entry)
        except (EngineError, OSError) as error:
            self._warn_once(f"a container could not be removed: {error}")
            return False
        return True

    def _end_of(self, key: TaskKey, entry: Mapping[str, Any]) -> Exit | None:
        if entry["State"] in RUNNING:
            return None
        inspected = self._client.inspect(entry["Id"])
        if inspected["State"]["Status"] in RUNNING:
            return None
        return exit_of_container(inspected, self._restarts[key], boot_id())

    def _runs(self, container: str) -> bool:
        """Return whether a container runs, as far as the engine says."""
        try:
            return self._client.inspect(container)["State"]["Status"] in RUNNING
        except EngineError as error:
            return not error.is_missing

    def _warn_once(self, line: str) -> None:
        self._has_warned = True
        if line not in self._said:
            self._said.add(line)
            self._warn(line)

    def close(self) -> None:
        """End the starts that wait or pull, and let go of the engine; containers run on.

        This waits for containers that are being made, `CLOSE_S` at most, and for no pull. Call it
        when no other thread uses the driver, and do not use that afterwards.
        """
        making = [start for start in self._starting.values() if not start.end("KILL")]
        give_up_s = self._clock.now() + CLOSE_S
        for start in making:
            start.done.wait(max(0.0, give_up_s - self._clock.now()))
        self._client.close()


def kill_containers(engine: str, agent: str) -> set[TaskKey]:
    """Kill all containers of an agent that run; return their tasks.

    Nothing else is asked of the engine: whoever kills has little time. Raises EngineError, also if
    one could not be killed, after all were tried.
    """
    killed: set[TaskKey] = set()
    failed: EngineError | None = None
    with closing(Engine(engine)) as client:
        for entry in client.containers({LABEL_AGENT: agent}):
            if entry["State"] not in RUNNING:
                continue
            try:
                client.kill(entry["Id"], "SIGKILL")
            except EngineError as error:
                if not error.has_ended:
                    failed = error
            with suppress(KeyError, ValueError):
                killed.add(TaskKey.of_text(entry["Labels"][LABEL_TASK]))
    if failed is not None:
        raise failed
    return killed


def _check(
    connected: Callable[[], Engine], container: str, check: Check, timeout_s: float
) -> str | None:
    """Check a container, in a thread; return why that failed, or None."""
    try:
        with closing(connected()) as client:
            if check.port is None:
                code = client.execute(container, check.command, timeout_s)
                return why_of_check(code, timeout_s)
            address = client.address(container)
    except EngineError as error:
        return f"the check could not be made: {error}"
    if address is None:
        return "its container has no address on this machine"
    if check.path is None:
        return connects(address, check.port, timeout_s)
    return answers(address, check.port, check.path, timeout_s)
