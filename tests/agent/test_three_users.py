"""Three agents on one machine: each a user, a login and a network namespace of its own."""

import os
import pwd
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from omega.errors import NotAllowed
from omega.model.arrays import integers
from omega.model.jobs import Constraint, Operator
from omega.model.programs import Program, shell_line
from omega.nodes.agent.locks import WATCHDOG_LOCK, is_locked
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_spec
from omega.testing.proxy import Proxy
from tests.agent.conftest import SOON, CellAtWork
from tests.fixtures.at_work import wait_until
from tests.fixtures.logins import Login
from tests.fixtures.networks import connection_to, socket_of, through_file

pytestmark = pytest.mark.postgres

USERS = ("daemon", "bin", "nobody")
ROOT = Path(__file__).parents[2]
SECRETIVE = """\
echo secret > $TMPDIR/secret; id -un; sed 1,2d /proc/net/dev | cut -d: -f1 | xargs
while [ ! -e "$GATE" ]; do sleep 0.05; done
"""
CURIOUS = """\
cd $OTHERS && cat tasks/*/*/secret records/* 2>/dev/null || echo shut
for pid in $PIDS; do kill -0 $pid 2>/dev/null && echo may kill; done; echo tried
"""


def needed_folders() -> list[Path]:
    """Return what a process of ours reads, as far as it lies where another user cannot go."""
    paths = {Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), ROOT}
    return sorted(path for path in paths if closed_above(path) is not None)


def closed_above(path: Path) -> Path | None:
    """Return the topmost folder above a path that others may not enter."""
    for parent in [*reversed(path.parents)]:
        if not parent.stat().st_mode & 0o001:
            return parent
    return None


def opening(folders: list[Path]) -> str:
    """Return shell lines that show these folders in this mount namespace, and their parents empty.

    The interpreter of this test may lie in the home of root, which no other user can enter.
    """
    names = [shlex.quote(str(path)) for path in folders]
    tops = {closed_above(path) for path in folders}
    lines = [f"mkdir $KEPT/{n}; mount --bind {name} $KEPT/{n}" for n, name in enumerate(names)]
    lines += [f"mount -t tmpfs -o mode=755 none {shlex.quote(str(it))}" for it in tops]
    lines += [f"mkdir -p {name}; mount --bind $KEPT/{n} {name}" for n, name in enumerate(names)]
    return "\n".join(lines)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that all users may enter; pytest's own are shut to them."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture
def listener(shared: Path, database_url: str) -> Iterator[Path]:
    """A file by which all users reach the tests' server.

    Their network namespaces have no other way to it, and its own file may be shut to them.
    """
    path = socket_of(shared, 5432)
    with socket.socket(socket.AF_UNIX) as local:
        local.bind(str(path))
        path.chmod(0o666)
        local.listen()
        with Proxy(connection_to(database_url), listener=local):
            yield path


@pytest.fixture
def agents(
    at_work: CellAtWork, listener: Path, login: Login, shared: Path
) -> Iterator[dict[str, str]]:
    """The URL of each user's login, with an agent at work under it."""
    if os.geteuid() != 0:
        pytest.skip("it takes root to be three users")
    at_work.kill_agent()
    urls = {user: login(f"agent_{user}", "omega_node") for user in USERS}
    log = at_work.folder / "processes.log"
    processes = [
        start(user, through_file(listener, url), shared, log) for user, url in urls.items()
    ]
    at_work.started.processes += processes
    at_work.started.wait_for(lambda: set(USERS) <= at_work.reporting())
    yield urls
    for process in processes:
        at_work.started.processes.remove(process)
        process.terminate()
        process.wait()
    for deadline in shared.glob("*/deadline"):
        deadline.unlink()
    wait_until(
        lambda: not any(is_locked(shared / user, WATCHDOG_LOCK) for user in USERS),
        "the ends of the watchdogs, which may make folders before",
    )


def start(user: str, url: str, shared: Path, log: Path) -> "subprocess.Popen[bytes]":
    """Start the agent of a user; its machine has the user's name."""
    account = pwd.getpwnam(user)
    state, kept = shared / user, shared / f"{user}-kept"
    state.mkdir(mode=0o700)
    os.chown(state, account.pw_uid, account.pw_gid)
    kept.mkdir()
    agent = [sys.executable, "-m", "omega.cli", "node", "run", "--end-tasks", f"--name={user}"]
    agent += ["--cpu=1", "--memory=1GiB", f"--attribute=owner={user}", f"--state-dir={state}"]
    drop = ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]
    script = f"{opening(needed_folders())}\ncd /\nexec {shlex.join([*drop, *agent])}"
    with log.open("ab") as written:
        return subprocess.Popen(
            ["unshare", "--mount", "--net", "sh", "-ec", script],
            stdout=written,
            stderr=written,
            env={
                **os.environ,
                **SOON,
                "OMEGA_DATABASE_URL": url,
                "OMEGA_DATA_DIR": str(state),
                "PYTHONPATH": str(ROOT),
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONUNBUFFERED": "1",
                "KEPT": str(kept),
                "HOME": str(state),
            },
        )


def submitted(store: PostgresStore, user: str, line: str, **env: str) -> int:
    """Submit a program to a user's machine."""
    program = Program(command=shell_line(line), env=tuple(sorted(env.items())))
    (job,) = store.submit(
        [
            a_spec(
                program=program,
                cpu_milli=100,
                constraints=(Constraint("owner", Operator.IN, (user,)),),
            )
        ]
    )
    return job


def said(store: PostgresStore, job: int) -> list[str]:
    """Return the lines that a job's only task has written so far."""
    output = store.output(job, 0, "stdout")
    return [] if output is None else output.tail.decode().splitlines()


def speaks(store: PostgresStore, job: int) -> bool:
    return len(said(store, job)) == 2


def test_each_agent_has_its_own_and_nothing_of_others(
    at_work: CellAtWork, agents: dict[str, str], shared: Path
) -> None:
    store, gate = at_work.store, shared / "gate"
    secretive = {user: submitted(store, user, SECRETIVE, GATE=str(gate)) for user in USERS}
    for user, job in secretive.items():
        wait_until(partial(speaks, store, job), f"the task of {user} to speak")
        assert [user, "lo"] == said(store, job)

    owned = {user: [it.pid for it in at_work.processes_below(shared / user)] for user in USERS}
    assert all(owned.values())
    for user in USERS:
        for other in USERS:
            pids = " ".join(map(str, owned[other]))
            job = submitted(store, user, CURIOUS, OTHERS=str(shared / other), PIDS=pids)
            at_work.wait_until_over(job)
            found = said(store, job)
            if other == user:
                assert {"secret", "may kill", "tried"} < set(found)
            else:
                assert ["shut", "tried"] == found
        with closing(PostgresStore(agents[user])) as own:
            others = [job for name, job in secretive.items() if name != user]
            assert [secretive[user]] == list(own.programs(integers([*secretive.values()])))
            live = store.allocations_of(others)
            with pytest.raises(NotAllowed):
                own.end_tasks(live.job, live.task)

    gate.touch()
    for job in secretive.values():
        at_work.wait_until_over(job)
        assert [0] == [it.exit.code for it in store.exits(job)]
