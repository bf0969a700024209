"""Programs that try to get away, to use too much, or to break the agent through their folder."""

import errno
import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from omega.clock import ManualClock, RealClock
from omega.model.exits import Exit, ExitCause
from omega.model.programs import Program, shell_line
from omega.nodes.agent.linux_processes import process_of
from omega.nodes.agent.output_file import OutputFile
from omega.nodes.agent.process_driver import WATCH_S, ProcessDriver
from omega.nodes.agent.process_start import Surroundings
from omega.nodes.agent.task_driver import Launch, NotStarted, Stream, TaskKey
from tests.agent.agent_processes import a_launch
from tests.agent.waiting import ended, runs, until

KEY = TaskKey(1, 0, 1_000)


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[ProcessDriver]:
    """Yield a driver; kill what it left running."""
    driver = ProcessDriver(tmp_path / "tasks", RealClock(), output_bytes_max=100_000)
    yield driver
    for key in driver.look():
        driver.signal(key, "KILL")
        ended(driver, key)


def test_those_who_leave_session_and_parent_are_killed(driver: ProcessDriver) -> None:
    escape = "setsid sh -c '(setsid sh -c \"echo \\$\\$; exec sleep 1000\" &)'"
    driver.start(a_launch(f"{escape}; {escape}; sleep 1000"))
    until(lambda: len(_pids(driver)) == 2)
    assert all(runs(pid) for pid in _pids(driver))
    driver.signal(KEY, "KILL")
    ended(driver, KEY)

    assert not any(runs(pid) for pid in _pids(driver))


def test_those_who_fork_while_they_are_killed_are_killed(driver: ProcessDriver) -> None:
    # Each process starts its successor and ends: no list of processes is ever up to date.
    line = "f() { sleep 0.01; echo $1 >count; (f $(($1 + 1))) & }; echo 0 >count; f 1; sleep 1000"
    driver.start(a_launch(line))
    count = driver._folder / str(KEY) / "work/count"  # noqa: SLF001
    until(lambda: count.exists() and int(count.read_text() or 0) > 3)
    driver.signal(KEY, "KILL")
    ended(driver, KEY)
    marker = os.fsencode(f"OMEGA_TASK_FOLDER={driver._folder / str(KEY)}")  # noqa: SLF001

    assert not [path for path in Path("/proc").glob("[0-9]*") if marker in _environment(path)]


def test_who_was_seen_below_the_command_does_not_escape(
    driver: ProcessDriver, tmp_path: Path
) -> None:
    """Without its environment and session only the parent, which soon ends, tells whose it is."""
    ended_now = tmp_path / "now"
    line = (
        "env -i setsid sh -c 'echo $$; exec sleep 1000' & "
        f"while ! test -e {ended_now}; do sleep 0.05; done"
    )
    driver.start(a_launch(line))
    until(lambda: driver.output(KEY, Stream.STDOUT, 10)[0])
    pid = int(driver.output(KEY, Stream.STDOUT, 10)[1])
    until(lambda: (it := process_of(pid)) is not None and it.session == pid)
    looked = RealClock().now() + 1.5 * WATCH_S
    until(lambda: driver.look() and RealClock().now() > looked)
    ended_now.touch()
    ended(driver, KEY)
    assert not runs(pid)


def test_a_shell_that_its_program_stops_does_not_hold_up_a_kill(driver: ProcessDriver) -> None:
    driver.start(a_launch("kill -STOP $PPID; echo up; exec sleep 1000"))
    until(lambda: _text(driver) == "up\n")
    driver.signal(KEY, "KILL")

    assert ended(driver, KEY).cause is ExitCause.SIGNALLED


def test_a_program_that_kills_its_shell_ends_with_it(driver: ProcessDriver) -> None:
    driver.start(a_launch("echo $$; kill -KILL $PPID; exec sleep 1000"))
    end = ended(driver, KEY)

    assert (ExitCause.SIGNALLED, 9) == (end.cause, end.signal)
    assert not any(runs(pid) for pid in _pids(driver))


def test_a_tree_that_uses_too_much_memory_is_ended(driver: ProcessDriver, tmp_path: Path) -> None:
    # The shell's own child holds the memory, not the command.
    python = "x = bytearray(80 * 2**20); import time; time.sleep(1000)"
    driver.start(
        a_launch(f'echo $$; {shutil.which("python3")} -c "{python}" & wait', memory_mib=60)
    )
    end = ended(driver, KEY)

    assert end.cause is ExitCause.OUT_OF_MEMORY
    assert end.detail.endswith("may use 60 MiB")
    assert not any(runs(pid) for pid in _pids(driver))
    again = ProcessDriver(tmp_path / "tasks", RealClock())
    assert end == ended(again, KEY)


COPIES = """
import os, time
held = bytearray(80 * 2**20)
for _ in range(3):
    if not os.fork():
        break
open("../up", "a").write("x")
time.sleep(1000)
"""
"""Four processes share 80 MiB."""


def test_memory_that_processes_share_counts_once(tmp_path: Path) -> None:
    clock = ManualClock()
    driver = ProcessDriver(tmp_path, clock)
    python = shutil.which("python3")
    assert python is not None
    driver.start(a_launch(f"exec {python} -c {shlex.quote(COPIES)}", memory_mib=200))
    up = tmp_path / str(KEY) / "up"
    until(lambda: up.exists() and "xxxx" == up.read_text())
    for _ in range(2):
        clock.advance(WATCH_S)
        shown = driver.look()
    driver.signal(KEY, "KILL")
    while driver.look()[KEY] is None:
        clock.advance(1)

    assert {KEY: None} == shown, "it has used less than it may"


def test_what_could_not_start_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    driver = ProcessDriver(tmp_path, RealClock(), outputs_max=0)
    with monkeypatch.context() as patch:
        patch.setattr(Surroundings, "start", refuse)
        with pytest.raises(NotStarted, match="Permission denied"):
            driver.start(a_launch("true"))
    other = a_launch("true", 2)
    driver.start(other)
    ended(driver, other.key)
    driver.forget(other.key)

    assert [] == [path for path in tmp_path.iterdir() if not path.name.startswith(".")]


def test_output_that_grows_while_it_is_read_is_read_as_far_as_it_was_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "stdout"
    path.write_bytes(b"said")
    count = os.fstat

    def count_before_more(descriptor: int) -> os.stat_result:
        counted = count(descriptor)
        with path.open("ab") as growing:
            growing.write(b", and more")
        return counted

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", count_before_more)
        total, tail = OutputFile(path).read(100)

    assert total == len(tail)
    assert b"said, and more".startswith(tail)


GARBAGE: dict[str, Callable[[Path], object]] = {
    "text": lambda path: path.write_text("garbage\n"),
    "huge": lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_WRONLY), 2**40),
    "bytes": lambda path: path.write_bytes(b"\xff\xfe\0" * 10),
    "number": lambda path: path.write_text("9" * 3_000 + "\n"),
    "superscript": lambda path: path.write_text("\N{SUPERSCRIPT TWO}\n"),
    "folder": lambda path: path.mkdir(),
    "fifo": os.mkfifo,
    "link": lambda path: path.symlink_to("/dev/zero"),
    "json": lambda path: path.write_text("[" * 4_000),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_in_its_folder_breaks_nothing(tmp_path: Path, name: str) -> None:
    for file in (
        "run-1/shell",
        "run-1/exit",
        "launch",
        "end",
        "stdout",
        "stdout.1",
        "stdout.dropped",
    ):
        folder = tmp_path / file.replace("/", "-")
        driver = ProcessDriver(folder, RealClock(), output_bytes_max=1)
        driver.start(a_launch("echo some output; exit 3"))
        path = folder / str(KEY) / file
        until((folder / str(KEY) / "run-1/exit").exists)
        for before in (path, path.with_name(f"{path.name}.new")):
            before.unlink(missing_ok=True)
            GARBAGE[name](before)

        for agent in (driver, ProcessDriver(folder, RealClock(), output_bytes_max=1)):
            _all_ended(agent)
            agent.output(KEY, Stream.STDOUT, 1_000)
            agent.forget(KEY)
            assert KEY not in agent.look()


def test_a_program_that_removes_its_folder_breaks_nothing(driver: ProcessDriver) -> None:
    driver.start(a_launch("rm -rf ../run-* ../launch ../std*; exit 3"))

    assert ended(driver, KEY).cause is ExitCause.EXITED
    driver.forget(KEY)
    driver.start(a_launch("exit 0"))
    assert Exit(cause=ExitCause.EXITED, code=0) == ended(driver, KEY)


def test_long_output_is_cut_and_counted(tmp_path: Path) -> None:
    clock = ManualClock()
    driver = ProcessDriver(tmp_path, clock, output_bytes_max=1_000)
    go = tmp_path / "go"
    os.mkfifo(go)
    driver.start(a_launch(f"head -c 5000 /dev/zero | tr '\\0' a; read x <{go}; echo end"))
    until(lambda: driver.output(KEY, Stream.STDOUT, 10)[0] == 5_000)
    clock.advance(2)
    driver.look()
    assert (tmp_path / str(KEY) / "stdout").stat().st_size == 0
    assert (5_000, b"a" * 500) == driver.output(KEY, Stream.STDOUT, 2_000)

    go.write_text("\n")
    assert Exit(cause=ExitCause.EXITED, code=0) == ended(driver, KEY)
    assert (5_004, b"aaend\n") == driver.output(KEY, Stream.STDOUT, 6)


def test_a_cut_that_fails_is_said_once(tmp_path: Path) -> None:
    said: list[str] = []
    clock = ManualClock()
    driver = ProcessDriver(tmp_path, clock, output_bytes_max=1, warn=said.append)
    driver.start(a_launch("echo long; mkdir ../stdout.1.new; echo up >../up; sleep 1000"))
    until((tmp_path / str(KEY) / "up").exists)
    for _ in range(3):
        clock.advance(2)
        driver.look()
    assert len(said) == 1
    assert "could not be cut" in said[0]
    driver.signal(KEY, "KILL")
    while driver.look()[KEY] is None:
        clock.advance(1)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"command": ("no-such",)}, "'no-such' was not found"),
        ({"command": ("/no/such",)}, "'/no/such' was not found"),
        ({"command": ("/etc/passwd",)}, "'/etc/passwd' may not be executed"),
        ({"command": ("/etc",)}, "'/etc' may not be executed"),
        ({"working_dir": "/no/such"}, "no folder '/no/such'"),
        ({"user": "root"}, "does not run programs as user 'root'"),
        ({"user": "no-such-user"}, "no user 'no-such-user'"),
        ({"image": "busybox"}, "has an image"),
        ({"env_file": "/etc/passwd"}, "does not read variables from '/etc/passwd'"),
        ({"env_file": "{tmp}/env/../secret"}, "does not read variables"),
        ({"env_file": "{tmp}/env/link"}, "does not read variables"),
        ({"env_file": "{tmp}/env/none"}, "no file of variables"),
        ({"env_file": "{tmp}/env/bad"}, "line 2 of .* is not NAME=value"),
        ({"env_file": "{tmp}/env/own"}, "line 1 of .* begins with OMEGA_"),
    ],
)
def test_what_cannot_start_says_why(tmp_path: Path, fields: dict[str, str], why: str) -> None:
    (tmp_path / "env").mkdir()
    (tmp_path / "secret").write_text("A=hunter2\n")
    (tmp_path / "env/link").symlink_to(tmp_path / "secret")
    (tmp_path / "env/bad").write_text("A=hunter2\nhunter2\n")
    (tmp_path / "env/own").write_text("OMEGA_X=hunter2\n")
    driver = ProcessDriver(
        tmp_path / "tasks",
        RealClock(),
        env_dirs=[tmp_path / "env"],
        users={"no-such-user"},
    )
    shown = {
        name: value if name == "command" else value.replace("{tmp}", str(tmp_path))
        for name, value in fields.items()
    }
    program = Program(**{"command": ("true",), **shown})  # type: ignore[arg-type]
    with pytest.raises(NotStarted, match=why) as refused:
        driver.start(Launch(key=KEY, program=program, env={}, cpu_milli=0, memory_mib=0))

    assert "hunter2" not in str(refused.value)
    assert not driver.look()
    assert not ProcessDriver(tmp_path / "tasks", RealClock()).look()


def test_a_file_of_variables_is_read(tmp_path: Path) -> None:
    file = tmp_path / "variables"
    file.write_text("# secrets\n\nA=from file = b\nB=from file\n")
    driver = ProcessDriver(tmp_path / "tasks", RealClock(), env_dirs=[tmp_path])
    program = Program(
        command=shell_line('echo "$A,$B"'), env=(("B", "from job"),), env_file=str(file)
    )
    driver.start(Launch(key=KEY, program=program, env={}, cpu_milli=0, memory_mib=0))
    ended(driver, KEY)

    assert _text(driver) == "from file = b,from job\n"


def test_two_hundred_tasks(driver: ProcessDriver) -> None:
    before = _children()
    for number in range(1, 201):
        driver.start(a_launch(f"exit {number % 100}", number))
    until(lambda: None not in driver.look().values())

    ends = {key.job: end.code for key, end in driver.look().items() if end is not None}
    assert {number: number % 100 for number in range(1, 201)} == ends
    assert not _children() - before, "zombies"


def test_output_never_blocks_on_a_fifo(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "stdout")

    assert (0, b"") == OutputFile(tmp_path / "stdout").read(10)


def _pids(driver: ProcessDriver) -> list[int]:
    return [int(word) for word in _text(driver).split()]


def _text(driver: ProcessDriver) -> str:
    return driver.output(KEY, Stream.STDOUT, 10_000)[1].decode()


def _environment(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""


def _children() -> set[str]:
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split())


def _all_ended(driver: ProcessDriver) -> None:
    until(lambda: None not in driver.look().values())
