"""A mix of real work on one agent, while everything that it needs fails in turn.

After each fault: work goes on, no task ran twice at a time, and the store's invariants hold. At the
end: all that was acknowledged is done, and every end was reported once.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from itertools import cycle
from pathlib import Path

import numpy as np
import psutil
import pytest

from omega.errors import StoreUnavailable
from omega.store.postgres.store import PostgresStore
from omega.testing.proxy import Proxy, Way
from tests.agent.engines import can_run_containers, podman_service
from tests.agent.job_mix import JobMix
from tests.fixtures.at_work import wait_until
from tests.fixtures.doses import Dose, Tallier
from tests.fixtures.fragile import Fragile
from tests.fixtures.networks import connection_to, through

pytestmark = pytest.mark.postgres

SCHEDULERS = ("batch", "service", "ml-gpu")
TRAININGS = 2
"""They want one GPU."""
DISK = "64m"
NO_ROOM = ("records of tasks cannot be written", "is started when the disk has room")
SOON = {
    "OMEGA_RESCUE_INTERVAL_MS": "200",
    "OMEGA_POLL_INTERVAL_MS": "50",
    "OMEGA_BACKOFF_MAX_MS": "200",
    "OMEGA_LEASE_MS": "3000",
    "OMEGA_HEARTBEAT_INTERVAL_MS": "1000",
}


class Faults:
    """What can go wrong with a mix at work; each method comes back when it is over."""

    def __init__(
        self, mix: JobMix, fragile: Fragile, proxy: Proxy, rng: np.random.Generator
    ) -> None:
        self._mix = mix
        self._fragile = fragile
        self._proxy = proxy
        self._rng = rng

    def all(self) -> dict[str, Callable[[], None]]:
        """Return all faults by name."""
        return {
            "agent killed": self.agent_killed,
            "program killed": self.program_killed,
            "scheduler killed": self.scheduler_killed,
            "agent stopped past its lease": self.agent_stopped,
            "Postgres crashed": self._fragile.crash,
            "connections broken": self.connections_broken,
            "requests held back past the lease": lambda: self.network_silent(Way.REQUESTS),
            "replies held back past the lease": lambda: self.network_silent(Way.REPLIES),
            "disk full": self.disk_full,
            "machine rebooted": self.rebooted,
            "service ill": self.service_ill,
        }

    def agent_killed(self) -> None:
        self._mix.kill("agent")
        self._mix.start("agent")

    def program_killed(self) -> None:
        programs = self._mix.programs()
        if programs:
            with suppress(psutil.NoSuchProcess):
                programs[int(self._rng.integers(len(programs)))].kill()

    def scheduler_killed(self) -> None:
        name = str(self._rng.choice(SCHEDULERS))
        self._mix.kill(name)
        self._mix.start(name)

    def agent_stopped(self) -> None:
        agent = self._mix.processes["agent"]
        agent.send_signal(signal.SIGSTOP)
        self._down_and_up(lambda: agent.send_signal(signal.SIGCONT))

    def connections_broken(self) -> None:
        self._proxy.cut_all()

    def network_silent(self, way: Way) -> None:
        """Only the agent and the schedulers are behind the proxy: all of them hear nothing."""
        self._proxy.pause(way)
        self._mix.expire()
        self._proxy.resume()
        wait_until(self._mix.is_open, "the machine to be open again")

    def _down_and_up(self, heal: Callable[[], None]) -> None:
        wait_until(lambda: not self._mix.is_open(), "the machine to be down")
        heal()
        wait_until(self._mix.is_open, "the machine to be open again")

    def disk_full(self) -> None:
        """Nothing starts, until there is room again; what the agent deletes meanwhile is filled."""
        ballast = self._mix.state / "ballast"
        before = self._refusals()
        with ballast.open("wb", buffering=0) as file:

            def is_refused() -> bool:
                with suppress(OSError):
                    while True:
                        file.write(bytes(2**20))
                if self._mix.is_over(self._mix.jobs["array"][-1]):
                    self._mix.array(2, 0.1)
                return self._refusals() > before

            self._mix.array(2, 0.1)
            wait_until(is_refused, "a record or a start to be refused")
        ballast.unlink()

    def _refusals(self) -> int:
        said = self._mix.log.read_text()
        return sum(map(said.count, NO_ROOM))

    def rebooted(self) -> None:
        self._mix.end_everything()
        self._mix.start("agent")

    def service_ill(self) -> None:
        starts = self._mix.locks / "service-starts"
        wait_until(starts.exists, "the service to start")
        before = len(starts.read_text().splitlines())
        (self._mix.locks / "ill").touch()
        wait_until(
            lambda: len(starts.read_text().splitlines()) > before, "the service to start again"
        )


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A folder in which the agent's is a file system of its own, which root can make and fill."""
    if os.geteuid() != 0:
        pytest.skip("a file system that may be full needs root")
    folder = tmp_path / "agent"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {done.stderr}")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def engine() -> Iterator[str | None]:
    """The engine of containers, if this machine can run them."""
    if not can_run_containers():
        yield None
        return
    with podman_service() as address:
        yield address


@pytest.fixture
def mix(
    fragile: Fragile, engine: str | None, disk: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[JobMix, Proxy]]:
    """The mix at work, behind a proxy."""
    for name, value in SOON.items():
        monkeypatch.setenv(name, value)
    with ExitStack() as stack:
        proxy = stack.enter_context(Proxy(connection_to(fragile.url)))
        store = stack.enter_context(closing(PostgresStore(fragile.url)))
        mix = JobMix(store, through(proxy, fragile.url), disk, engine)
        for name in (*SCHEDULERS, "agent"):
            mix.start(name)
        yield mix, proxy
        sys.stdout.write(mix.log.read_text(errors="replace")[-20_000:])  # shown if it fails
        proxy.resume()
        mix.end_everything()
        for name in list(mix.processes):
            mix.kill(name)


def test_faults_lose_nothing_and_run_nothing_twice(
    mix: tuple[JobMix, Proxy], fragile: Fragile, dose: Dose, tally: Tallier
) -> None:
    work, proxy = mix
    rng = np.random.default_rng(19)
    faults = Faults(work, fragile, proxy, rng)
    names = cycle(faults.all())
    work.service()
    work.settle()
    for number in range(dose(short=len(faults.all()), long=330)):
        keep_busy(work, number, rng)
        name = next(names)
        with tally(f"{name}, one agent with a mix of jobs") as row:
            row.tried += 1
            faults.all()[name]()
            settle(work)
            row.survived += 1
    work.finish()


def keep_busy(work: JobMix, number: int, rng: np.random.Generator) -> None:
    """Submit some of each kind."""
    work.array(int(rng.integers(1, 6)), float(rng.uniform(0, 1.5)))
    if number % 4 == 0:
        work.gang()
        if work.engine is not None:
            work.container()
    running = [job for job in work.jobs.get("training", ()) if not work.is_over(job)]
    if len(running) < TRAININGS:
        work.training()


def settle(work: JobMix) -> None:
    """Settle, however long the server takes to come back."""
    wait_until(lambda: answers(work), "the server to be back")
    work.settle()


def answers(work: JobMix) -> bool:
    try:
        return work.store.now_ms() > 0
    except StoreUnavailable:
        return False
