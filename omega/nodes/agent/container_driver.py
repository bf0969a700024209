"""The container driver: runs the programs of tasks as containers of Docker or Podman.

Goal     Run images with the limits that a task asked for, kept by the engine.
Promise  See `TaskDriver`. Containers are found again by their labels. Starts are made in threads,
         since to pull an image may take minutes: what the engine refuses is an exit `NOT_STARTED`.
         While the engine does not answer, `look` returns what it knew. Other calls wait for the
         engine: an agent has them made by a `BackgroundDriver`. Nothing of the machine's files is
         shown to a container; inside it, a program may be any user.
Source   The Docker Engine API, which `podman system service` speaks, too;
         docs/decisions/0044-programs-and-agents.md; docs/decisions/0064-engine-calls.md.

A signal goes to the container's init, which hands it to the command; SIGKILL ends all processes.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from omega.clock import Clock
from omega.errors import SettingsError
from omega.model.exits import Exit, ExitCause
from omega.model.programs import Check
from omega.nodes.agent.container_engine import Engine, EngineError
from omega.nodes.agent.container_spec import exit_of_container, spec_of
from omega.nodes.agent.env_file import variables_of_file
from omega.nodes.agent.network_checks import answers, connects
from omega.nodes.agent.output_file import OutputFile
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
STARTS_AT_ONCE_MAX: Final = 4
OUTPUT_BYTES_MAX: Final = 2**20
"""How much of each output is kept once a container is gone."""
LABEL_TASK: Final = "omega.task"
LABEL_AGENT: Final = "omega.agent"
LABEL_RESTARTS: Final = "omega.restarts"
RUNNING: Final = frozenset({"running", "restarting", "paused", "removing", "stopping"})


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
            env_dirs: where files of variables may lie.
            warn: receives a line for the operator; of equal ones in a row the first.

        Raises:
            SettingsError: the engine does not answer.
        """
        self._folder = folder
        self._clock = clock
        self._agent = agent
        self._engine = engine
        self._pull = pull
        self._env_dirs = tuple(env_dirs)
        self._warn = warn
        self._said = ""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._pool = ThreadPoolExecutor(STARTS_AT_ONCE_MAX, thread_name_prefix="containers")
        self._starting: dict[TaskKey, Future[None]] = {}
        self._restarts: dict[TaskKey, int] = {}
        self._pending: dict[TaskKey, str] = {}
        self._ids: dict[TaskKey, str] = {}
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
        spec = spec_of(launch, from_file)
        labels = {
            LABEL_TASK: str(key),
            LABEL_AGENT: self._agent,
            LABEL_RESTARTS: str(launch.restarts),
        }
        before = self._ids.pop(key, None)
        self._shown[key] = None
        self._restarts[key] = launch.restarts
        self._pending.pop(key, None)
        self._starting[key] = self._pool.submit(
            self._start, launch, {**spec, "labels": labels}, before
        )

    def look(self) -> Mapping[TaskKey, Exit | None]:
        """Return every task that was started and not forgotten: None if it runs, else its exit."""
        now = self._clock.now()
        if now >= self._poll_at:
            self._poll_at = now + POLL_S
            try:
                self._finish_starts()
                self._refresh()
            except EngineError as error:
                self._warn_once(f"the container engine does not answer: {error}")
            else:
                self._said = ""
        return dict(self._shown)

    def signal(self, key: TaskKey, signal: str) -> None:
        """Send a signal of `SIGNALS` to a task; harmless if it has ended."""
        if key not in self._shown or self._shown[key] is not None:
            return
        if key in self._starting:
            if self._pending.get(key) != "KILL":
                self._pending[key] = signal
            return
        container = self._ids.get(key)
        if container is None:
            return
        try:
            self._client.kill(container, f"SIG{signal}")
        except EngineError as error:
            if self._runs(container):
                self._warn_once(f"a container could not be sent SIG{signal}: {error}")

    def forget(self, key: TaskKey) -> None:
        """Drop what is kept of a task that has ended, but its output; harmless if unknown."""
        if self._shown.get(key) is None:
            return
        container = self._ids.get(key)
        try:
            if container is not None:
                self._save(self._client, key, container)
                self._client.remove(container)
        except (EngineError, OSError) as error:
            self._warn_once(f"a container could not be removed: {error}")
            return  # it stays, and may be forgotten once more
        self._ids.pop(key, None)
        self._restarts.pop(key, None)
        del self._shown[key]

    def probe_of(self, launch: Launch, check: Check) -> Probe:
        """Return a probe of a task that runs; see `TaskDriver`."""
        container, timeout_s = self._ids.get(launch.key), check.timeout_ms / 1_000
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
        total, content = self._output_file(key, stream).read(bytes_max)
        container = self._ids.get(key)
        if container is None:
            return total, content
        try:
            more, tail = self._client.logs(
                container, is_stdout=stream is Stream.STDOUT, bytes_max=bytes_max
            )
        except EngineError:
            return total, content
        return total + more, (content + tail)[-bytes_max:]

    def _start(
        self,
        launch: Launch,
        spec: Mapping[str, Any],
        before: str | None,
    ) -> None:
        """Create and start a container, in a thread; raise NotStarted."""
        key, image, gpus = launch.key, launch.program.image, launch.gpus
        assert image is not None
        try:
            client = self._connected()
        except EngineError as error:
            raise NotStarted(f"the container engine does not answer: {error}") from error
        with closing(client):
            try:
                if before is not None:
                    self._save(client, key, before)
                    client.remove(before)
                self._get_image(client, image)
                container = client.create(image, spec, gpus)
            except (EngineError, OSError) as error:
                raise NotStarted(f"the container was not created: {error}") from error
            try:
                client.start(container)
            except EngineError as error:
                with suppress(EngineError):
                    client.remove(container)
                raise NotStarted(f"the container was not started: {error}") from error

    def _connected(self) -> Engine:
        """Return a connection of this thread's own. Raises EngineError."""
        return Engine(self._engine, version=self._client.version)

    def _get_image(self, client: Engine, image: str) -> None:
        """See to it that the engine has an image. Raises NotStarted."""
        if client.has_image(image):
            return
        if not self._pull:
            raise NotStarted(f"this machine has no image {image!r}, and its agent pulls none")
        try:
            client.pull(image)
        except EngineError as error:
            raise NotStarted(f"the image {image!r} could not be pulled: {error}") from error

    def _finish_starts(self) -> None:
        for key, future in list(self._starting.items()):
            if not future.done():
                continue
            del self._starting[key]
            error = future.exception()
            if isinstance(error, (NotStarted, EngineError)):
                self._shown[key] = Exit(
                    cause=ExitCause.NOT_STARTED,
                    restarts=self._restarts[key],
                    detail=str(error),
                )
            elif error is not None:
                raise error

    def _refresh(self) -> None:
        """Ask the engine for all containers of this agent."""
        found = set()
        for entry in self._client.containers(f"{LABEL_AGENT}={self._agent}"):
            labels = entry["Labels"]
            try:
                key = TaskKey.of_text(labels[LABEL_TASK])
                self._restarts.setdefault(key, int(labels[LABEL_RESTARTS]))
            except (KeyError, ValueError):
                continue
            if key in self._starting:
                continue
            found.add(key)
            self._ids[key] = entry["Id"]
            if self._shown.get(key) is None:
                self._shown[key] = self._end_of(key, entry)
            if self._shown[key] is None and (signal := self._pending.pop(key, None)) is not None:
                self.signal(key, signal)
        for key, end in list(self._shown.items()):
            if end is None and key not in found and key not in self._starting:
                why = "its container was removed"
                self._shown[key] = Exit(
                    cause=ExitCause.LOST, restarts=self._restarts[key], detail=why
                )

    def _end_of(self, key: TaskKey, entry: Mapping[str, Any]) -> Exit | None:
        if entry["State"] in RUNNING:
            return None
        inspected = self._client.inspect(entry["Id"])
        if inspected["State"]["Status"] in RUNNING:
            return None
        return exit_of_container(inspected, self._restarts[key])

    def _runs(self, container: str) -> bool:
        """Return whether a container runs, as far as the engine says."""
        try:
            return self._client.inspect(container)["State"]["Status"] in RUNNING
        except EngineError as error:
            return not error.is_missing

    def _save(self, client: Engine, key: TaskKey, container: str) -> None:
        """Keep the end of a container's output in files. Raises OSError."""
        for stream in Stream:
            file = self._output_file(key, stream)
            total, content = file.read(OUTPUT_BYTES_MAX)
            more, tail = client.logs(
                container, is_stdout=stream is Stream.STDOUT, bytes_max=OUTPUT_BYTES_MAX
            )
            (self._folder / str(key)).mkdir(mode=0o700, exist_ok=True)
            file.replace(total + more, (content + tail)[-OUTPUT_BYTES_MAX:])

    def _output_file(self, key: TaskKey, stream: Stream) -> OutputFile:
        return OutputFile(self._folder / str(key) / stream.value)

    def _warn_once(self, line: str) -> None:
        if line != self._said:
            self._said = line
            self._warn(line)

    def close(self) -> None:
        """Let go of the engine; containers run on."""
        self._pool.shutdown()
        self._client.close()


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
