"""A task driver without processes, whose calls take as long as tests want."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from threading import Condition, current_thread, main_thread

from omega.model.exits import Exit
from omega.nodes.agent.task_driver import Launch, Stream, TaskKey
from tests.agent.waiting import DEADLINE_S, until
from tests.unit.nodes.agent.fake_driver import FakeDriver


@dataclass
class HeldDriver(FakeDriver):
    """Once it is held, each call waits until the test lets it go; the test itself never waits."""

    began: list[str] = field(default_factory=list)
    """The calls, with the numbers of their jobs, also the one under way."""
    keeps_what_is_removed: bool = False
    fails: Exception | None = None
    """What looks raise."""
    _changed: Condition = field(default_factory=Condition)
    _allowed: float = inf
    """So many of the calls that began may end."""

    def hold(self) -> None:
        with self._changed:
            self._allowed = len(self.began)

    def let_go(self, calls: float = inf) -> None:
        """Let so many more calls end."""
        with self._changed:
            self._allowed += calls
            self._changed.notify_all()

    @property
    def may_go_on(self) -> bool:
        return len(self.began) <= self._allowed

    def is_held_in(self, call: str) -> bool:
        """Wait until a call is under way, and is the first that is held."""
        until(lambda: not self.may_go_on)
        return self.began[-1] == call

    def _begin(self, call: str) -> None:
        with self._changed:
            self.began.append(call)
            number = len(self.began)
            if number > self._allowed:
                assert current_thread() is not main_thread(), f"its caller waits for: {call}"
            may_end = self._changed.wait_for(lambda: number <= self._allowed, DEADLINE_S)
            assert may_end, f"nobody let it go: {call}"

    def start(self, launch: Launch) -> None:
        self._begin(f"start {launch.key.job}")
        super().start(launch)

    def look(self) -> Mapping[TaskKey, Exit | None]:
        self._begin("look")
        if self.fails is not None:
            raise self.fails
        return super().look()

    def signal(self, key: TaskKey, signal: str) -> None:
        self._begin(f"{signal} {key.job}")
        super().signal(key, signal)

    def forget(self, key: TaskKey) -> None:
        self._begin(f"forget {key.job}")
        if not self.keeps_what_is_removed:
            super().forget(key)

    def output(self, key: TaskKey, stream: Stream, bytes_max: int) -> tuple[int, bytes]:
        self._begin(f"{stream.value} {key.job}")
        return super().output(key, stream, bytes_max)
