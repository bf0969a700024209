"""One scheduler's cycle of work on a cell, with the time that each part of it takes.

In a cycle, a job is submitted, its tasks are placed by a small and a large commit, a view is
refreshed, and all tasks end. The number of live allocations is then as before; history grows.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Final, TypeVar
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from benchmarks.client import CPU_MILLI, LEASE_MS, MEMORY_MIB, Omega, Work
from benchmarks.sync import Reader
from omega.clock import Clock
from omega.errors import InvariantBroken
from omega.model.claims import ConflictRule
from omega.model.jobs import JobSpec, LeasedJob, TaskGroup
from omega.model.outcomes import Verdict
from omega.store.postgres.store import PostgresStore

T = TypeVar("T")

CLAIMS: Final = 100
"""Claims of a large commit."""
COMMIT_1: Final = "commit of 1 claim"
COMMIT_100: Final = f"commit of {CLAIMS} claims"
DELTA: Final = f"delta of {CLAIMS} rows"
FULL: Final = "full read"
END: Final = f"end of {CLAIMS} tasks"
LEASE: Final = "job submitted and leased"
PARTS: Final = (COMMIT_100, COMMIT_1, DELTA, FULL, END, LEASE)
"""The measured parts; the first is the main one."""
STATEMENT_TIMEOUT_MS: Final = 600_000
KIND: Final = "benchmark"


class Turnover:
    """One scheduler on one cell."""

    def __init__(self, store: PostgresStore, clock: Clock, machines: int, seed: int) -> None:
        self._store = store
        self._clock = clock
        self._machines = machines
        self._rng = np.random.default_rng(seed)
        self._committer = Omega(store, ConflictRule.FIT, "0")
        self._committer.begin()
        self._delta = Reader("delta", store, clock)
        self._full = Reader("full", store, clock)
        self._delta.refresh()
        self.done: Counter[str] = Counter()

    def turn(self) -> dict[str, float]:
        """Run one cycle; return the seconds of each part."""
        took: dict[str, float] = {}
        job = self._timed(took, LEASE, lambda: self.lease(CLAIMS + 1))
        self._delta.refresh()
        small, large = self._work(job, 0, 1), self._work(job, 1, CLAIMS + 1)
        self._timed(took, COMMIT_1, lambda: self._commit(small))
        self._delta.refresh()
        self._timed(took, COMMIT_100, lambda: self._commit(large))
        self._timed(took, DELTA, self._delta.refresh)
        self._timed(took, FULL, self._full.refresh)
        self._timed(took, END, lambda: self._end(large))
        self._end(small)
        return took

    def churn(self, tasks: int) -> Iterator[int]:
        """Place and end so many tasks, as fast as possible; yield the number of each step."""
        while tasks > 0:
            job = self.lease(min(tasks, 10 * CLAIMS))
            for first in range(0, len(job.unplaced), CLAIMS):
                work = self._work(job, first, first + CLAIMS)
                self._commit(work)
                self._end(work)
            tasks -= len(job.unplaced)
            yield len(job.unplaced)

    def lease(self, tasks: int) -> LeasedJob:
        """Submit a job and lease it."""
        self._store.submit([a_job(KIND, tasks)])
        (job,) = self._store.lease(KIND, holder=KIND, jobs_max=1, lease_ms=LEASE_MS)
        return job

    def _work(self, job: LeasedJob, first: int, last: int) -> Work:
        task = job.unplaced[first:last].astype(np.int64)
        return Work(uuid4(), job.id, job.token, task, self._drawn(len(task)))

    def _drawn(self, claims: int) -> NDArray[np.int64]:
        few = min(claims, self._machines)
        drawn = self._rng.choice(self._machines, few, replace=False, shuffle=False) + 1
        return np.resize(drawn, claims).astype(np.int64)

    def _commit(self, work: Work) -> None:
        verdicts = self._committer.commit(work)
        if (verdicts != Verdict.ACCEPTED).any():
            raise InvariantBroken("a claim was refused where there is room for all")
        self.done["claims granted"] += len(verdicts)
        self.done["transactions"] += 1

    def _end(self, work: Work) -> None:
        ended = self._store.end_tasks(np.full(len(work.task), work.job), work.task)
        if ended != len(work.task):
            raise InvariantBroken(f"of {len(work.task)} tasks {ended} could be ended")
        self.done["tasks ended"] += ended

    def _timed(self, took: dict[str, float], part: str, do: Callable[[], T]) -> T:
        began = self._clock.now()
        answer = do()
        took[part] = self._clock.now() - began
        return answer


def a_job(kind: str, tasks: int) -> JobSpec:
    """Return a job of tasks of the benchmarks' shape."""
    group = TaskGroup(tasks=tasks, cpu_milli=CPU_MILLI, memory_mib=MEMORY_MIB)
    return JobSpec(name="benchmark", scheduler=kind, groups=(group,))


@contextmanager
def turnover(url: str, clock: Clock, machines: int, seed: int) -> Iterator[Turnover]:
    """Yield a scheduler of the database's cell; at its end, the server has all its statistics."""
    store = PostgresStore(
        url, application_name="omega benchmark", statement_timeout_ms=STATEMENT_TIMEOUT_MS
    )
    with closing(store):
        yield Turnover(store, clock, machines, seed)


def in_parts(turns: list[dict[str, float]]) -> dict[str, list[float]]:
    """Return the seconds of each part, cycle by cycle."""
    parts: dict[str, list[float]] = defaultdict(list)
    for turn in turns:
        for part, seconds in turn.items():
            parts[part].append(seconds)
    return parts
