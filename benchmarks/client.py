"""A client: one process that commits claims as fast as it is answered.

Goal     Drive the store of whatever checkout the interpreter belongs to, so that one run can
         compare two revisions.
Promise  It imports numpy and `omega` alone, and of that only what has been there since the first
         commit on Postgres: as a script it runs on a checkout that has no benchmarks. It commits in
         omega's own ways; benchmarks/postgres/client.py gives it the others.
Source   Speaks JSON, a line a message, on standard input and output; benchmarks/workers.py is the
         other side. It ends when its input does.
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
"""What each claim asks for."""
ROOM: Final = 2_000_000_000
"""Of each machine, in CPU and memory: nearly two million claims, so that nothing is ever full."""
TASKS_PER_JOB: Final = 100_000
JOBS_PER_SLICE: Final = 4
LEASE_MS: Final = 86_400_000
OMEGA: Final = {"omega-fit": ConflictRule.FIT, "omega-sequence": ConflictRule.SEQUENCE}
"""Ways to commit that are omega's own."""


@dataclass(frozen=True, eq=False)
class Work:
    """What one transaction is to place: tasks of one job, and the machine of each."""

    id: UUID
    job: int
    token: UUID
    task: NDArray[np.int64]
    machine: NDArray[np.int64]

    @property
    def shape(self) -> NDArray[np.int64]:
        """Which of the shapes each claim has; there is one."""
        return np.zeros(len(self.task), dtype=np.int64)


class Committer(Protocol):
    """A way to commit."""

    def begin(self) -> None:
        """Get ready for a slice."""
        ...

    def commit(self, work: Work) -> NDArray[np.int8]:
        """Return the verdict on each claim once it stands, or does not, for good."""
        ...

    def repeats(self) -> Mapping[str, int]:
        """Return what had to be done again since the beginning, by cause."""
        ...

    def end(self) -> None:
        """Let go of what only a slice needs."""
        ...

    def close(self) -> None:
        """Let go of the rest."""
        ...


Ways = Mapping[str, Callable[[str, str, str | None], Committer]]
"""What makes a committer of a database's URL, a client's name and the one committer's address."""


class Omega:
    """The product: a transaction with the sequences that a scheduler's view shows."""

    def __init__(self, store: PostgresStore, rule: ConflictRule, name: str) -> None:
        self._store = store
        self._rule = rule
        self._name = name
        self._seen = np.zeros(0, dtype=np.int64)

    def begin(self) -> None:
        """Look at the whole cell; the fit rule judges no sequences, so once is enough."""
        if len(self._seen) and self._rule is ConflictRule.FIT:
            return
        rows = self._store.snapshot().rows
        self._seen = np.zeros(int(rows.id.max()) + 1, dtype=np.int64)
        self._seen[rows.id] = rows.sequence

    def commit(self, work: Work) -> NDArray[np.int8]:
        """Commit, and learn from the fresh rows."""
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
        """Return what the store counted."""
        return self._store.counts

    def end(self) -> None:
        """Keep the connection for the next slice."""

    def close(self) -> None:
        """Leave the store to the client, whose it is."""


class Plan:
    """Which tasks of which jobs come next, and on which machines."""

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
        """Keep what was refused, to be tried again at once."""
        refused = self._waiting[: len(verdicts)][verdicts != Verdict.ACCEPTED]
        self._waiting = np.concatenate([refused, self._waiting[len(verdicts) :]])

    def _machines(self, claims: int) -> NDArray[np.int64]:
        """Draw different machines; where there are fewer than claims, each as often as another."""
        there = self._last - self._first + 1
        drawn = self._rng.choice(there, min(claims, there), replace=False, shuffle=False)
        return np.resize(drawn + self._first, claims)


class Client:
    """What the messages ask for, one method each."""

    def __init__(self, others: Ways = MappingProxyType({})) -> None:
        """Know these ways to commit besides omega's own."""
        self._others = others
        self._clock = RealClock()
        self._committers: dict[str, Committer] = {}

    def make_cell(self, url: str, machines: int) -> dict[str, Any]:
        """Make the database one of this revision's, with so many machines."""
        # Here, and not above: it takes long to load, and one client of all needs it.
        from omega.store.postgres.schema import migrate  # noqa: PLC0415

        migrate(url)
        capacity = amounts(cpu_milli=ROOM, memory_mib=ROOM)
        store = PostgresStore(url, application_name="omega benchmark")
        names = tuple(f"machine-{number}" for number in range(1, machines + 1))
        store.add_machines(Machines(names, np.tile(capacity, (machines, 1)), {}))
        store.close()
        return {}

    def open(self, url: str, name: str, address: str | None = None) -> dict[str, Any]:
        """Connect; `address` is where the one committer listens."""
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
        """Lease jobs for a slice, so that it begins with committing when told to go."""
        if variant not in self._committers:
            self._committers[variant] = self._new(variant)
        self._committer = self._committers[variant]
        self._claims, self._seconds, self._transactions = claims, seconds, transactions
        self._plan = Plan(self._lease(), machines, np.random.default_rng(seed))
        self._committer.begin()
        return {}

    def go(self) -> dict[str, Any]:
        """Commit until the time is up or so many transactions are done; at least one is."""
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

    def check(self) -> dict[str, Any]:
        """Count what there is in the cell, and what is wrong with it."""
        broken = [f"{v.invariant}: {v.subject}, {v.detail}" for v in self._store.verify()]
        return {"live": self._store.use().live_allocations, "violations": broken}

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
    """Answer messages, by the methods that they name, until there are no more."""
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
