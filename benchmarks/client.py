"""A client: one process that commits claims one after the other, keeps a view fresh, or submits.

Goal     Drive the store of the checkout that the interpreter belongs to, so that one run can
         compare two revisions.
Promise  It imports only numpy and `omega`, and of that only modules that exist since the first
         commit on Postgres: as a script it runs on a checkout that has no benchmarks. It commits in
         omega's own ways; benchmarks/postgres/client.py gives it the others.
Source   Messages are JSON, one per line, on standard input and output; benchmarks/workers.py sends
         them. The client ends when its input does.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Protocol
from uuid import UUID, uuid4

import numpy as np
from numpy.typing import NDArray

from omega.clock import RealClock
from omega.errors import OmegaError
from omega.model.claims import Claims, ConflictRule, Transaction
from omega.model.jobs import JobSpec, LeasedJob, TaskGroup
from omega.model.machines import Machines
from omega.model.outcomes import Verdict
from omega.model.resources import amounts
from omega.store.postgres.store import PostgresStore

CPU_MILLI: Final = 1_000
MEMORY_MIB: Final = 1_024
DEMAND: Final = amounts(cpu_milli=CPU_MILLI, memory_mib=MEMORY_MIB)
"""The amounts (kinds,) that each claim asks for."""
ROOM: Final = 2_000_000_000
"""CPU and memory of each machine: nearly two million claims, so that no machine is ever full."""
TASKS_PER_JOB: Final = 100_000
JOBS_PER_SLICE: Final = 4
LEASE_MS: Final = 86_400_000
OMEGA: Final = {"omega-fit": ConflictRule.FIT, "omega-sequence": ConflictRule.SEQUENCE}
"""Ways to commit that are omega's own."""


@dataclass(frozen=True, eq=False)
class Work:
    """The claims of one transaction: tasks of one job, and the machine of each."""

    id: UUID
    job: int
    token: UUID
    task: NDArray[np.int64]
    machine: NDArray[np.int64]

    @property
    def shape(self) -> NDArray[np.int64]:
        """The position of each claim's shape; there is one shape."""
        return np.zeros(len(self.task), dtype=np.int64)


class Committer(Protocol):
    """A way to commit."""

    def begin(self) -> None:
        """Prepare for a slice."""
        ...

    def commit(self, work: Work) -> NDArray[np.int8]:
        """Return the final verdict on each claim."""
        ...

    def repeats(self) -> Mapping[str, int]:
        """Return the number of retries since the beginning, by cause."""
        ...

    def end(self) -> None:
        """Release the resources of a slice."""
        ...

    def close(self) -> None:
        """Release all resources."""
        ...


Ways = Mapping[str, Callable[[str, str, str | None], Committer]]
"""Functions that create a committer from (database URL, client's name, one committer's address)."""


class Omega:
    """The product's commit: a transaction with the sequences that the client has seen."""

    def __init__(self, store: PostgresStore, rule: ConflictRule, name: str) -> None:
        self._store = store
        self._rule = rule
        self._name = name
        self._seen = np.zeros(0, dtype=np.int64)

    def begin(self) -> None:
        """Read the sequences of the whole cell; the fit rule ignores them, so once is enough."""
        if len(self._seen) and self._rule is ConflictRule.FIT:
            return
        rows = self._store.snapshot().rows
        self._seen = np.zeros(int(rows.id.max()) + 1, dtype=np.int64)
        self._seen[rows.id] = rows.sequence

    def commit(self, work: Work) -> NDArray[np.int8]:
        """Commit, and record the sequences of the fresh rows."""
        claims = Claims(
            work.task, work.machine, self._seen[work.machine], work.shape, DEMAND[np.newaxis]
        )
        transaction = Transaction.of(
            [(work.job, work.token, 0, claims)],
            id=work.id,
            scheduler="benchmark",
            replica=self._name,
            rule=self._rule,
        )
        outcome = self._store.commit(transaction)
        self._seen[outcome.fresh.id] = outcome.fresh.sequence
        return outcome.verdicts

    def repeats(self) -> Mapping[str, int]:
        """Return the store's counts."""
        return self._store.counts

    def end(self) -> None:
        """Keep the connection for the next slice."""

    def close(self) -> None:
        """Do nothing: the client closes the store."""


class Plan:
    """The order of jobs and tasks, with a random machine for each task."""

    def __init__(
        self, jobs: Sequence[LeasedJob], machines: tuple[int, int], rng: np.random.Generator
    ) -> None:
        self._jobs = list(jobs)
        self._first, self._last = machines
        self._rng = rng
        self._waiting = np.zeros(0, dtype=np.int64)
        self._job: LeasedJob | None = None

    def next(self, claims: int) -> Work | None:
        """Return the next transaction's work; None when all jobs are placed."""
        if not len(self._waiting):
            if not self._jobs:
                return None
            self._job = self._jobs.pop()
            self._waiting = self._job.unplaced.astype(np.int64)
        assert self._job is not None
        task = self._waiting[:claims]
        return Work(uuid4(), self._job.id, self._job.token, task, self._machines(len(task)))

    def learn(self, verdicts: NDArray[np.int8]) -> None:
        """Keep the refused tasks, to be tried first in the next transaction."""
        refused = self._waiting[: len(verdicts)][verdicts != Verdict.ACCEPTED]
        self._waiting = np.concatenate([refused, self._waiting[len(verdicts) :]])

    def _machines(self, claims: int) -> NDArray[np.int64]:
        """Draw distinct machines; if there are fewer than claims, use all equally often."""
        there = self._last - self._first + 1
        drawn = self._rng.choice(there, min(claims, there), replace=False, shuffle=False)
        return np.resize(drawn + self._first, claims)


class Client:
    """The messages that a client answers, one method each."""

    def __init__(self, others: Ways = MappingProxyType({})) -> None:
        """Create a client with these ways to commit besides omega's own."""
        self._others = others
        self._clock = RealClock()
        self._committers: dict[str, Committer] = {}

    def make_cell(self, url: str, machines: int) -> dict[str, Any]:
        """Migrate the database to this revision's schema, and add so many machines."""
        # Imported here: it takes long, and only one of all clients needs it.
        from omega.store.postgres.schema import migrate  # noqa: PLC0415

        migrate(url)
        capacity = amounts(cpu_milli=ROOM, memory_mib=ROOM)
        store = PostgresStore(url, application_name="omega benchmark")
        names = tuple(f"machine-{number}" for number in range(1, machines + 1))
        store.add_machines(Machines(names, np.tile(capacity, (machines, 1)), {}))
        store.close()
        return {}

    def open(self, url: str, name: str, address: str | None = None) -> dict[str, Any]:
        """Connect to the database; `address` is where the one committer listens."""
        self._url, self._name, self._address = url, name, address
        self._store = PostgresStore(url, application_name="omega benchmark")
        self._committers.clear()
        return {}

    def get_ready(
        self,
        variant: str,
        machines: tuple[int, int],
        claims: int,
        seconds: float,
        transactions: int,
        seed: Sequence[int],
    ) -> dict[str, Any]:
        """Lease the jobs of a slice, so that `go` begins with commits."""
        if variant not in self._committers:
            self._committers[variant] = self._new(variant)
        self._committer = self._committers[variant]
        self._claims, self._seconds, self._transactions = claims, seconds, transactions
        self._plan = Plan(self._lease(), machines, np.random.default_rng(seed))
        self._committer.begin()
        return {}

    def go(self) -> dict[str, Any]:
        """Commit until the time is up or so many transactions are done, but at least once."""
        committer, before = self._committer, Counter(self._committer.repeats())
        verdicts: Counter[int] = Counter()
        latencies_s: list[float] = []
        now = began = self._clock.now()
        while not latencies_s or (
            now < began + self._seconds and len(latencies_s) < self._transactions
        ):
            work = self._plan.next(self._claims)
            if work is None:
                break
            asked = self._clock.now()
            answer = committer.commit(work)
            now = self._clock.now()
            latencies_s.append(now - asked)
            self._plan.learn(answer)
            verdicts.update(answer.tolist())
        committer.end()
        return {
            "elapsed_s": now - began,
            "verdicts": {Verdict(verdict).name.lower(): n for verdict, n in verdicts.items()},
            "repeats": dict(Counter(committer.repeats()) - before),
            "latencies_s": latencies_s,
        }

    def watch(self) -> dict[str, Any]:
        """Read the cell, to be kept fresh by `refresh`."""
        # Imported here: committers have no views.
        from omega.sync.delta import DeltaRefresher  # noqa: PLC0415

        self._rows = self._full_reads = 0
        self._refresher = DeltaRefresher(self._store, self._clock, self._hear)
        self._view = self._refresher.refresh(None)
        return {}

    def refresh(self, times: int) -> dict[str, Any]:
        """Bring the view up to date so often; return the time of each, and what all have read."""
        latencies_s: list[float] = []
        self._rows = self._full_reads = 0
        for _ in range(times):
            began = self._clock.now()
            self._view = self._refresher.refresh(self._view)
            latencies_s.append(self._clock.now() - began)
        return {"latencies_s": latencies_s, "rows": self._rows, "full_reads": self._full_reads}

    def compare(self) -> dict[str, Any]:
        """Bring the view up to date; return whether it is equal to all rows as they are stored."""
        self._view = self._refresher.refresh(self._view)
        kept, stored = self._view.rows(), self._store.snapshot().rows
        by_id = np.argsort(stored.id)
        columns = ("id", "capacity", "used", "sequence", "revision", "state")
        return {
            "are_equal": all(
                np.array_equal(getattr(kept, column), getattr(stored, column)[by_id])
                for column in columns
            )
        }

    def submit(
        self, kind: str, jobs: int, tasks: int, cpu_milli: int, memory_mib: int
    ) -> dict[str, Any]:
        """Submit so many equal jobs to a kind of scheduler."""
        group = TaskGroup(tasks=tasks, cpu_milli=cpu_milli, memory_mib=memory_mib)
        spec = JobSpec(name="benchmark", scheduler=kind, groups=(group,))
        self._store.submit([spec] * jobs)
        return {}

    def check(self) -> dict[str, Any]:
        """Return the number of live allocations, and the violations of invariants."""
        broken = [f"{v.invariant}: {v.subject}, {v.detail}" for v in self._store.verify()]
        return {"live": self._store.use().live_allocations, "violations": broken}

    def _hear(self, event: object) -> None:
        """Count what a refresh has read; no other event comes from a refresher."""
        self._rows += getattr(event, "rows", 0)
        self._full_reads += getattr(event, "full", False)

    def _new(self, variant: str) -> Committer:
        if variant in OMEGA:
            return Omega(self._store, OMEGA[variant], self._name)
        return self._others[variant](self._url, self._name, self._address)

    def _lease(self) -> list[LeasedJob]:
        group = TaskGroup(tasks=TASKS_PER_JOB, cpu_milli=CPU_MILLI, memory_mib=MEMORY_MIB)
        spec = JobSpec(name="benchmark", scheduler=self._name, groups=(group,))
        self._store.submit([spec] * JOBS_PER_SLICE)
        return self._store.lease(
            self._name, holder=self._name, jobs_max=JOBS_PER_SLICE, lease_ms=LEASE_MS
        )


def serve(servant: object) -> None:
    """Call the methods that messages name, and send the results, until the input ends."""
    for line in sys.stdin:
        message = json.loads(line)
        answer: dict[str, Any]
        try:
            answer = getattr(servant, message.pop("do"))(**message)
        except OmegaError as error:
            answer = {"error": str(error)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    serve(Client())
