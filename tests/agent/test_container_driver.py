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
from omega.nodes.agent import container_driver
from omega.nodes.agent.background_driver import BackgroundDriver
from omega.nodes.agent.container_driver import ContainerDriver
from omega.nodes.agent.container_engine import Engine
from omega.nodes.agent.container_spec import (
    LABEL_AGENT,
    labels_of,
    spec_of,
)
from omega.nodes.agent.linux_processes import boot_id
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
            until(lambda: not engine.containers({LABEL_AGENT: self.agent}))

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
        (opened,) = self.opened
        # The engine shows a container before it has answered the request to start it.
        until(lambda: driver.look()[KEY] is None and KEY not in opened._starting)  # noqa: SLF001
        (entry,) = engine.containers({LABEL_AGENT: self.agent})
        engine.remove(entry["Id"])

        assert ExitCause.LOST is ended(driver, KEY).cause

    def test_an_exit_that_was_seen_stays_when_others_remove_the_container(
        self, driver: TaskDriver
    ) -> None:
        driver.start(self.a_launch("exit 0"))
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

    def test_a_container_that_the_machine_ended_is_lost(
        self, driver: TaskDriver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as earlier:
            earlier.setattr(container_driver, "boot_id", lambda: "an earlier boot")
            driver.start(self.a_launch("echo up; sleep 1000"))
            until(lambda: self.text(driver) == "up\n")
        driver.signal(KEY, "KILL")

        lost = Exit(cause=ExitCause.LOST, detail="the machine was restarted")
        assert lost == ended(driver, KEY)

    def test_of_two_containers_of_a_task_the_earlier_is_ended_and_removed(
        self, driver: TaskDriver
    ) -> None:
        driver.start(self.a_launch("echo new; sleep 1000", restarts=1))
        until(lambda: self.text(driver) == "new\n")
        with closing(Engine(self.engine)) as engine:
            (new,) = engine.containers({LABEL_AGENT: self.agent})
            old = self.stray(engine, restarts=0)
            until(lambda: driver.look() and old not in self.ids(engine))

            assert [new["Id"]] == self.ids(engine)
            assert driver.look() == {KEY: None}
        assert self.text(driver) == "old\nnew\n"

    def test_a_start_removes_what_is_there_of_its_task(self, driver: TaskDriver) -> None:
        with closing(Engine(self.engine)) as engine:
            old = self.stray(engine, restarts=0)
            driver.start(self.a_launch("echo new; sleep 1000", restarts=1))
            until(lambda: self.text(driver) == "old\nnew\n")

            (new,) = self.ids(engine)
            assert new != old

    def stray(self, engine: Engine, restarts: int) -> str:
        """Have a container of the task run that the driver did not start; return its id."""
        launch = self.a_launch("echo old; sleep 1000", restarts=restarts)
        labels = labels_of(launch, self.agent, boot_id())
        container = engine.create(IMAGE, {**spec_of(launch, {}), "labels": labels}, ())
        engine.start(container)
        until(lambda: engine.logs(container, is_stdout=True, bytes_max=9) == (4, b"old\n"))
        return container

    def ids(self, engine: Engine) -> list[str]:
        """Return the containers of the agent."""
        return [it["Id"] for it in engine.containers({LABEL_AGENT: self.agent})]

    def test_processes_are_refused(self, driver: TaskDriver) -> None:
        program = Program(command=("true",))
        with pytest.raises(NotStarted, match="no image"):
            driver.start(Launch(key=KEY, program=program, env={}, cpu_milli=0, memory_mib=0))


def test_an_engine_that_does_not_answer_is_refused(tmp_path: Path) -> None:
    address = f"unix://{tmp_path}/no-such"
    with pytest.raises(SettingsError, match="does not answer"):
        ContainerDriver(tmp_path, RealClock(), agent="a", engine=address)
