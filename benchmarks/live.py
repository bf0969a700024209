"""Live schedulers: processes of the product on a cell, which drain a queue or serve a stream.

Processes are started once, before anything is measured. While a queue is filled, they are held with
SIGSTOP, so that all begin at the same moment, with the full queue.
"""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
import psutil
from numpy.typing import NDArray

from benchmarks.harness import Stage
from benchmarks.postgres import statements
from benchmarks.shapes import KIND
from omega.errors import InvariantBroken, OmegaError
from omega.model.jobs import JobSpec
from omega.processes.supervisor import ChildSpec, ChildState, Supervisor, omega_command
from omega.store.postgres.connection import Link
from omega.store.postgres.store import PostgresStore

JOBS_A_CALL: Final = 1_000
"""Jobs submitted at once when a queue is filled."""
TICK_S: Final = 0.01
"""Interval at which a stream submits the jobs that are due."""
LOOK_S: Final = 0.1
"""Interval of the checks for remaining work; a check loads the server, too."""
START_S_MAX: Final = 60.0


@dataclass(frozen=True, eq=False)
class Times:
    """When each job was submitted, first leased, and committed: first task and last one.

    Arrays (jobs,), in seconds of the server's clock.
    """

    submitted: NDArray[np.float64]
    leased: NDArray[np.float64]
    first: NDArray[np.float64]
    last: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.submitted)

    @property
    def drained_s(self) -> float:
        """Time from the first lease to the last commit."""
        return float(self.last.max() - self.leased.min())


class Live:
    """The schedulers on one cell."""

    def __init__(
        self,
        stage: Stage,
        supervisor: Supervisor,
        store: PostgresStore,
        link: Link,
        submit: Callable[[JobSpec, int], object],
    ) -> None:
        self._stage = stage
        self._supervisor = supervisor
        self._store = store
        self._link = link
        self._submit_jobs = submit
        self._before = 0
        """Id of the last job of earlier measurements."""
        self._tasks = 0
        """Tasks submitted since the cell was empty."""

    def empty(self) -> None:
        """Remove all jobs at once."""
        # Schedulers are not held meanwhile: one that is stopped in a call keeps its locks.
        statements.empty(self._link)
        self._tasks = 0

    def drain(self, *specs: JobSpec, jobs: int) -> Times:
        """Fill the queue while the schedulers are held, then let them work until it is empty.

        So many jobs of the first spec are submitted, then as many of the next.
        """
        with self._held():
            for spec, first in product(specs, range(0, jobs, JOBS_A_CALL)):
                self._stage.go_on()
                self._submit(spec, min(JOBS_A_CALL, jobs - first))
        self._wait_until_dry()
        return self._times(jobs * len(specs))

    def stream(self, spec: JobSpec, jobs: int, jobs_per_s: float) -> Times:
        """Submit jobs at a steady rate; wait until the last is committed."""
        clock = self._stage.clock
        began, submitted = clock.now(), 0
        while submitted < jobs:
            due = min(jobs, 1 + int((clock.now() - began) * jobs_per_s)) - submitted
            if due:
                self._submit(spec, min(due, JOBS_A_CALL))
                submitted += min(due, JOBS_A_CALL)
            self._look()
            clock.sleep(TICK_S)
        self._wait_until_dry()
        return self._times(jobs)

    def conflicts(self) -> tuple[int, int]:
        """Return (jobs with a refused claim, all jobs) of transactions since the cell was empty."""
        return statements.count_conflicts(self._link)

    def cpu_s(self) -> float:
        """Return the processor time of the schedulers since they were started."""
        spent = [psutil.Process(child.pid).cpu_times() for child in self._supervisor.children]
        return float(sum(one.user + one.system for one in spent))

    def check(self) -> int:
        """Return the number of live tasks; raise InvariantBroken if any is missing or wrong."""
        if violations := self._store.verify():
            raise InvariantBroken("the cell is broken", story=[str(one) for one in violations[:20]])
        live = self._store.use().live_allocations
        if live != self._tasks:
            raise InvariantBroken(f"{self._tasks} tasks were submitted, {live} run")
        return live

    def wait_for_start(self, replicas: int) -> None:
        """Wait until every scheduler has read the cell and reported."""
        clock = self._stage.clock
        began = clock.now()
        while len(self._store.reports()) < replicas:
            self._look()
            if clock.now() - began > START_S_MAX:
                raise OmegaError(f"the schedulers did not come up within {START_S_MAX:g} s")
            clock.sleep(LOOK_S)

    def _submit(self, spec: JobSpec, jobs: int) -> None:
        self._submit_jobs(spec, jobs)
        self._tasks += jobs * spec.tasks

    def _wait_until_dry(self) -> None:
        while statements.has_work(self._link):
            self._look()
            self._stage.clock.sleep(LOOK_S)

    def _look(self) -> None:
        """Raise OmegaError if a scheduler does not run."""
        self._stage.go_on()
        self._supervisor.look()
        for child in self._supervisor.children:
            if child.state is not ChildState.RUNNING:
                raise OmegaError(
                    f"{child.spec.name} {child.last_end}: {child.log_tail()} (see {child.log})"
                )

    def _times(self, jobs: int) -> Times:
        ids, *columns = statements.times_of_jobs(self._link, after=self._before)
        if len(ids) != jobs:
            raise InvariantBroken(f"{jobs} jobs were submitted, {len(ids)} committed")
        self._before = int(ids.max())
        return Times(*columns)

    @contextmanager
    def _held(self) -> Iterator[None]:
        """Stop the schedulers for the block. If this process dies, the kernel continues them."""
        self._signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        for child in self._supervisor.children:
            if child.process is not None:
                child.process.send_signal(number)


@contextmanager
def live(
    stage: Stage,
    url: str,
    replicas: int,
    *,
    python: Path | None = None,
    submit: Callable[[JobSpec, int], object] | None = None,
    **environment: str,
) -> Iterator[Live]:
    """Start so many schedulers on the database, as `omega demo` does, and end them afterwards.

    `environment` has more of their settings. `python` is the interpreter of another checkout, whose
    schedulers are to run, and `submit` submits a number of equal jobs as that checkout does.
    """
    specs = [
        ChildSpec(
            f"{KIND}-{replica}",
            _command(python, "scheduler", "run", KIND, f"--replica={replica}"),
        )
        for replica in range(replicas)
    ]
    settings = stage.settings
    supervisor = Supervisor(
        specs,
        log_dir=settings.data_dir / "logs" / "benchmark",
        environment={
            "OMEGA_DATABASE_URL": url,
            "OMEGA_DATA_DIR": str(settings.data_dir),
            **environment,
        },
        clock=stage.clock,
    )
    with (
        closing(statements.connect(url)) as link,
        closing(statements.store(url)) as store,
        supervisor,
    ):
        submit = submit or (lambda spec, jobs: store.submit([spec] * jobs))
        schedulers = Live(stage, supervisor, store, link, submit)
        schedulers.wait_for_start(replicas)
        yield schedulers


def _command(python: Path | None, *verb: str) -> tuple[str, ...]:
    _, *arguments = omega_command(*verb)
    # -P: another checkout's scheduler must not import from this checkout's folder.
    return (sys.executable, *arguments) if python is None else (str(python), "-P", *arguments)
