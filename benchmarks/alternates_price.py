"""What alternates cost where no claim needs one: the time of a commit by how many are named.

One client places jobs by the batch scheduler on a roomy cell, and times each commit. The numbers of
alternates take turns in random order, so that other work on the machine slows all of them alike.
"""

from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from itertools import product
from typing import Any, Final
from uuid import UUID

import numpy as np

from benchmarks.harness import Stage
from benchmarks.postgres import statements
from benchmarks.ratios import milliseconds, paired
from omega.cell.view import View
from omega.errors import InvariantBroken
from omega.model.claims import Transaction
from omega.model.jobs import JobSpec, TaskGroup
from omega.store.postgres.schema import migrate
from omega.store.postgres.store import PostgresStore
from omega.workload.arrivals import BATCH
from omega.workload.synthetic import uniform_machines
from schedulers.batch import BatchScheduler

CLAIMS: Final = (1, 10, 100)
"""Claims of a commit."""
TASKS_A_MACHINE: Final = 64
LEASE_MS: Final = 60_000


class Price:
    """Commits on one cell, with so many alternates a claim."""

    def __init__(self, numbers: Sequence[int], machines: int, rounds: int, seed: int) -> None:
        self._numbers = numbers
        self._machines = machines
        self._rounds = rounds
        self._rng = np.random.default_rng(seed)
        self._seconds: dict[tuple[int, int], list[float]] = defaultdict(list)

    def measure(self, stage: Stage) -> list[dict[str, Any]]:
        """Time all commits; check that every task runs; return a row for each kind of commit."""
        with stage.database() as url:
            migrate(url)
            with closing(statements.store(url)) as store:
                store.add_machines(
                    uniform_machines(self._machines, cpus=TASKS_A_MACHINE, memory_gib=256)
                )
                view = View(store.snapshot())
                for turn in range(self._rounds + 1):
                    stage.go_on()
                    for claims, number in self._in_random_order():
                        took_s = self._commit(stage, store, view, claims, number)
                        if turn:  # the first commits plan their statements
                            self._seconds[claims, number].append(took_s)
                self._check(store)
        return [self._row(claims, number) for claims, number in product(CLAIMS, self._numbers)]

    def _in_random_order(self) -> list[tuple[int, int]]:
        cases = list(product(CLAIMS, self._numbers))
        return [cases[at] for at in self._rng.permutation(len(cases))]

    def _commit(
        self, stage: Stage, store: PostgresStore, view: View, claims: int, number: int
    ) -> float:
        """Submit, place and commit a job of so many tasks; return the seconds of the commit."""
        group = TaskGroup(tasks=claims, cpu_milli=1_000, memory_mib=1_024)
        store.submit([JobSpec(name="priced", scheduler=BATCH, groups=(group,))])
        (job,) = store.lease(BATCH, holder="price", jobs_max=1, lease_ms=LEASE_MS)
        placed = BatchScheduler(alternates=number).place(view, job, self._rng)
        if len(placed.alternates) != number * claims:
            raise InvariantBroken(f"{len(placed.alternates)} alternates for {claims} claims")
        transaction = Transaction.of(
            [(job.id, job.token, 0, placed)],
            id=UUID(bytes=self._rng.bytes(16)),
            scheduler=BATCH,
            replica="price",
        )
        began = stage.clock.now()
        outcome = store.commit(transaction)
        took_s = stage.clock.now() - began
        if outcome.refused:
            raise InvariantBroken(f"{outcome.refused} claims of one client alone were refused")
        view.patch(outcome.fresh)
        return took_s

    def _check(self, store: PostgresStore) -> None:
        if violations := store.verify():
            raise InvariantBroken("the cell is broken", story=[str(one) for one in violations[:20]])
        live, due = store.use().live_allocations, self._tasks
        if live != due:
            raise InvariantBroken(f"{due} tasks were committed, {live} run")

    @property
    def _tasks(self) -> int:
        return (self._rounds + 1) * sum(CLAIMS) * len(self._numbers)

    def _row(self, claims: int, number: int) -> dict[str, Any]:
        mine, without = self._seconds[claims, number], self._seconds[claims, self._numbers[0]]
        ratio = paired(mine, without)
        return {
            "measures": "price",
            "claims": claims,
            "alternates": number,
            "commits": len(mine),
            **milliseconds(mine),
            "over_none": None if ratio is None else ratio.rounded(),
        }
