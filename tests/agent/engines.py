"""A container engine of the test's own: podman, with its storage in a temporary folder."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agent.waiting import until

IMAGE = "localhost/omega-test:latest"
NEEDED = ("podman", "runc", "busybox")
COMMANDS = ("sh", "sleep", "echo", "env", "id", "pwd", "dd", "head", "tail", "kill", "cat")
CONF = """\
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
log_driver = "k8s-file"
netns = "host"
"""
LINK = "engine.sock"


def can_run_containers() -> bool:
    """Return whether this machine can run an engine for tests."""
    return os.geteuid() == 0 and all(map(shutil.which, NEEDED))


@contextmanager
def podman_service() -> Iterator[str]:
    """Yield the address of an engine that has the image IMAGE, or skip the test."""
    if not can_run_containers():
        pytest.skip(f"real containers need root and {', '.join(NEEDED)}")
    # Not in pytest's folder: the path of a socket may have 107 bytes.
    with tempfile.TemporaryDirectory(prefix="omega-engine-") as name:
        folder = Path(name)
        conf = folder / "containers.conf"
        conf.write_text(CONF, "utf-8")
        env = {**os.environ, "CONTAINERS_CONF": str(conf)}
        podman = ["podman", "--root", f"{name}/root", "--runroot", f"{name}/run"]
        _import_image(podman, env, folder / "image")
        path = folder / LINK
        with (folder / "log").open("wb") as log:
            service = subprocess.Popen(
                [*podman, "system", "service", "--time=0", f"unix://{path}"],
                cwd=folder,  # conmon writes files where it runs
                env=env,
                stdout=log,
                stderr=log,
            )
        try:
            until(lambda: _listens(path) or service.poll() is not None)
            if service.poll() is not None:
                pytest.skip(f"podman does not serve: {(folder / 'log').read_text('utf-8')}")
            yield f"unix://{path}"
        finally:
            subprocess.run(
                [*podman, "rm", "-af", "-t", "0"], env=env, capture_output=True, check=False
            )
            service.terminate()
            service.wait()
            subprocess.run([*podman, "unmount", "-af"], env=env, capture_output=True, check=False)


def _listens(path: Path) -> bool:
    """Return whether somebody listens; the socket is there a moment before."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


def _import_image(podman: list[str], env: dict[str, str], folder: Path) -> None:
    (folder / "bin").mkdir(parents=True)
    for name in ("tmp", "etc"):
        (folder / name).mkdir()
    (folder / "etc/passwd").write_text("root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    busybox = shutil.which("busybox")
    assert busybox is not None
    shutil.copy(busybox, folder / "bin/busybox")
    for name in COMMANDS:
        (folder / "bin" / name).symlink_to("busybox")
    tar = folder.with_suffix(".tar")
    subprocess.run(["tar", "-C", str(folder), "-cf", str(tar), "."], check=True)
    done = subprocess.run(
        [*podman, "import", str(tar), IMAGE], env=env, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"podman cannot import an image: {done.stderr}")
