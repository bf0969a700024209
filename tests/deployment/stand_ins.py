"""Base images for a machine that reaches no registry of images, and an engine of the test's own."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from omega import __version__
from tests.agent.waiting import until
from tests.architecture.tree import ROOT

NEEDED = ("podman", "runc", "docker-compose", "debootstrap", "iptables")
IMAGE = f"docker.io/library/omega-scheduler:{__version__}"
PYTHON = "docker.io/library/python:3.13-slim"
POSTGRES = "docker.io/library/postgres:18"
PACKAGES = "postgresql,libsqlite3-0,libffi8,libbz2-1.0,liblzma5,ca-certificates"
GIVEN_ROOT = "STAND_IN_ROOT"
"""A folder that debootstrap made before, to save the time."""
GIVEN_PYTHON = "STAND_IN_PYTHON"
"""The folder of the Python to copy, in place of the one that the tests run on."""
BUILD_OPTIONS = "STAND_IN_BUILD_OPTIONS"
"""Options of `podman build` by which pip finds its index on this machine, such as --volume."""
CONF = """\
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
log_driver = "k8s-file"
[network]
network_backend = "netavark"
network_config_dir = "{folder}/networks"
"""
ENTRYPOINT = """\
#!/bin/bash
# The order of the official image: a new volume gets its server, password, hosts and database.
set -e
if [ "$(id -u)" = 0 ]; then
    mkdir -p "$PGDATA" && chown -R postgres /var/lib/postgresql && chmod 700 "$PGDATA"
    exec setpriv --reuid postgres --regid postgres --init-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    initdb --username="$POSTGRES_USER" --pwfile=<(echo "$POSTGRES_PASSWORD") -A scram-sha-256
    echo "host all all all scram-sha-256" >> "$PGDATA/pg_hba.conf"
    export PGPASSWORD="$POSTGRES_PASSWORD"
    pg_ctl -w -o "-c listen_addresses= -k /tmp" start
    createdb -h /tmp -U "$POSTGRES_USER" "$POSTGRES_DB"
    pg_ctl -w stop
    unset PGPASSWORD
fi
exec "$@" -c "listen_addresses=*" -k /tmp
"""
PYTHON_FILE = """\
FROM localhost/base
COPY python /usr/local
RUN ldconfig && python3 -m ensurepip --default-pip
"""
POSTGRES_FILE = """\
FROM localhost/base
COPY docker-entrypoint.sh /usr/local/bin/
ENV PATH=/usr/local/bin:/{programs}:/usr/bin:/bin:/usr/sbin:/sbin
ENV LANG=C.UTF-8
ENV PGDATA=/var/lib/postgresql/18/docker
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]
STOPSIGNAL SIGINT
"""
UNUSED = shutil.ignore_patterns(
    "__pycache__", "site-packages", "EXTERNALLY-MANAGED", "test", "tests", "*.a"
)


@dataclass(frozen=True)
class Engine:
    """A podman with storage and networks in a folder of its own, served on a socket."""

    folder: Path

    @property
    def env(self) -> dict[str, str]:
        """The environment of commands on this engine."""
        socket = f"unix://{self.folder}/engine.sock"
        conf = str(self.folder / "containers.conf")
        return {**os.environ, "CONTAINERS_CONF": conf, "DOCKER_HOST": socket}

    @property
    def command(self) -> tuple[str, ...]:
        """The words with which each command of podman begins."""
        return ("podman", "--root", f"{self.folder}/root", "--runroot", f"{self.folder}/run")

    def podman(self, *words: str, check: bool = True) -> str:
        """Run podman; return what it printed."""
        return ran([*self.command, *words], self.env, check=check)


def ran(command: list[str], env: dict[str, str], *, check: bool = True) -> str:
    """Run a command in the project's folder; return its output, or fail with it."""
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


@contextmanager
def engine_with_images() -> Iterator[Engine]:
    """Yield an engine that has the image of this project and one of Postgres, or skip the test."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if os.geteuid() != 0 or missing:
        pytest.skip(f"real containers need root and {', '.join(missing or NEEDED)}")
    if _python() == Path("/usr"):
        pytest.skip("the stand-in needs a Python in a folder of its own, not the system's")
    # Not in pytest's folder: the path of a socket may have 107 bytes.
    with tempfile.TemporaryDirectory(prefix="omega-compose-") as name:
        engine = Engine(Path(name))
        (engine.folder / "containers.conf").write_text(CONF.format(folder=name), "utf-8")
        with (engine.folder / "log").open("wb") as log:
            serve = ["system", "service", "--time=0", f"unix://{name}/engine.sock"]
            service = subprocess.Popen(
                [*engine.command, *serve],
                cwd=engine.folder,  # conmon writes files where it runs
                env=engine.env,
                stdout=log,
                stderr=log,
            )
        try:
            until((engine.folder / "engine.sock").exists)
            _make_images(engine)
            yield engine
        finally:
            engine.podman("rm", "-af", "-t", "0", check=False)
            service.terminate()
            service.wait()
            engine.podman("unmount", "-af", check=False)


def _make_images(engine: Engine) -> None:
    root = Path(os.environ.get(GIVEN_ROOT, str(engine.folder / "base")))
    if not root.exists():
        command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", "bookworm"]
        ran([*command, str(root)], engine.env)
    tar = engine.folder / "base.tar"
    ran(["tar", "-C", str(root), "--exclude=./usr/local/*", "-cf", str(tar), "."], engine.env)
    engine.podman("import", str(tar), "localhost/base")
    tar.unlink()
    context = engine.folder / "context"
    _copy_python(context / "python")
    entrypoint = context / "docker-entrypoint.sh"
    entrypoint.write_text(ENTRYPOINT, "utf-8")
    entrypoint.chmod(0o755)
    programs = next((root / "usr/lib/postgresql").glob("*/bin")).relative_to(root)
    for tag, file in ((PYTHON, PYTHON_FILE), (POSTGRES, POSTGRES_FILE)):
        (context / "Containerfile").write_text(file.format(programs=programs), "utf-8")
        engine.podman("build", "--pull=never", "--network=none", "--tag", tag, str(context))
    options = os.environ.get(BUILD_OPTIONS, "--network=host").split()
    engine.podman("build", "--pull=never", *options, "--tag", IMAGE, ".")


def _copy_python(folder: Path) -> None:
    """Copy the library and the programs of a Python, without what was installed into it."""
    python = _python()
    shutil.copytree(python / "lib", folder / "lib", symlinks=True, ignore=UNUSED)
    (folder / "bin").mkdir()
    for program in (python / "bin").glob("python*"):
        shutil.copy2(program, folder / "bin", follow_symlinks=False)


def _python() -> Path:
    return Path(os.environ.get(GIVEN_PYTHON, sys.base_prefix))
