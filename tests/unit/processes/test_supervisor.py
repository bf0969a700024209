"""Children are started, watched, started again, and always ended.

Real processes: a child says in its log that it is up, and tests wait for that or for its end.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from omega.clock import ManualClock
from omega.processes import supervisor as module
from omega.processes.supervisor import (
    Child,
    ChildSpec,
    ChildState,
    RestartPolicy,
    Supervisor,
    omega_command,
)

POLICY = RestartPolicy(
    delay_first_s=1.0, delay_max_s=3.0, crashes_max=4, steady_after_s=100.0, grace_s=30.0
)
UNTIL_EOF = "import sys; sys.stdin.read()"
CRASH = "import sys; sys.exit('it broke')"
OBEDIENT = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
print("up", flush=True)
signal.pause()
"""
STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("up", flush=True)
signal.pause()
"""


class Nursery:
    """Makes supervisors with a clock that is moved by hand, and ends what they started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = ManualClock()
        self.told: list[str] = []
        self.made: list[Supervisor] = []

    def __call__(self, *scripts: str, policy: RestartPolicy = POLICY) -> Supervisor:
        specs = [
            ChildSpec(f"child-{number}", (sys.executable, "-c", script))
            for number, script in enumerate(scripts)
        ]
        supervisor = Supervisor(
            specs, log_dir=self.folder, clock=self.clock, policy=policy, tell=self.told.append
        )
        self.made.append(supervisor)
        return supervisor


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Nursery]:
    nursery = Nursery(tmp_path)
    yield nursery
    for supervisor in nursery.made:
        supervisor.stop()


def wait_for_end(child: Child) -> None:
    """Wait for the child's end without reaping it, which is the supervisor's to do."""
    assert child.pid is not None
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)


def crash(supervisor: Supervisor, child: Child) -> None:
    """Let a child end by itself, and the supervisor notice."""
    wait_for_end(child)
    supervisor.look()


def wait_for_word(child: Child) -> None:
    """Wait until the child has said something; it does as soon as it is up."""
    tail = subprocess.Popen(["tail", "-n", "+1", "-f", str(child.log)], stdout=subprocess.PIPE)
    assert tail.stdout is not None
    assert tail.stdout.readline()
    tail.kill()
    tail.stdout.close()
    tail.wait()


def test_a_child_runs_until_it_is_told_to_end(nursery: Nursery) -> None:
    with nursery(OBEDIENT, OBEDIENT) as supervisor:
        pids = [child.pid for child in supervisor.children]
        for child in supervisor.children:
            wait_for_word(child)
        supervisor.look()

        assert [ChildState.RUNNING] * 2 == [child.state for child in supervisor.children]

    assert [ChildState.ENDED] * 2 == [child.state for child in supervisor.children]
    assert ["ended with code 0"] * 2 == [child.last_end for child in supervisor.children]
    assert not any(psutil.pid_exists(pid) for pid in pids if pid is not None)
    assert [] == nursery.told


def test_a_crashed_child_starts_again_when_its_delay_is_over(nursery: Nursery) -> None:
    with nursery(CRASH) as supervisor:
        (child,) = supervisor.children
        crash(supervisor, child)

        assert (ChildState.WAITING, None) == (child.state, child.pid)
        nursery.clock.advance(0.9)
        supervisor.look()
        assert ChildState.WAITING is child.state
        nursery.clock.advance(0.2)
        supervisor.look()
        assert (ChildState.RUNNING, 1) == (child.state, child.restarts)

    (sentence,) = nursery.told
    assert sentence.startswith("child-0 ended with code 1 and starts again in 1 s; see ")
    assert "it broke" == child.log_tail()


def test_delays_grow_and_a_child_that_crashes_on_and_on_is_given_up(nursery: Nursery) -> None:
    with nursery(CRASH) as supervisor:
        (child,) = supervisor.children
        for delay_s in (1.0, 2.0, 3.0):
            crash(supervisor, child)
            assert nursery.clock.now() + delay_s == child.start_due
            nursery.clock.advance(delay_s)
            supervisor.look()
        crash(supervisor, child)

        assert ChildState.GIVEN_UP is child.state
        assert [child] == supervisor.given_up
        supervisor.look()
        assert (None, 3) == (child.pid, child.restarts)
    assert "4 times in a row and is given up" in nursery.told[-1]


def test_a_child_that_has_run_for_long_begins_to_count_anew(nursery: Nursery) -> None:
    with nursery(CRASH) as supervisor:
        (child,) = supervisor.children
        crash(supervisor, child)
        nursery.clock.advance(1.0)
        supervisor.look()
        wait_for_end(child)
        nursery.clock.advance(POLICY.steady_after_s)
        supervisor.look()

        assert 1 == child.crashes


def test_a_killed_child_is_a_crashed_one(nursery: Nursery) -> None:
    with nursery(UNTIL_EOF) as supervisor:
        (child,) = supervisor.children
        assert child.process is not None
        child.process.send_signal(signal.SIGKILL)
        crash(supervisor, child)

        assert "was killed by SIGKILL" == child.last_end
        assert ChildState.WAITING is child.state


def test_a_child_that_ends_well_is_not_started_again(nursery: Nursery) -> None:
    with nursery("pass") as supervisor:
        (child,) = supervisor.children
        crash(supervisor, child)

        assert (ChildState.ENDED, 0) == (child.state, child.restarts)
    assert ["child-0 has ended"] == nursery.told


def test_one_childs_crash_leaves_the_others_alone(nursery: Nursery) -> None:
    with nursery(CRASH, UNTIL_EOF) as supervisor:
        crashed, other = supervisor.children
        pid = other.pid
        crash(supervisor, crashed)

        assert (ChildState.RUNNING, pid) == (other.state, other.pid)


def test_a_child_that_will_not_end_is_killed(nursery: Nursery) -> None:
    supervisor = nursery(STUBBORN, policy=RestartPolicy(grace_s=0.0))
    with supervisor:
        (child,) = supervisor.children
        wait_for_word(child)

    assert "was killed by SIGKILL" == child.last_end


def test_children_are_ended_when_the_block_fails(nursery: Nursery) -> None:
    supervisor = nursery(UNTIL_EOF)
    with pytest.raises(RuntimeError), supervisor:
        raise RuntimeError

    assert (ChildState.ENDED, None) == (supervisor.children[0].state, supervisor.children[0].pid)


def test_stopping_twice_is_harmless(nursery: Nursery) -> None:
    with nursery(UNTIL_EOF) as supervisor:
        pass
    supervisor.stop()

    assert ChildState.ENDED is supervisor.children[0].state


def test_a_log_that_is_too_long_is_set_aside(
    nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOG_BYTES_MAX", 10)
    (nursery.folder / "child-0.log").write_text("of an earlier day\n")
    with nursery("print('new')") as supervisor:
        (child,) = supervisor.children
        crash(supervisor, child)

        assert "new" == child.log_tail()
    assert "of an earlier day\n" == (nursery.folder / "child-0.log.1").read_text()


def test_a_log_that_grows_too_long_is_cut_while_its_writer_goes_on(
    nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOG_BYTES_MAX", 10)
    with nursery("print('much too long', flush=True); input()") as supervisor:
        (child,) = supervisor.children
        wait_for_word(child)
        supervisor.look()

        assert (0, "") == (child.log.stat().st_size, child.log_tail())
    assert b"h too long\n"[-10:] == (nursery.folder / "child-0.log.1").read_bytes()


def test_children_are_told_apart_by_name(tmp_path: Path) -> None:
    twins = [ChildSpec("twin", ("true",)), ChildSpec("twin", ("true",))]

    with pytest.raises(AssertionError, match="distinct"):
        Supervisor(twins, log_dir=tmp_path)


def test_a_verb_is_run_with_our_own_interpreter_and_ends_with_us() -> None:
    command = omega_command("node", "simulate")

    assert (sys.executable, "-m", "omega.cli", "node", "simulate", "--end-with-parent") == command


@pytest.mark.parametrize("ending", ["sys.exit(0)", "os.kill(os.getpid(), 9)"])
def test_children_end_with_a_supervisor_that_does_not_end_them(tmp_path: Path, ending: str) -> None:
    parent = f"""
import os, sys
from pathlib import Path
from omega.processes.supervisor import ChildSpec, Supervisor
supervisor = Supervisor(
    [ChildSpec("child", (sys.executable, "-c", {UNTIL_EOF!r}))], log_dir=Path({str(tmp_path)!r})
)
supervisor.__enter__()
print(supervisor.children[0].pid, flush=True)
sys.stdin.readline()
{ending}
"""
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        child = psutil.Process(int(process.stdout.readline()))
        process.communicate("go on\n")

    gone, _ = psutil.wait_procs([child])
    assert [child] == gone


def test_delays_double_up_to_a_bound() -> None:
    delays: Callable[[int], float] = RestartPolicy(delay_first_s=0.5, delay_max_s=10).delay_s

    assert [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0] == [delays(n) for n in range(1, 8)]


def test_a_log_that_somebody_removed_ends_nobody(nursery: Nursery) -> None:
    with nursery(OBEDIENT) as supervisor:
        (child,) = supervisor.children
        wait_for_word(child)
        child.log.unlink()
        supervisor.look()

        assert ChildState.RUNNING is child.state
