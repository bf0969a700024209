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
PACKAGES = "postgresql,libsqlite3-0,libffi8,libbz2-1.0,liblzma5,ca-certificates"
GIVEN_ROOT = "STAND_IN_ROOT"
"""A folder that debootstrap made before, to save the time."""
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


UNUSED = shutil.ignore_patterns("__pycache__", "test", "tests", "include", "share", "*.a")


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
    if Path(sys.base_prefix) == Path("/usr"):
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
    entrypoint = root / "usr/local/bin/docker-entrypoint.sh"
    entrypoint.write_text(ENTRYPOINT, "utf-8")
    entrypoint.chmod(0o755)
    if not (root / "usr/local/bin/python3").exists():
        local = root / "usr/local"
        shutil.copytree(sys.base_prefix, local, symlinks=True, dirs_exist_ok=True, ignore=UNUSED)
    # The copied script of pip names the folder that it was copied from.
    pip = root / "usr/local/bin/pip"
    pip.write_text('#!/bin/sh\nexec /usr/local/bin/python3 -m pip "$@"\n', "utf-8")
    pip.chmod(0o755)
    programs = next((root / "usr/lib/postgresql").glob("*/bin"))
    path = f"/usr/local/bin:/{programs.relative_to(root)}:/usr/bin:/bin:/usr/sbin:/sbin"
    tar = engine.folder / "base.tar"
    ran(["tar", "-C", str(root), "-cf", str(tar), "."], engine.env)
    for name, changes in {
        "python:3.13-slim": [f"ENV PATH={path}"],
        "postgres:18": [
            f"ENV PATH={path}",
            "ENV PGDATA=/var/lib/postgresql/18/docker",
            'ENTRYPOINT ["docker-entrypoint.sh"]',
            'CMD ["postgres"]',
        ],
    }.items():
        said = [word for change in changes for word in ("--change", change)]
        engine.podman("import", *said, str(tar), f"docker.io/library/{name}")
    tar.unlink()
    options = os.environ.get(BUILD_OPTIONS, "--network host").split()
    engine.podman("build", "--pull=never", *options, "--tag", IMAGE, ".")
