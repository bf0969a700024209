"""What the controllers of cgroups limit: memory, CPU, processes.

Many machines give controllers to version 1 of cgroups, and these tests are skipped there: `make
test-cgroups` runs them on user-mode Linux, a kernel of its own.
"""

import shutil
from pathlib import Path

import pytest

from omega.clock import RealClock
from omega.model.exits import ExitCause
from omega.nodes.agent.cgroups import Cgroups
from omega.nodes.agent.process_driver import ProcessDriver
from omega.nodes.agent.task_driver import TaskKey
from tests.agent.in_cgroups import KEY, SIBLING, a_launch, group_of, needs_controllers, text
from tests.agent.waiting import ended, until

PYTHON = shutil.which("python3")
pytestmark = needs_controllers


def test_a_task_out_of_memory_says_so_and_its_sibling_lives(driver: ProcessDriver) -> None:
    driver.start(a_launch("echo up; exec sleep 1000", SIBLING, memory_mib=32))
    # A child of the program holds the memory; the program itself would go on.
    hog = f"{PYTHON} -c 'x = bytearray(300 * 2**20)'; echo survived; sleep 1000"
    driver.start(a_launch(hog, memory_mib=64))
    end = ended(driver, KEY)

    assert ExitCause.OUT_OF_MEMORY is end.cause
    assert "it needed more than the 64 MiB that it may use" == end.detail
    assert not text(driver)
    assert driver.look()[SIBLING] is None


def test_a_task_that_ran_out_of_memory_unseen_says_so_to_the_next_agent(
    driver: ProcessDriver, folder: Path, cgroups: Cgroups
) -> None:
    driver.start(a_launch(f"exec {PYTHON} -c 'x = bytearray(300 * 2**20)'", memory_mib=64))
    events = group_of(folder) / f"{KEY}.1" / "memory.events"
    until(lambda: "oom_kill 0" not in events.read_text("ascii"))
    again = ProcessDriver(folder, RealClock(), cgroups=cgroups)

    assert ExitCause.OUT_OF_MEMORY is ended(again, KEY).cause
    ended(driver, KEY)


@pytest.mark.parametrize(
    ("memory_mib", "limit"), [(0, "max"), (1_000, str(1_000 * 2**20)), (2**31 - 1, None)]
)
@pytest.mark.parametrize(("cpu_milli", "weight"), [(0, 1), (1_500, 150), (2**31 - 1, 10_000)])
def test_amounts_become_limits(
    driver: ProcessDriver,
    folder: Path,
    memory_mib: int,
    limit: str | None,
    cpu_milli: int,
    weight: int,
) -> None:
    driver.start(a_launch("echo up; sleep 1000", memory_mib=memory_mib, cpu_milli=cpu_milli))
    until(lambda: text(driver) == "up\n")
    cgroup = group_of(folder) / f"{KEY}.1"

    assert (limit or str((2**31 - 1) * 2**20)) == (cgroup / "memory.max").read_text().strip()
    assert str(weight) == (cgroup / "cpu.weight").read_text().strip()
    assert str(400) == (group_of(folder) / "cpu.weight").read_text().strip()


def test_the_smallest_amount_of_memory_ends_a_task_and_nothing_else(driver: ProcessDriver) -> None:
    driver.start(a_launch("x=0123456789; while :; do x=$x$x; done", memory_mib=1))

    assert ExitCause.OUT_OF_MEMORY is ended(driver, KEY).cause


def test_processors_are_shared_by_what_was_asked_for(driver: ProcessDriver, folder: Path) -> None:
    """Both want one processor for themselves; the time that they had is the kernel's account."""
    pinned = "exec taskset 1 sh -c 'while :; do :; done'"
    tasks = {KEY: 250, SIBLING: 2_000}

    def used_s(key: TaskKey) -> float:
        stat = (group_of(folder) / f"{key}.1" / "cpu.stat").read_text("ascii").split()
        return int(stat[stat.index("usage_usec") + 1]) / 1e6

    for key, cpu_milli in tasks.items():
        driver.start(a_launch(pinned, key, cpu_milli=cpu_milli))
    until(lambda: all(used_s(key) > 0.1 for key in tasks))
    before = {key: used_s(key) for key in tasks}
    until(lambda: sum(used_s(key) - before[key] for key in tasks) > 2)

    assert used_s(SIBLING) - before[SIBLING] > 3 * (used_s(KEY) - before[KEY])


BOMB = """
import os, threading
rest, started = threading.Event(), 0
threading.stack_size(2**16)
try:
    for started in range(30_000):
        threading.Thread(target=rest.wait, daemon=True).start()
except RuntimeError:
    pass
try:
    os.fork()
except OSError as error:
    print(started, error.strerror, flush=True)
rest.wait()
"""


def test_a_bomb_of_threads_and_forks_ends_in_its_own_cgroup(
    driver: ProcessDriver, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "bomb.py").write_text(BOMB)
    driver.start(a_launch(f"exec {PYTHON} {tmp_path}/bomb.py"))
    limit = int((group_of(folder) / f"{KEY}.1" / "pids.max").read_text("ascii"))
    until(lambda: text(driver).endswith("\n"))
    started, _, why = text(driver).strip().partition(" ")
    assert limit - 5 < int(started) < limit
    assert "Resource temporarily unavailable" == why
    driver.start(a_launch("exit 7", SIBLING))
    assert 7 == ended(driver, SIBLING).code
    driver.signal(KEY, "KILL")

    ended(driver, KEY)
    assert not (group_of(folder) / f"{KEY}.1").exists()


def test_nothing_is_said_where_all_is_limited(driver: ProcessDriver, said: list[str]) -> None:
    driver.start(a_launch("exit 0", memory_mib=100, cpu_milli=100))
    ended(driver, KEY)

    assert [] == said
