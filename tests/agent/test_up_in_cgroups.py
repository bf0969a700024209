"""`omega up`: its tasks are in cgroups, with limits where the kernel has them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.in_cgroups import CONTROLLERS, HIERARCHY, group_of, needs_cgroups
from tests.fixtures.command_line import running

pytestmark = needs_cgroups

LIMITS = ("memory.max", "memory.swap.max", "cpu.weight", "pids.max")
SHOW = """
path={mount}$(sed -n 's/^0:://p' /proc/self/cgroup)
echo "$path"
for name in {names}; do cat "$path/$name"; done
"""


def test_tasks_of_a_whole_cell_on_this_machine_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert HIERARCHY is not None
    monkeypatch.delenv("OMEGA_DATABASE_URL", raising=False)
    data = f"--data-dir={tmp_path / 'data'}"
    is_limited = {"memory", "cpu", "pids"} <= CONTROLLERS
    line = SHOW.format(mount=HIERARCHY.mount, names=" ".join(LIMITS if is_limited else ()))
    with running(tmp_path) as started:
        up = started("up", "--allow-root", "--cpu=2", "--schedulers=batch=1", data)
        started.wait_for(lambda: "In another terminal" in started.log())
        command = [sys.executable, "-m", "omega.cli", "run", data, "--cpu=1", "--memory=48MiB"]
        ran = subprocess.run(
            [*command, "--", "sh", "-c", line], capture_output=True, text=True, check=False
        )
        up.terminate()
        assert 0 == up.wait()

    assert 0 == ran.returncode, ran.stderr
    path, *limits = ran.stdout.split()
    (tasks,) = (tmp_path / "data/agents").glob("*/tasks")
    assert (group_of(tasks.resolve()).name, "1-0") == (Path(path).parent.name, task_of(path))
    assert not group_of(tasks.resolve()).exists()
    if is_limited:
        memory, swap, weight, pids = limits
        assert (48 * 2**20, 0, 100) == (int(memory), int(swap), int(weight))
        assert int(pids) > 0
    else:
        logs = (tmp_path / "data/logs/up").glob("agent*")
        assert any("nothing limits the memory, CPU" in log.read_text() for log in logs)


def task_of(path: str) -> str:
    """Return the job and task of a cgroup."""
    return Path(path).name.rpartition("-")[0]
