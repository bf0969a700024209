"""Omega as `omega up` runs it: the embedded Postgres, a batch scheduler and an agent."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from benchmarks.environment import ROOT, revision_of
from benchmarks.execution.systems import (
    OMEGA_MODULE,
    POLL_S,
    START_S_MAX,
    environment,
    process,
    tree,
)
from benchmarks.harness import Stage
from omega.errors import OmegaError
from omega.lifecycle.states import FINAL, State
from omega.model.jobs import JobSpec, TaskGroup
from omega.model.programs import Program
from omega.store.embedded import NAME, EmbeddedPostgres
from omega.store.postgres.store import PostgresStore

KIND: Final = "batch"
CPU_MILLI: Final = 1_000
"""Of a task: one core is one slot."""
PARKED_S_MAX: Final = 20.0
"""A job that is parked for longer beside a free machine is not waited for."""
OMEGA: Final = (sys.executable, "-m", OMEGA_MODULE)


TUNED: Final = (
    ("OMEGA_POLL_INTERVAL_MS", "5"),
    ("OMEGA_BACKOFF_INITIAL_MS", "1"),
    ("OMEGA_BACKOFF_MAX_MS", "5"),
    ("OMEGA_LOSERS_FIRST", "true"),
)
"""Looks as often as tasks of a few milliseconds end, and parks no job for want of room."""


@dataclass(frozen=True)
class OmegaUp:
    """The whole cell that one command starts."""

    name: str = "omega"
    label: str = "Omega, omega up"
    settings: tuple[tuple[str, str], ...] = ()
    """Variables of the environment."""

    def absence(self) -> str | None:
        """Return None: the embedded server is in the default environment of this project."""
        return None

    def version(self) -> str:
        """Return the revision of this checkout."""
        return revision_of(ROOT) or "unknown"

    @contextmanager
    def started(self, folder: Path, stage: Stage, slots: int) -> Iterator["RunningOmega"]:
        """Run `omega up` for the block."""
        data, env = folder / "data", environment(**dict(self.settings))
        command = (*OMEGA, "up", "--allow-root", f"--cpu={slots}", f"--schedulers={KIND}=1")
        with (
            EmbeddedPostgres(data, clock=stage.clock) as postgres,
            process((*command, f"--data-dir={data}"), folder / "up.log", env) as up,
            closing(PostgresStore(postgres.url, application_name="omega benchmark")) as store,
        ):
            running = RunningOmega(store, stage, data, up.pid)
            began_s = stage.clock.now()
            while not running.is_ready():
                if up.poll() is not None or stage.clock.now() - began_s > START_S_MAX:
                    raise OmegaError(f"omega up: {(folder / 'up.log').read_text()}")
                stage.go_on()
                stage.clock.sleep(POLL_S)
            yield running


@dataclass(frozen=True)
class RunningOmega:
    """A cell with one agent."""

    store: PostgresStore
    stage: Stage
    data: Path
    pid: int

    def is_ready(self) -> bool:
        """Return whether the scheduler and the agent have reported."""
        try:
            return {KIND, "agent"} <= {report.kind for report in self.store.reports()}
        except OmegaError:  # the tables are not there yet
            return False

    def run(self, command: Sequence[str], tasks: int) -> None:
        """Submit one job of so many tasks, and wait until it has succeeded."""
        program = Program(command=tuple(command))
        group = TaskGroup(tasks=tasks, cpu_milli=CPU_MILLI, program=program)
        (job,) = self.store.submit([JobSpec(name="execution", scheduler=KIND, groups=(group,))])
        active_s = self.stage.clock.now()
        while True:
            status = self.store.job(job)
            assert status is not None, "no job is removed here"
            if status.state in FINAL:
                break
            now_s = self.stage.clock.now()
            active_s = active_s if status.state is State.PARKED else now_s
            if now_s - active_s > PARKED_S_MAX:
                raise OmegaError(
                    f"parked for {PARKED_S_MAX:g} s with {status.ended} of {tasks} tasks ended:"
                    f" {status.park_detail}"
                )
            self.stage.go_on()
            self.stage.clock.sleep(POLL_S if tasks == 1 else 5 * POLL_S)
        if (State.SUCCEEDED, tasks) != (status.state, status.ended):
            raise OmegaError(f"{status.failed} of {tasks} tasks failed; the job {status.state}")

    def typed(self, line: str) -> list[str] | None:
        """Return `omega run`."""
        return [*OMEGA, "run", f"--data-dir={self.data}", "--", "sh", "-c", line]

    def processes(self) -> list[psutil.Process]:
        """Return the processes of `omega up` and of Postgres."""
        postmaster = int((self.data / NAME / "postmaster.pid").read_text().split()[0])
        found = {one.pid: one for pid in (self.pid, postmaster) for one in tree(pid)}
        return list(found.values())
