"""What every task driver promises, with real programs."""

import signal
from abc import abstractmethod
from pathlib import Path

import pytest

from omega.model.exits import Exit, ExitCause
from omega.model.programs import Check, Program, shell_line
from omega.nodes.agent.task_driver import Launch, Stream, TaskDriver, TaskKey
from tests.agent.waiting import ended, until

KEY = TaskKey(1, 0, 1_000)


class DriverContract:
    """Tests that run against one driver; a subclass makes it."""

    image: str | None = None
    serve: str
    """A line that serves the working directory by HTTP on port $PORT, and goes on for ever."""
    port: int

    @abstractmethod
    @pytest.fixture
    def driver(self) -> TaskDriver:
        """Return the driver under test."""

    @abstractmethod
    def another(self, driver: TaskDriver) -> TaskDriver:
        """Return a new driver of the same tasks."""

    def wait_for_removals(self) -> None:
        """Wait until what was forgotten is removed, if `forget` comes back before that."""

    def reader(self, driver: TaskDriver) -> TaskDriver:
        """Return the driver that tells what a task wrote that was forgotten."""
        return driver

    def a_launch(self, line: str, key: TaskKey = KEY, **fields: object) -> Launch:
        """Return a launch that has a shell run a line."""
        of_program = {name: fields.pop(name) for name in ("user", "working_dir") if name in fields}
        program = Program(command=shell_line(line), image=self.image, **of_program)  # type: ignore[arg-type]
        settings = {"env": {}, "cpu_milli": 0, "memory_mib": 0, **fields}
        return Launch(key=key, program=program, **settings)  # type: ignore[arg-type]

    def text(self, driver: TaskDriver, key: TaskKey = KEY) -> str:
        """Return what a task wrote to standard output."""
        return driver.output(key, Stream.STDOUT, 100_000)[1].decode()

    def test_a_command_checks_a_task_where_it_runs(self, driver: TaskDriver) -> None:
        launch = self.a_launch("echo up; sleep 1000", env={"NAME": "it"})
        driver.start(launch)
        until(lambda: self.text(driver) == "up\n")

        def check(line: str, timeout_ms: int = 60_000) -> str | None:
            return driver.probe_of(launch, Check(command=shell_line(line), timeout_ms=timeout_ms))()

        assert check('test "$NAME" = it') is None
        assert "the check exited with code 3" == check("echo no; exit 3")
        assert "the check took longer than 0.5 s" == check("sleep 1000", timeout_ms=500)
        assert driver.look()[KEY] is None

    def test_a_server_is_checked_by_the_network(self, driver: TaskDriver) -> None:
        launch = self.a_launch(f"PORT={self.port}; echo hi > here; {self.serve}")
        driver.start(launch)

        def check(port: int, path: str | None = None) -> str | None:
            return driver.probe_of(launch, Check(port=port, path=path, timeout_ms=60_000))()

        missing = f"port {self.port}: HTTP status 404"
        until(lambda: [driver.look()[KEY], check(self.port, "/there")] == [None, missing])
        assert check(self.port, "/here?a=b") is None
        assert check(self.port) is None
        assert "Connection refused" in (check(1) or "")
        assert "Connection refused" in (check(1, "/") or "")

    @pytest.mark.parametrize("code", [0, 3, 255])
    def test_a_code_is_reported_until_it_is_forgotten(self, driver: TaskDriver, code: int) -> None:
        driver.start(self.a_launch(f"exit {code}", restarts=2))

        assert Exit(cause=ExitCause.EXITED, code=code, restarts=2) == ended(driver, KEY)
        assert Exit(cause=ExitCause.EXITED, code=code, restarts=2) == ended(
            self.another(driver), KEY
        )
        driver.forget(KEY)
        assert KEY not in driver.look()
        self.wait_for_removals()
        assert KEY not in driver.look()
        assert KEY not in self.another(driver).look()

    def test_a_task_runs_until_a_signal_ends_it(self, driver: TaskDriver) -> None:
        driver.start(self.a_launch("trap 'exit 9' TERM; echo up; while :; do sleep 0.1; done"))
        until(lambda: self.text(driver) == "up\n")
        assert driver.look()[KEY] is None
        driver.forget(KEY)
        assert driver.look()[KEY] is None

        driver.signal(KEY, "TERM")
        assert Exit(cause=ExitCause.EXITED, code=9) == ended(driver, KEY)
        driver.signal(KEY, "TERM")
        driver.signal(KEY, "KILL")
        assert Exit(cause=ExitCause.EXITED, code=9) == ended(driver, KEY)

    def test_no_task_survives_a_kill(self, driver: TaskDriver) -> None:
        driver.start(self.a_launch("trap '' TERM INT HUP; echo up; while :; do sleep 0.1; done"))
        until(lambda: self.text(driver) == "up\n")
        driver.signal(KEY, "KILL")

        end = ended(driver, KEY)
        assert (ExitCause.SIGNALLED, signal.SIGKILL) == (end.cause, end.signal)

    def test_a_kill_at_once_is_not_lost(self, driver: TaskDriver) -> None:
        driver.start(self.a_launch("sleep 1000"))
        driver.signal(KEY, "KILL")

        assert ended(driver, KEY).cause is ExitCause.SIGNALLED

    def test_a_restart_goes_on_in_the_same_output(self, driver: TaskDriver) -> None:
        driver.start(self.a_launch("echo one; echo bad >&2; exit 1"))
        ended(driver, KEY)
        driver.start(self.a_launch("echo two", restarts=1))
        assert Exit(cause=ExitCause.EXITED, code=0, restarts=1) == ended(driver, KEY)

        assert (8, b"one\ntwo\n") == driver.output(KEY, Stream.STDOUT, 100)
        assert (8, b"two\n") == driver.output(KEY, Stream.STDOUT, 4)
        assert (4, b"bad\n") == driver.output(KEY, Stream.STDERR, 100)
        driver.forget(KEY)
        self.wait_for_removals()
        assert (8, b"one\ntwo\n") == self.reader(driver).output(KEY, Stream.STDOUT, 100)

    def test_a_program_sees_its_variables_and_no_others(
        self, driver: TaskDriver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OMEGA_DATABASE_URL", "postgresql://secret")
        launch = self.a_launch("env", env={"OMEGA_TASK": "7"})
        program = Program(
            command=shell_line("env"), image=self.image, env=(("GREETING", "a 'b' $c"),)
        )
        driver.start(Launch(key=KEY, program=program, env=launch.env, cpu_milli=0, memory_mib=0))
        ended(driver, KEY)
        lines = self.text(driver).splitlines()

        assert {"GREETING=a 'b' $c", "OMEGA_TASK=7"} <= set(lines)
        assert "secret" not in "".join(lines)

    def test_unknown_tasks_are_harmless(self, driver: TaskDriver) -> None:
        driver.signal(KEY, "KILL")
        driver.forget(KEY)

        assert (0, b"") == driver.output(KEY, Stream.STDOUT, 10)
        assert not driver.look()

    def test_a_new_driver_finds_what_runs(self, driver: TaskDriver, tmp_path: Path) -> None:
        driver.start(self.a_launch("echo up; sleep 1000"))
        until(lambda: self.text(driver) == "up\n")
        again = self.another(driver)
        assert {KEY: None} == again.look()
        again.signal(KEY, "KILL")

        assert ended(again, KEY).cause is ExitCause.SIGNALLED
