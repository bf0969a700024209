"""Where an agent may put cgroups: in one that was delegated to it, and what it says elsewhere."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from omega.nodes.agent.cgroups import LEAF
from omega.nodes.agent.task_cgroup import group_name
from tests.agent.in_cgroups import CONTROLLERS, HIERARCHY, needs_cgroups, needs_controllers

pytestmark = needs_cgroups

AN_AGENT = """
import os, pwd, sys
from pathlib import Path
from omega.nodes.agent.cgroups import find_cgroups
Path(sys.argv[2], "cgroup.procs").write_text("0")
os.setgroups([])
os.setuid(pwd.getpwnam("nobody").pw_uid)
folder = Path(sys.argv[1])
cgroups = find_cgroups(folder, cpu_milli=1000, warn=lambda why: print("warned:", why))
print(sorted(cgroups.controllers) if cgroups else None)
own = [line for line in open("/proc/self/cgroup") if line.startswith("0::")]
print(own[0], end="", flush=True)
sys.stdin.read()
if cgroups: cgroups.close()
"""


@pytest.fixture
def delegated() -> Iterator[Path]:
    """A cgroup that was given to the user nobody, as systemd does with Delegate=yes."""
    assert HIERARCHY is not None
    handed_on = " ".join(f"+{it}" for it in CONTROLLERS & {"memory", "cpu", "pids"})
    (HIERARCHY.mount / "cgroup.subtree_control").write_text(handed_on)
    path = HIERARCHY.mount / f"test-{uuid4().hex}"
    path.mkdir()
    for file in (path, *(path / f"cgroup.{it}" for it in ("procs", "subtree_control", "threads"))):
        shutil.chown(file, "nobody")
    yield path
    for below in (*path.glob("*"), path):
        if below.is_dir():
            below.rmdir()


def an_agent(folder: Path, where: Path) -> "subprocess.Popen[str]":
    """Start what finds cgroups, as the user nobody, in a cgroup."""
    return subprocess.Popen(
        [sys.executable, "-c", AN_AGENT, str(folder), str(where)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def told(agent: "subprocess.Popen[str]", lines: int) -> list[str]:
    """Return the first lines that it prints."""
    assert agent.stdout is not None
    return [agent.stdout.readline().rstrip() for _ in range(lines)]


@needs_controllers
def test_a_user_to_whom_a_cgroup_was_delegated_moves_into_a_leaf(
    folder: Path, delegated: Path
) -> None:
    with an_agent(folder, delegated) as agent:
        controllers, own = told(agent, 2)

        assert "['cpu', 'memory', 'pids']" == controllers
        assert own.endswith(f"/{delegated.name}/{LEAF}")
        assert (delegated / group_name(folder) / "cpu.weight").exists()
        # Where the next one starts whom systemd's DelegateSubgroup puts there.
        with an_agent(folder, delegated / LEAF) as another:
            assert [controllers, own] == told(another, 2)
            another.communicate("")
        agent.communicate("")


@needs_controllers
def test_an_agent_that_shares_its_cgroup_moves_nobody(folder: Path, delegated: Path) -> None:
    with subprocess.Popen(["sleep", "1000"]) as other:
        (delegated / "cgroup.procs").write_text(str(other.pid))
        with an_agent(folder, delegated) as agent:
            warned, nothing, own = told(agent, 3)
            agent.communicate("")
        other.kill()

    assert warned == (
        "warned: nothing limits the memory, CPU and number of processes of tasks, and memory is "
        f"looked at once a second: {delegated}: other processes are in this cgroup"
    )
    assert ("None", f"0::/{delegated.name}") == (nothing, own)
    assert not [path for path in delegated.iterdir() if path.is_dir()]


def test_a_user_without_rights_is_told_once(folder: Path) -> None:
    assert HIERARCHY is not None
    with an_agent(folder, HIERARCHY.mount) as agent:
        warned, nothing, _ = told(agent, 3)
        agent.communicate("")

    assert "None" == nothing
    assert warned.startswith("warned: nothing limits the memory, CPU and number of processes of")
    assert warned.endswith(": Permission denied")
