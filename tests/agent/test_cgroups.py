"""Tasks in cgroups: who is in them, kills, and what the next agent finds.

They need root and a cgroup v2 hierarchy, with or without controllers.
"""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from omega.clock import ManualClock, RealClock
from omega.model.exits import Exit, ExitCause
from omega.model.programs import Check, shell_line
from omega.nodes.agent.cgroups import Cgroups
from omega.nodes.agent.process_driver import WATCH_S, ProcessDriver
from omega.nodes.agent.task_cgroup import group_name
from omega.nodes.agent.task_driver import TaskDriver
from tests.agent.driver_contract import DriverContract
from tests.agent.in_cgroups import (
    HIERARCHY,
    KEY,
    SIBLING,
    a_launch,
    group_of,
    kill_all,
    members,
    needs_cgroups,
    text,
)
from tests.agent.waiting import ended, runs, until

pytestmark = needs_cgroups


class TestDriverInCgroups(DriverContract):
    """The contract of drivers, with cgroups."""

    serve = f"exec {sys.executable} -m http.server --bind 127.0.0.1 $PORT"
    port = 20_311

    @pytest.fixture
    def driver(self, folder: Path, cgroups: Cgroups) -> Iterator[TaskDriver]:
        """Yield a driver; kill what it left running."""
        self.folder, self.cgroups = folder, cgroups
        driver = ProcessDriver(folder, RealClock(), cgroups=cgroups)
        yield driver
        kill_all(driver)

    def another(self, driver: TaskDriver) -> TaskDriver:
        """Return a new driver of the same folder."""
        return ProcessDriver(self.folder, RealClock(), cgroups=self.cgroups)


def test_a_program_is_in_its_cgroup_before_its_first_instruction(
    driver: ProcessDriver, folder: Path
) -> None:
    driver.start(a_launch("cat /proc/self/cgroup; readlink /proc/self/fd/0; echo up; sleep 1000"))
    until(lambda: text(driver).endswith("up\n"))
    own = next(line for line in text(driver).splitlines() if line.startswith("0::"))

    assert own.endswith(f"/{group_name(folder)}/{KEY}.1")
    assert "/dev/null" in text(driver)
    until(lambda: len(members(folder)) == 3)  # the task's shell, the program's shell, and sleep


def test_a_program_of_another_user_is_in_its_cgroup_and_cannot_leave(
    folder: Path, cgroups: Cgroups, tmp_path: Path
) -> None:
    for path in (tmp_path, *tmp_path.parents[:-1]):
        if path.stat().st_uid == os.geteuid() and not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o011)
    driver = ProcessDriver(folder, RealClock(), cgroups=cgroups, users={"nobody"})
    try:
        # Of its own group's parent, so that only the right to move is lacking.
        line = f"echo 0 >{group_of(folder).parent}/cgroup.procs; id -un; echo up; exec sleep 1000"
        driver.start(a_launch(line, user="nobody"))
        until(lambda: text(driver).endswith("up\n"))

        assert "nobody\nup\n" == text(driver)
        until(lambda: len(members(folder)) == 2)
    finally:
        kill_all(driver)


def test_who_hides_from_proc_is_found_in_the_cgroup(driver: ProcessDriver) -> None:
    """It has no session, no parent and no variable of the task before anybody looks."""
    hide = "env -i setsid sh -c '(env -i setsid sh -c \"echo \\$\\$; exec sleep 1000\" &)'"
    driver.start(a_launch(f"{hide}; while ! test -s ../stdout; do sleep 0.01; done; exit 3"))
    assert Exit(cause=ExitCause.EXITED, code=3) == ended(driver, KEY)

    assert text(driver).strip().isdecimal()
    assert not runs(int(text(driver)))


def test_an_end_leaves_no_cgroup_and_a_restart_has_a_new_one(
    driver: ProcessDriver, folder: Path
) -> None:
    driver.start(a_launch("exit 1"))
    ended(driver, KEY)
    assert not list(group_of(folder).glob("*.1"))
    driver.start(a_launch("echo up; sleep 1000"))
    until(lambda: text(driver) == "up\n")

    assert [f"{KEY}.2"] == [path.name for path in group_of(folder).iterdir() if path.is_dir()]


def test_the_next_driver_finds_the_cgroup_and_kills_by_it(
    driver: ProcessDriver, folder: Path
) -> None:
    hide = "env -i setsid sh -c '(env -i setsid sh -c \"echo \\$\\$; exec sleep 1000\" &)'"
    driver.start(a_launch(f"{hide}; sleep 1000"))
    until(lambda: text(driver).endswith("\n"))
    # As the watchdog does, which makes no cgroups.
    watchdog = ProcessDriver(folder, RealClock())
    watchdog.signal(KEY, "KILL")

    assert ended(watchdog, KEY).signal == signal.SIGKILL
    assert not runs(int(text(driver)))
    assert not (group_of(folder) / f"{KEY}.1").exists()


def test_cgroups_that_nothing_tells_of_are_ended(
    driver: ProcessDriver, folder: Path, cgroups: Cgroups
) -> None:
    driver.start(a_launch("echo $$; exec sleep 1000"))
    until(lambda: text(driver).endswith("\n"))
    pid = int(text(driver))
    cgroups.make("9-9-9.1", cpu_milli=0, memory_mib=0)
    (folder / str(KEY) / "launch").unlink()
    clock = ManualClock()
    after = ProcessDriver(folder, clock, cgroups=cgroups)
    assert not after.look()

    until(lambda: driver.look()[KEY] is not None)
    clock.advance(2 * WATCH_S)
    after.look()
    assert not runs(pid)
    assert not [path for path in group_of(folder).iterdir() if path.is_dir()]


@pytest.mark.parametrize("written", ["{root}", "{root}/../{group}/{name}", "/tmp/{group}/{name}"])
def test_a_task_cannot_name_another_cgroup(
    driver: ProcessDriver, folder: Path, cgroups: Cgroups, written: str
) -> None:
    assert HIERARCHY is not None
    driver.start(a_launch("echo up; sleep 1000"))
    until(lambda: text(driver) == "up\n")
    launch = folder / str(KEY) / "launch"
    said = str(group_of(folder) / f"{KEY}.1")
    names = {"root": HIERARCHY.mount, "group": group_name(folder), "name": f"{KEY}.1"}
    launch.write_text(launch.read_text().replace(said, written.format(**names)))
    again = ProcessDriver(folder, RealClock())
    (task,) = again._running.values()  # noqa: SLF001

    assert task.cgroup is None
    again.signal(KEY, "KILL")
    assert ended(again, KEY).cause is ExitCause.SIGNALLED


def test_cgroups_that_a_program_makes_in_its_own_end_with_it(
    driver: ProcessDriver, folder: Path
) -> None:
    own = group_of(folder) / f"{KEY}.1" / "own"
    driver.start(a_launch(f"mkdir {own}; (echo 0 >{own}/cgroup.procs; sleep 1000) & exit 0"))

    assert Exit(cause=ExitCause.EXITED, code=0) == ended(driver, KEY)
    assert not own.parent.exists()


def test_a_check_runs_in_the_cgroup_of_its_task(driver: ProcessDriver, folder: Path) -> None:
    launch = a_launch("echo up; sleep 1000")
    driver.start(launch)
    until(lambda: text(driver) == "up\n")
    line = f"grep -q {group_name(folder)}/{KEY} /proc/self/cgroup"

    assert driver.probe_of(launch, Check(command=shell_line(line), timeout_ms=60_000))() is None
    driver.signal(KEY, "KILL")
    ended(driver, KEY)


def test_without_a_cgroup_a_task_runs_and_the_operator_is_told_once(
    driver: ProcessDriver, folder: Path, cgroups: Cgroups, said: list[str]
) -> None:
    said.clear()
    group_of(folder).rmdir()
    driver.start(a_launch("exit 3"))
    driver.start(a_launch("exit 4", SIBLING))

    assert (3, 4) == (ended(driver, KEY).code, ended(driver, SIBLING).code)
    assert ["a task runs without a cgroup: No such file or directory"] == said
