"""Races: several workers on one small hot cell, whose calls are recorded and then checked.

Goal     Make commits collide: on the same jobs, tasks and few machines, at the same time.
Promise  A worker makes one call at a time and repeats it until it is answered. Its calls follow
         from its seed and from the answers.
Source   the hot-cell races of Omega (EuroSys 2013), section 5; docs/decisions/0014.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar
from uuid import UUID

import numpy as np

from omega.cell.view import View
from omega.clock import Clock
from omega.errors import StoreUnavailable
from omega.model.arrays import Amounts, Ids, integers
from omega.model.claims import Alternates, Claims, ConflictRule, Evictions, Transaction
from omega.model.jobs import JobSpec, LeasedJob
from omega.model.outcomes import Outcome, Verdict
from omega.model.resources import Kind, amounts
from omega.store.protocols import OwnerStore, Store
from omega.testing.builders import JobAndClaims, a_cell, a_spec

MACHINES = 5
CORES = 4
TASKS = 12
KINDS = ("batch", "service")
"""The kinds of scheduler that the jobs are for; workers place jobs of both."""
OPEN_JOBS_MAX = 4
"""How many jobs a worker places at a time; all workers start with the same ones."""
LOOK_EVERY = 8
"""After how many transactions a worker reads changes and running tasks."""
TIMEOUT_S = 0.05
NEVER_MS = 3_600_000
"""The length of leases that do not expire during a race."""

_T = TypeVar("_T")


class Unit(Enum):
    """Which claims are granted together."""

    INCREMENTAL = "incremental"
    ALL_OR_NOTHING = "all-or-nothing"
    GANG = "gang"  # a minimum first, and then task by task


@dataclass(frozen=True)
class Mode:
    """A conflict rule and what is granted together."""

    rule: ConflictRule
    unit: Unit

    def __str__(self) -> str:
        return f"{self.rule.value}, {self.unit.value}"


MODES = tuple(Mode(rule, unit) for rule in ConflictRule for unit in Unit)


def hot_cell(store: OwnerStore) -> None:
    """Add the machines of the race."""
    store.add_machines(a_cell(MACHINES, cpu_milli=CORES * 1_000, gpus=1))


def jobs_to_race_for(
    store: Store, mode: Mode, transactions: int, *, tasks: int = TASKS
) -> tuple[LeasedJob, ...]:
    """Submit and lease enough jobs, of so many tasks each, for so many transactions."""
    minimum = tasks // 3 if mode.unit is Unit.GANG else 0
    specs: list[JobSpec] = [
        a_spec(tasks, scheduler=KINDS[number % 2], minimum=minimum, precedence=10 * (number % 3))
        for number in range(2 * OPEN_JOBS_MAX + 2 * transactions // tasks)
    ]
    submitted = set(store.submit(specs))
    leased = [
        job
        for kind in KINDS
        for job in store.lease(kind, holder="race", jobs_max=len(specs), lease_ms=NEVER_MS)
    ]
    assert submitted == {job.id for job in leased}, "others are in the queue"
    return tuple(sorted(leased, key=lambda job: job.id))


class Racer:
    """One worker of a race."""

    def __init__(
        self,
        store: Store,
        jobs: Sequence[LeasedJob],
        mode: Mode,
        *,
        name: str,
        rng: np.random.Generator,
        clock: Clock,
        new_id: Callable[[], UUID],
    ) -> None:
        self._store = store
        self._mode = mode
        self._name = name
        self._rng = rng
        self._clock = clock
        self._new_id = new_id
        self._jobs = {job.id: job for job in jobs}
        self._open: dict[int, set[int]] = {job.id: set(job.unplaced.tolist()) for job in jobs}
        """By job whose lease is held as far as is known, the tasks that are probably unplaced."""
        self._placed: list[tuple[int, int]] = []
        """Tasks that this worker has placed and not ended, as (job, task)."""
        self._others: list[tuple[int, int, int]] = []
        """Job, task and machine of every task that ran when they were last read."""
        self.faults = 0
        """How often the store did not answer."""

    def run(self, transactions: int) -> None:
        """Commit so many transactions, or until no task is left to place."""
        for _ in self.steps(transactions):
            pass

    def steps(self, transactions: int) -> Iterator[None]:
        """Commit like `run`, and end some tasks between; yield after each transaction."""
        self._view = View(self._asking(self._store.snapshot))
        for number in range(transactions):
            if number % LOOK_EVERY == 0:
                self._look()
            if not self._open:
                return
            transaction = self._transaction()
            self._learn(transaction, self._commit(transaction))
            self._end_some()
            yield

    def _commit(self, transaction: Transaction) -> Outcome:
        return self._asking(lambda: self._store.commit(transaction))

    def _asking(self, call: Callable[[], _T]) -> _T:
        """Repeat a call until it is answered."""
        while True:
            try:
                return call()
            except StoreUnavailable:
                self.faults += 1
                self._clock.sleep(TIMEOUT_S * self._rng.random())

    def _look(self) -> None:
        """Read the changes, and the running tasks, which may be evicted."""
        changes = self._asking(lambda: self._store.changes_since(self._view.mark))
        if changes.generation == self._view.generation:
            self._view.catch_up(changes)
        else:  # the server has crashed meanwhile
            self._view = View(self._asking(self._store.snapshot))
        live = self._asking(self._store.allocations)
        self._others = list(
            zip(live.job.tolist(), live.task.tolist(), live.machine.tolist(), strict=True)
        )

    def _transaction(self) -> Transaction:
        candidates = list(self._open)[:OPEN_JOBS_MAX]
        wanted = min(len(candidates), 1 + int(self._rng.random() < 0.3))
        jobs = self._rng.choice(candidates, wanted, replace=False).tolist()
        return Transaction.of(
            [self._claims_of(self._jobs[job]) for job in jobs],
            id=self._new_id(),
            scheduler="batch",
            replica=self._name,
            rule=self._mode.rule,
        )

    def _claims_of(self, job: LeasedJob) -> JobAndClaims:
        unplaced = sorted(self._open[job.id])
        gang = self._mode.unit is Unit.GANG
        wanted = min(len(unplaced), int(self._rng.integers(3 if gang else 1, 6 if gang else 4)))
        tasks = np.sort(self._rng.choice(unplaced, wanted, replace=False)).astype(np.intp)
        machines = self._machines(wanted)
        claims = Claims(
            task=tasks,
            machine=machines,
            seen=self._seen(machines),
            shape=self._rng.integers(0, 2, wanted).astype(np.intp),
            shapes=self._shapes(),
            alternates=self._alternates(machines),
            evictions=self._evictions(machines),
        )
        whole = self._mode.unit is Unit.ALL_OR_NOTHING
        return job.id, job.token, wanted if whole else 0, claims

    def _machines(self, wanted: int) -> Ids:
        """Choose machines that have room in the view, or sometimes any machines."""
        roomy = self._view.id[self._view.free[:, Kind.CPU_MILLI] >= 1_000]
        anywhere = len(roomy) == 0 or self._rng.random() < 0.3
        return self._rng.choice(self._view.id if anywhere else roomy, wanted)

    def _shapes(self) -> Amounts:
        cores, slices = self._rng.integers(1, 4), self._rng.choice([0, 0, 0, 500])
        return np.array(
            [
                amounts(cpu_milli=int(cores) * 500, memory_mib=int(self._rng.integers(1, 999))),
                amounts(cpu_milli=500, gpu_0=int(slices)),
            ]
        )

    def _seen(self, machines: Ids) -> Ids:
        return self._view.sequence[self._view.where(machines)]

    def _alternates(self, machines: Ids) -> Alternates:
        """Draw an alternate for some claims."""
        of = np.flatnonzero(self._rng.random(len(machines)) < 0.15)
        others = machines[of] % MACHINES + 1
        return Alternates(of, others, self._seen(others), np.ones(len(of), dtype=np.intp))

    def _evictions(self, machines: Ids) -> Evictions:
        """Draw, sometimes, an eviction of a task that was seen on a claim's machine."""
        at = int(self._rng.integers(len(machines)))
        there = [(job, task) for job, task, on in self._others if on == machines[at]]
        if self._rng.random() > 0.25:
            there = []
        some = [self._pick(there)] if there else []
        return Evictions(
            integers([at] * len(some)),
            integers([job for job, _ in some]),
            np.array([task for _, task in some], dtype=np.intp),
        )

    def _learn(self, transaction: Transaction, outcome: Outcome) -> None:
        self._view.patch(outcome.fresh)
        for part in transaction.jobs:
            verdicts = outcome.verdicts[part.claims]
            tasks = transaction.claims.task[part.claims]
            granted = tasks[verdicts == Verdict.ACCEPTED].tolist()
            self._placed += [(part.job, task) for task in granted]
            lost = bool((verdicts == Verdict.LEASE_LOST).any())
            self._open[part.job] -= {*granted, *tasks[verdicts == Verdict.ALREADY_PLACED].tolist()}
            if lost or not self._open[part.job]:
                del self._open[part.job]
        for job, task in zip(
            outcome.evicted_job.tolist(), outcome.evicted_task.tolist(), strict=True
        ):
            if job in self._open:
                self._open[job].add(task)

    def _end_some(self) -> None:
        """End some of this worker's tasks, and sometimes another's, so that there is room again."""
        if not self._placed or self._rng.random() > 0.4:
            return
        count = min(len(self._placed), int(self._rng.integers(1, 5)))
        self._rng.shuffle(self._placed)
        ended, self._placed = self._placed[:count], self._placed[count:]
        if self._others and self._rng.random() < 0.1:
            job, task, _ = self._pick(self._others)
            ended.append((job, task))
        jobs, tasks = integers([job for job, _ in ended]), [task for _, task in ended]
        self._asking(lambda: self._store.end_tasks(jobs, np.array(tasks, dtype=np.intp)))

    def _pick(self, among: Sequence[_T]) -> _T:
        return among[int(self._rng.integers(len(among)))]
