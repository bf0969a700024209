"""A mix of real work on one agent: arrays, containers, a service, gangs and trainings.

Each task of a process holds a lock of its own for as long as anything of it runs, and writes down
if another copy has it. So the tasks themselves tell whether one ran twice at a time.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import psutil

from omega.lifecycle.states import FINAL, State
from omega.model.arrays import integers
from omega.model.jobs import JobSpec, StepWork
from omega.model.programs import Check, Program, Restart, shell_line
from omega.nodes.agent.process_start import MARKER
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_spec
from tests.agent.engines import IMAGE
from tests.fixtures.at_work import wait_until

MACHINE: Final = "m1"
LEASE_S: Final = 2
STEPS: Final = 100
"""Of each training, which takes twice as many hundredths of a second."""
ALONE: Final = """\
exec 9>"$LOCKS/$OMEGA_JOB.$OMEGA_TASK"
flock --nonblock 9 || echo "$OMEGA_JOB.$OMEGA_TASK" >>"$LOCKS/met"
"""
SERVES: Final = """\
rm -f "$LOCKS/ill"
echo started >>"$LOCKS/service-starts"
while :; do sleep 0.05; done
"""
HERE: Final = Path(__file__).parent
OFTEN: Final = Restart(attempts=1_000, delay_ms=0)


@dataclass
class JobMix:
    """What is submitted, and the processes that work on it."""

    store: PostgresStore
    url: str
    """The database as the agent and the schedulers reach it."""
    folder: Path
    engine: str | None
    """The engine of containers, if there is one."""
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    jobs: dict[str, list[int]] = field(default_factory=dict)
    """The numbers of jobs by kind."""

    def __post_init__(self) -> None:
        self.locks = self.folder / "locks"
        self.state = self.folder / "agent"
        self.locks.mkdir()
        self.state.mkdir(exist_ok=True)
        self.log = self.folder / "log"

    # Processes.

    def start(self, name: str) -> None:
        """Start a scheduler or the agent."""
        command = {
            "agent": [
                *("node", "run", "--allow-root", f"--name={MACHINE}", f"--lease={LEASE_S}"),
                *("--cpu=4", "--memory=4GiB", "--gpus=1", "--attribute=gpu_model=v100"),
                *(f"--state-dir={self.state}", f"--containers={self.engine or 'none'}"),
            ],
            "batch": ["scheduler", "run", "batch"],
            "service": ["scheduler", "run", "service"],
            "ml-gpu": ["scheduler", "run", "ml-gpu", "--set", "round=1"],
        }[name]
        with self.log.open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", "omega.cli", *command],
                stdout=log,
                stderr=log,
                env={**os.environ, "OMEGA_DATABASE_URL": self.url},
            )

    def kill(self, name: str) -> None:
        """End one of them as kill -9 does."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def programs(self) -> list[psutil.Process]:
        """Return all processes of tasks, without the shells above them."""
        return [it for it in self._marked() if "omega-task" not in it.cmdline()]

    def end_everything(self) -> None:
        """End all processes of the machine, as a power failure does."""
        self.kill("agent")
        for process in [*self._watchdogs(), *self._marked()]:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue

    def _marked(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARKER, "").startswith(str(self.state)):
                    yield process
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue

    def _watchdogs(self) -> Iterator[psutil.Process]:
        for process in psutil.process_iter():
            try:
                words = process.cmdline()
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue
            if "watch" in words and str(self.state) in words:
                yield process

    # Jobs.

    def submit(self, kind: str, spec: JobSpec) -> int:
        """Submit a job of some kind."""
        (job,) = self.store.submit([spec])
        self.jobs.setdefault(kind, []).append(job)
        return job

    def array(self, tasks: int, nap_s: float) -> int:
        """Submit tasks that sleep for so long."""
        program = self._program(f"sleep {nap_s}", restart=OFTEN)
        return self.submit("array", a_spec(tasks, program=program, cpu_milli=200))

    def gang(self) -> int:
        """Submit four tasks that add up in a ring. Without one of them the others end, too."""
        line = f"exec {sys.executable} {HERE / 'all_reduce.py'}"
        program = self._program(line, TRIES="50")
        return self.submit("gang", a_spec(4, minimum=4, program=program, cpu_milli=100))

    def training(self) -> int:
        """Submit a job that wants the only GPU, which rounds give to others, too."""
        number = len(self.jobs.get("training", ()))
        folder = self.folder / f"training-{number}"
        folder.mkdir()
        line = f"cd {folder}; exec {sys.executable} {HERE / 'training.py'}"
        spec = a_spec(
            scheduler="ml-gpu",
            work=StepWork("tiny", STEPS),
            minimum=1,
            cpu_milli=100,
            gpus=1,
            gpu_slices=1_000,
            program=self._program(line, restart=OFTEN, STEP_S="0.02"),
        )
        return self.submit("training", spec)

    def service(self) -> int:
        """Submit a service that is healthy until somebody makes it ill."""
        check = Check(
            command=shell_line(f"test ! -e {self.locks}/ill"), interval_ms=300, failures=2
        )
        program = self._program(SERVES, restart=OFTEN, check=check)
        return self.submit("service", a_spec(scheduler="service", program=program, cpu_milli=100))

    def container(self) -> int:
        """Submit a task that runs in a container."""
        assert self.engine is not None
        program = Program(command=shell_line("sleep 0.2"), image=IMAGE, restart=OFTEN)
        return self.submit("container", a_spec(program=program, cpu_milli=100))

    def _program(
        self,
        line: str,
        *,
        restart: Restart = Restart(),  # noqa: B008 - frozen
        check: Check | None = None,
        **env: str,
    ) -> Program:
        return Program(
            command=shell_line(f"{ALONE}{line}"),
            env=tuple(sorted({**env, "LOCKS": str(self.locks)}.items())),
            stop_grace_ms=300,
            restart=restart,
            check=check,
        )

    # What came of it.

    def is_open(self) -> bool:
        """Return whether the machine is open."""
        return self.store.use().open == 1

    def expire(self) -> None:
        """Wait until the machine's lease has run out, and take the machine down."""
        wait_until(self.store.expire_machines, "the machine to be down")

    def is_over(self, job: int) -> bool:
        """Return whether a job has ended."""
        status = self.store.job(job)
        assert status is not None, "a job that was acknowledged is never lost"
        return status.state in FINAL

    def settle(self) -> None:
        """Wait until work goes on; no task ran twice at a time, and every invariant holds."""
        probe = self.array(1, 0)
        wait_until(lambda: self.is_over(probe), "work to go on")
        assert not (self.locks / "met").exists(), (self.locks / "met").read_text()
        assert [] == list(self.store.verify())

    def finish(self) -> None:
        """Wait for the end of all jobs, and compare what each was to do with what is on record."""
        for job in self.jobs.pop("service", []):
            self.store.cancel(job)
        for kind, jobs in self.jobs.items():
            for job in jobs:
                wait_until(partial(self.is_over, job), f"{kind} {job} to end")
                self._assert_done(kind, job)
        wait_until(lambda: not self.programs(), "the programs to end")
        assert not (self.locks / "met").exists()

    def _assert_done(self, kind: str, job: int) -> None:
        status = self.store.job(job)
        assert status is not None
        exits = self.store.exits(job)
        reported = sorted(it.task for it in exits)
        assert len(set(reported)) == len(reported), f"{kind} {job}: an end was reported twice"
        if kind == "gang":  # a ring that has lost a task cannot close
            assert status.state in (State.SUCCEEDED, State.FAILED)
            return
        assert State.SUCCEEDED is status.state, (kind, job, [it.exit for it in exits])
        assert list(range(status.tasks)) == reported
        if kind == "training":
            (done,) = self.store.progress(integers([job])).done.tolist()
            assert STEPS == done
