"""The container driver, with real containers of a podman of its own."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from uuid import uuid4

import docker
import docker.errors
import pytest

from omega.clock import RealClock
from omega.errors import SettingsError
from omega.model.exits import Exit, ExitCause
from omega.model.programs import Check, Program, shell_line
from omega.nodes.agent.background_driver import BackgroundDriver
from omega.nodes.agent.container_driver import LABEL_AGENT, ContainerDriver
from omega.nodes.agent.container_engine import Engine
from omega.nodes.agent.container_spec import exit_of_container
from omega.nodes.agent.task_driver import Launch, NotStarted, Stream, TaskDriver
from tests.agent.driver_contract import KEY, DriverContract
from tests.agent.engines import IMAGE, podman_service
from tests.agent.waiting import ended, until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    """Yield the address of an engine for all tests of this module."""
    with podman_service() as address:
        yield address


class OfContainers(DriverContract):
    """The contract, with containers."""

    image = IMAGE
    serve = "exec busybox httpd -f -p $PORT -h ."
    port = 8080

    @pytest.fixture
    def driver(self, tmp_path: Path, engine: str) -> Iterator[TaskDriver]:
        """Yield a driver; kill what it left running."""
        self.engine, self.folder, self.agent = engine, tmp_path / "tasks", uuid4().hex
        self.opened: list[ContainerDriver] = []
        self.warnings: list[str] = []
        with ExitStack() as stack:
            self.stack = stack
            driver = self._opened()
            yield driver
            for key in driver.look():
                driver.signal(key, "KILL")
                ended(driver, key)
                driver.forget(key)

    def another(self, driver: TaskDriver) -> TaskDriver:
        """Return a new driver of the same agent."""
        return self._opened()

    def _opened(self) -> TaskDriver:
        """Return a new driver of the kind under test."""
        return self._open()

    def _open(self, *, pull: bool = True) -> ContainerDriver:
        driver = ContainerDriver(
            self.folder,
            RealClock(),
            agent=self.agent,
            engine=self.engine,
            pull=pull,
            warn=self.warnings.append,
        )
        self.opened.append(driver)
        self.stack.callback(driver.close)
        return driver


class TestContainerDriverInBackground(OfContainers):
    """The contract, with containers whose engine a thread of its own asks, as in an agent."""

    def _opened(self) -> TaskDriver:
        background = BackgroundDriver(self._open(), RealClock())
        self.stack.callback(background.close)
        return background

    def wait_for_removals(self) -> None:
        """Wait until the engine has nothing left of the agent's tasks."""
        with closing(Engine(self.engine)) as engine:
            until(lambda: not engine.containers(f"{LABEL_AGENT}={self.agent}"))

    def reader(self, driver: TaskDriver) -> TaskDriver:
        """Return a plain driver: the thread keeps no output of what was forgotten."""
        assert (0, b"") == driver.output(KEY, Stream.STDOUT, 100)
        return self._open()

    def test_what_cannot_be_started_is_an_exit(self, driver: TaskDriver) -> None:
        program = Program(command=("true",))
        driver.start(Launch(key=KEY, program=program, env={}, cpu_milli=0, memory_mib=0))

        assert ended(driver, KEY).cause is ExitCause.NOT_STARTED


class TestContainerDriver(OfContainers):
    """The contract, with containers, and what only they can do."""

    def test_a_container_that_uses_too_much_memory_is_ended(self, driver: TaskDriver) -> None:
        driver.start(
            self.a_launch("exec dd if=/dev/zero of=/dev/null bs=256M count=1", memory_mib=32)
        )
        end = ended(driver, KEY)

        # Podman with cgroups v1 kills it, too, but does not tell why.
        assert end.cause is ExitCause.OUT_OF_MEMORY or (
            end.signal == 9 and "too much memory" in end.detail
        )

    def test_user_and_folder_are_those_of_the_program(self, driver: TaskDriver) -> None:
        driver.start(self.a_launch("id -u; pwd", user="nobody", working_dir="/tmp"))
        ended(driver, KEY)

        assert self.text(driver) == "65534\n/tmp\n"

    def test_an_image_that_cannot_be_had_is_not_started(self, driver: TaskDriver) -> None:
        program = Program(command=("true",), image="localhost:1/no/such:1")
        launch = Launch(key=KEY, program=program, env={}, cpu_milli=0, memory_mib=0)
        driver.start(launch)
        end = ended(driver, KEY)
        assert end.cause is ExitCause.NOT_STARTED
        assert end.detail.startswith("the image 'localhost:1/no/such:1' could not be pulled")

        driver.forget(KEY)
        unwilling = self._open(pull=False)
        unwilling.start(launch)
        end = ended(unwilling, KEY)
        assert end.cause is ExitCause.NOT_STARTED
        assert "pulls none" in end.detail

    def test_a_command_that_the_image_lacks_is_not_success(self, driver: TaskDriver) -> None:
        program = Program(command=("no-such",), image=IMAGE)
        driver.start(Launch(key=KEY, program=program, env={}, cpu_milli=0, memory_mib=0))

        assert not ended(driver, KEY).is_success

    def test_a_running_container_that_others_remove_is_lost(self, driver: TaskDriver) -> None:
        driver.start(self.a_launch("sleep 60"))
        engine = Engine(self.engine)
        label = f"{LABEL_AGENT}={self.agent}"
        (opened,) = self.opened
        # The engine shows a container before it has answered the request to start it.
        until(lambda: driver.look()[KEY] is None and KEY not in opened._starting)  # noqa: SLF001
        (entry,) = engine.containers(label)
        engine.remove(entry["Id"])

        assert ExitCause.LOST is ended(driver, KEY).cause

    def test_an_exit_that_was_seen_stays_when_others_remove_the_container(
        self, driver: TaskDriver
    ) -> None:
        driver.start(self.a_launch("exit 0"))
        driver.signal(KEY, "KILL")
        ended(driver, KEY)
        other = self._open()
        ended(other, KEY)
        other.forget(KEY)

        assert driver.look()[KEY] is not None

    def test_the_engine_is_asked_for_its_version_once(
        self, driver: TaskDriver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Podman runs the system's package manager to answer, some times over."""

        def ask(_: docker.APIClient) -> str:
            raise docker.errors.DockerException("it was asked again")

        monkeypatch.setattr(docker.APIClient, "_retrieve_server_version", ask)
        launch = self.a_launch("sleep 1000")
        driver.start(launch)
        until(lambda: driver.look()[KEY] is None and KEY not in self.opened[0]._starting)  # noqa: SLF001

        assert driver.probe_of(launch, Check(command=shell_line(":"), timeout_ms=60_000))() is None

    def test_a_signal_that_comes_after_the_end_is_no_warning(self, driver: TaskDriver) -> None:
        driver.start(self.a_launch("echo up; sleep 1000"))
        until(lambda: self.text(driver) == "up\n")
        other = self._open()
        other.signal(KEY, "KILL")
        ended(other, KEY)
        (driver_, _) = self.opened
        assert driver_._shown[KEY] is None, "it has not looked since"  # noqa: SLF001
        driver.signal(KEY, "TERM")

        assert [] == self.warnings

    def test_processes_are_refused(self, driver: TaskDriver) -> None:
        program = Program(command=("true",))
        with pytest.raises(NotStarted, match="no image"):
            driver.start(Launch(key=KEY, program=program, env={}, cpu_milli=0, memory_mib=0))


def test_an_engine_that_does_not_answer_is_refused(tmp_path: Path) -> None:
    address = f"unix://{tmp_path}/no-such"
    with pytest.raises(SettingsError, match="does not answer"):
        ContainerDriver(tmp_path, RealClock(), agent="a", engine=address)


def test_a_container_killed_for_memory_says_so() -> None:
    state = {"Status": "exited", "OOMKilled": True, "ExitCode": 137}
    inspected = {"State": state, "HostConfig": {"Memory": 2**25}}

    assert exit_of_container(inspected, 2) == Exit(cause=ExitCause.OUT_OF_MEMORY, restarts=2)


@pytest.mark.parametrize(
    ("status", "code", "cause"),
    [
        ("created", 0, ExitCause.LOST),
        ("exited", -1, ExitCause.LOST),
        ("exited", 143, ExitCause.SIGNALLED),
        ("dead", 7, ExitCause.EXITED),
    ],
)
def test_what_a_state_means(status: str, code: int, cause: ExitCause) -> None:
    inspected = {"State": {"Status": status, "ExitCode": code}, "HostConfig": {}}

    assert exit_of_container(inspected, 0).cause is cause
