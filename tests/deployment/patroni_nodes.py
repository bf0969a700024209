"""Three nodes of deploy/patroni on this machine: each on an address of its own, with its own files.

Goal: the files of deploy/patroni are run as they are, but for addresses, folders and passwords.
Promise: whatever was started here has ended when `running_nodes` is left.
"""

import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import TypeVar

import psutil
import psycopg
import pytest

from omega.clock import RealClock
from tests.architecture.tree import ROOT

T = TypeVar("T")
NEEDED = ("patroni", "patronictl", "etcd", "haproxy")
FILES = ROOT / "deploy/patroni"
NUMBERS = (1, 2, 3)
HOST = re.compile(r"(?<!NAME=)\bdb([123])\b(?!=)")
"""The name of a node where an address may stand, too."""
OK = 200
PROXY = "127.0.0.10"
DATABASE = "omega"
PASSWORD = "of this test only"
AT_MOST_S = 300.0
"""No test depends on this: it only turns a hang into a failure."""
LOOK_S = 0.1


def until(look: Callable[[], T | None], what: str) -> T:
    """Look until something is true; return it."""
    clock = RealClock()
    deadline = clock.now() + AT_MOST_S
    while not (seen := look()):
        assert clock.now() < deadline, f"waited in vain for {what}"
        clock.sleep(LOOK_S)
    return seen


def addressed(text: str) -> str:
    """Return a text with addresses of this machine in place of db1, db2 and db3."""
    return HOST.sub(r"127.0.0.1\1", text)


def words_of(text: str) -> dict[str, str]:
    """Return what a file with an environment says."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


@dataclass
class Node:
    """One node: a member of etcd, Patroni, and the Postgres that it runs."""

    number: int
    folder: Path
    programs: Path
    user: pwd.struct_passwd | None
    started: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"db{self.number}"

    @property
    def address(self) -> str:
        return addressed(self.name)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def environment(self) -> dict[str, str]:
        """Return what node.env says of this node, with folders and passwords filled in."""
        text = (FILES / "node.env").read_text()
        said = words_of(addressed(text.replace("db1", self.name)))
        said["PATRONI_POSTGRESQL_BIN_DIR"] = str(self.programs)
        said["PATRONI_POSTGRESQL_DATA_DIR"] = str(self.data)
        said["PATRONI_POSTGRESQL_PGPASS"] = str(self.folder / "pgpass")
        for name, value in said.items():
            if name.endswith("_PASSWORD"):
                assert value == "", "passwords are not in the file"
                said[name] = PASSWORD
        return {**os.environ, **said}

    def start_etcd(self) -> None:
        lines = (FILES / "etcd.env").read_text().splitlines()
        mine = [
            line if line.startswith("ETCD_INITIAL_CLUSTER=") else line.replace("db1", self.name)
            for line in lines
        ]
        said = words_of(addressed("\n".join(mine)).replace("0.0.0.0", self.address))
        self._start("etcd", ["etcd"], {**said, "ETCD_DATA_DIR": str(self.folder / "etcd")})

    def start_patroni(self) -> None:
        configuration = self.folder / "patroni.yml"
        configuration.write_text(addressed((FILES / "patroni.yml").read_text()))
        self._start("patroni", ["patroni", str(configuration)], self.environment())

    def start_missing(self) -> None:
        """Start what was killed, as a service manager does when the node is back."""
        if "etcd" not in self.started:
            self.start_etcd()
        if "patroni" not in self.started:
            self.start_patroni()

    def is_primary(self) -> bool:
        """Return whether Patroni says that this node has the leader's lock."""
        return self._answers("/primary")

    def repeats(self) -> bool:
        """Return whether Patroni says that this node is a standby that runs."""
        return self._answers("/replica")

    def repeats_synchronously(self) -> bool:
        """Return whether commits wait for this node."""
        return self._answers("/sync")

    def has_no_leader(self) -> bool:
        """Return whether Patroni runs here, and says that nobody has the leader's lock."""
        status, text = self._answer("/cluster")
        members = json.loads(text)["members"] if status == OK else []
        return status == OK and not any(member["role"] == "leader" for member in members)

    def takes_writes(self) -> bool:
        """Ask the server itself, without Patroni."""
        try:
            with psycopg.connect(
                host=self.address, user="postgres", password=PASSWORD, connect_timeout=2
            ) as connection:
                row = connection.execute("SELECT NOT pg_is_in_recovery()").fetchone()
        except psycopg.Error:
            return False
        return row is not None and bool(row[0])

    def postgres(self) -> list[psutil.Process]:
        """Return the processes of its server, the first one first."""
        with suppress(FileNotFoundError, psutil.NoSuchProcess):
            first = psutil.Process(int((self.data / "postmaster.pid").read_text().split()[0]))
            return [first, *first.children()]
        return []

    def kill_postgres(self) -> None:
        """End the server without a word; Patroni goes on."""
        processes = self.postgres()
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes)

    def kill(self, *programs: str) -> None:
        """End the programs that were started here, and the server, as if the node lost power."""
        for program in programs:
            self.started[program].kill()
        self.kill_postgres()
        for program in programs:
            self.started.pop(program).wait()

    def kill_program(self, name: str) -> None:
        """End the member of etcd, or Patroni, and nothing else."""
        self.started[name].kill()
        self.started.pop(name).wait()

    def stop(self) -> None:
        """End all that runs on the node."""
        for program in ("patroni", "etcd"):
            if program in self.started:
                process = self.started.pop(program)
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(60)
                process.kill()
                process.wait()
        self.kill_postgres()

    def _answers(self, path: str) -> bool:
        return self._answer(path)[0] == OK

    def _answer(self, path: str) -> tuple[int, str]:
        """Ask Patroni; return its status, 0 for none, and what it says."""
        connection = HTTPConnection(self.address, 8008, timeout=2)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, HTTPException):
            return 0, ""
        finally:
            connection.close()

    def _start(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.started[name] = subprocess.Popen(
                command,
                cwd=self.folder,
                env={"PATH": os.environ["PATH"], **environment},
                stdout=log,
                stderr=log,
                user=None if self.user is None else self.user.pw_uid,
                group=None if self.user is None else self.user.pw_gid,
                extra_groups=None if self.user is None else [],
            )


@dataclass
class Nodes:
    """The three of them."""

    folder: Path
    all: list[Node]

    @property
    def url(self) -> str:
        """The URL of the README, which names all of them."""
        hosts = ",".join(node.address for node in self.all)
        return f"postgresql://omega@{hosts}/{DATABASE}?target_session_attrs=read-write"

    def passwords(self) -> Path:
        """Return a file with the passwords of the logins of Omega's processes and of the owner."""
        path = self.folder / "pgpass"
        path.write_text(f"*:*:*:*:{PASSWORD}\n")
        path.chmod(0o600)
        return path

    def primary(self) -> Node:
        """Wait until exactly one node has the leader's lock and takes writes; return it."""

        def look() -> list[Node]:
            found = [node for node in self.all if node.is_primary()]
            return found if len(found) == 1 and found[0].takes_writes() else []

        (found,) = until(look, "a primary")
        return found

    def are_whole(self) -> bool:
        """Return whether there are a primary and two standbys, for one of which commits wait."""
        return (
            sum(node.is_primary() for node in self.all) == 1
            and sum(node.repeats() for node in self.all) == len(NUMBERS) - 1
            and any(node.repeats_synchronously() for node in self.all)
            and self._streaming() == len(NUMBERS) - 1
        )

    def _streaming(self) -> int:
        url = self.url.replace("omega@", "postgres@").replace(f"/{DATABASE}?", "/postgres?")
        with suppress(psycopg.Error), psycopg.connect(url, password=PASSWORD) as connection:
            row = connection.execute("SELECT count(*) FROM pg_stat_replication").fetchone()
            return int(row[0]) if row else 0
        return 0

    def patronictl(self, *words: str) -> str:
        """Run patronictl as on the first node; return what it printed."""
        node = self.all[0]
        configuration = str(node.folder / "patroni.yml")
        done = subprocess.run(
            ["patronictl", "-c", configuration, *words],
            env=node.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout


@contextmanager
def running_nodes() -> Iterator[Nodes]:
    """Yield three nodes that are whole, or skip the test where they cannot be run."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda bin_: int(bin_.parts[-2]))
    if missing or not found:
        pytest.skip(f"not installed: {', '.join([*missing, *(() if found else ['postgresql'])])}")
    user = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
    # Not in pytest's folder, which may be closed to the server's user.
    with tempfile.TemporaryDirectory(prefix="omega-patroni-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        nodes = Nodes(folder, [Node(n, folder / f"db{n}", found[-1], user) for n in NUMBERS])
        try:
            for node in nodes.all:
                node.folder.mkdir()
                if user is not None:
                    os.chown(node.folder, user.pw_uid, user.pw_gid)
                node.start_etcd()
            for node in nodes.all:
                node.start_patroni()
            nodes.primary()
            yield nodes
        except BaseException:
            keep_logs(nodes)
            raise
        finally:
            for node in reversed(nodes.all):
                node.stop()


def keep_logs(nodes: Nodes) -> None:
    """Print the end of each log: the folder is about to go."""
    for node in nodes.all:
        for log in sorted(node.folder.glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()[-40:]
            print(f"--- {node.name} {log.name}", *lines, sep="\n")  # noqa: T201 - pytest shows it


@contextmanager
def proxied(nodes: Nodes) -> Iterator[str]:
    """Run HAProxy before the nodes; yield the URL through it."""
    text = addressed((FILES / "haproxy.cfg").read_text()).replace("127.0.0.1:5000", f"{PROXY}:5000")
    configuration = nodes.folder / "haproxy.cfg"
    configuration.write_text(text)
    process = subprocess.Popen(["haproxy", "-db", "-f", str(configuration)])
    try:
        yield f"postgresql://omega@{PROXY}:5000/{DATABASE}"
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
