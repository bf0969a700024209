"""A task driver without processes: tests say when a program ends."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from omega.model.exits import Exit, ExitCause
from omega.model.programs import Check
from omega.nodes.agent.task_driver import Launch, NotStarted, Probe, Stream, TaskKey


@dataclass
class FakeDriver:
    """Keeps what it was told; `exits` has the exit of each task, None while it runs."""

    exits: dict[TaskKey, Exit | None] = field(default_factory=dict)
    launches: list[Launch] = field(default_factory=list)
    signals: list[tuple[TaskKey, str]] = field(default_factory=list)
    said: dict[tuple[TaskKey, Stream], bytes] = field(default_factory=dict)
    checked: list[tuple[TaskKey, Check]] = field(default_factory=list)
    fails_checks: str | None = None
    """Why checks fail; None if they succeed."""
    steps_made: dict[TaskKey, int] = field(default_factory=dict)
    refuses: str = ""
    """Why programs cannot be started; empty if they can."""
    is_closed: bool = False

    def start(self, launch: Launch) -> None:
        if self.refuses:
            raise NotStarted(self.refuses)
        assert self.exits.get(launch.key, "never started") is not None, "it runs already"
        self.launches.append(launch)
        self.exits[launch.key] = None

    def look(self) -> Mapping[TaskKey, Exit | None]:
        return dict(self.exits)

    def signal(self, key: TaskKey, signal: str) -> None:
        if key in self.exits and self.exits[key] is None:
            self.signals.append((key, signal))

    def forget(self, key: TaskKey) -> None:
        assert self.exits.get(key, "unknown") is not None, "it still runs"
        self.exits.pop(key, None)

    def probe_of(self, launch: Launch, check: Check) -> Probe:
        self.checked.append((launch.key, check))
        return lambda: self.fails_checks

    def steps(self, key: TaskKey) -> int | None:
        return self.steps_made.get(key)

    def output(self, key: TaskKey, stream: Stream, bytes_max: int) -> tuple[int, bytes]:
        said = self.said.get((key, stream), b"")
        return len(said), said[-bytes_max:] if bytes_max else b""

    def close(self) -> None:
        self.is_closed = True

    @property
    def running(self) -> list[TaskKey]:
        return sorted(key for key, ended in self.exits.items() if ended is None)

    def end(self, key: TaskKey, code: int = 0) -> None:
        self.exits[key] = Exit(cause=ExitCause.EXITED, code=code, restarts=self._restarts(key))

    def kill(self, key: TaskKey, signal: int = 15) -> None:
        self.exits[key] = Exit(
            cause=ExitCause.SIGNALLED, signal=signal, restarts=self._restarts(key)
        )

    def _restarts(self, key: TaskKey) -> int:
        """Return how often the program was started before its last start, as drivers say it."""
        return next((it.restarts for it in reversed(self.launches) if it.key == key), 0)
