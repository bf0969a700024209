"""The auditor: a second set of books beside a store, compared after every change.

Goal     Catch a store that loses, doubles or oversells at the very call that does it.
Promise  Knows only what the callers were told. Raises InvariantBroken with the machine's story.
Source   TigerBeetle's auditor; docs/decisions/0003-the-commit-rule.md.

The auditor must be the only door to its store: a change that it has not seen is a difference.
"""

from collections import defaultdict, deque
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn
from uuid import UUID

import numpy as np

from omega.errors import InvariantBroken
from omega.model.arrays import Amounts, Ids, Index
from omega.model.claims import JobPart, Transaction
from omega.model.jobs import JobSpec
from omega.model.machines import MachineRows, Machines
from omega.model.outcomes import Outcome, Verdict
from omega.model.resources import KINDS, named
from omega.store.base import Store
from omega.testing.pass_through import PassThrough

STORY_LINES_MAX = 30


@dataclass(frozen=True, eq=False)
class Held:
    """What one task holds."""

    machine: int
    amounts: Amounts


class Books:
    """What must be true of a cell, from what its callers were told."""

    def __init__(self, store: Store) -> None:
        self.live: dict[int, dict[int, Held]] = defaultdict(dict)
        """By job and task, what it holds."""
        self.over: dict[int, set[int]] = defaultdict(set)
        """By job, the tasks that are over."""
        self.used: dict[int, Amounts] = defaultdict(lambda: np.zeros(KINDS, dtype=np.int64))
        self.counters: dict[int, tuple[int, int]] = {}
        """By machine, sequence and revision."""
        self.stories: dict[int, deque[str]] = defaultdict(lambda: deque(maxlen=STORY_LINES_MAX))
        live = store.allocations()
        entries = zip(live.job.tolist(), live.task.tolist(), live.machine.tolist(), strict=True)
        for at, (job, task, machine) in enumerate(entries):
            self.grant(job, task, machine, live.amounts[at])

    def placed(self, job: int) -> int:
        """Return how many tasks of a job have a place or are over."""
        return len(self.live[job]) + len(self.over[job])

    def grant(self, job: int, task: int, machine: int, amounts: Amounts) -> None:
        """Enter an allocation; a task has one in all its life."""
        if task in self.live[job] or task in self.over[job]:
            self.accuse(machine, f"task {task} of job {job} was granted twice")
        self.live[job][task] = Held(machine, amounts)
        self.used[machine] = self.used[machine] + amounts
        self.tell(machine, f"granted to task {task} of job {job}: {named(amounts)}")

    def end(self, job: int, task: int, why: str) -> bool:
        """Strike out an allocation; say whether it was live."""
        held = self.live[job].pop(task, None)
        if held is None:
            return False
        self.over[job].add(task)
        self.used[held.machine] = self.used[held.machine] - held.amounts
        self.tell(held.machine, f"{why} task {task} of job {job}: {named(held.amounts)}")
        return True

    def tell(self, machine: int, line: str) -> None:
        """Add a line to a machine's story."""
        self.stories[machine].append(line)

    def accuse(self, machine: int, what: str) -> NoReturn:
        """Raise InvariantBroken with the machine's story."""
        raise InvariantBroken(f"machine {machine}: {what}", story=tuple(self.stories[machine]))


class Auditor(PassThrough):
    """A store that is watched; put it where the store was."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._books = Books(store)
        self._specs: dict[int, JobSpec] = {}
        self._outcomes: dict[UUID, list[int]] = {}
        self._mark = 0
        self._compare(granted_on=())

    def add_machines(self, machines: Machines) -> Ids:
        """Pass on, and note the counters that the machines begin with."""
        ids = super().add_machines(machines)
        self._compare(granted_on=())
        return ids

    def submit(self, specs: Sequence[JobSpec]) -> list[int]:
        """Pass on, and remember what was asked."""
        jobs = super().submit(specs)
        self._specs.update(zip(jobs, specs, strict=True))
        return jobs

    def commit(self, transaction: Transaction) -> Outcome:
        """Pass on, enter what was granted, and compare."""
        outcome = super().commit(transaction)
        verdicts = outcome.verdicts.tolist()
        known = self._outcomes.setdefault(transaction.id, verdicts)
        if known is not verdicts:
            self._expect_the_same_again(transaction, known, verdicts)
            self._compare(granted_on=())
            return outcome
        granted_on = self._enter(transaction, outcome)
        self._expect_whole_gangs(transaction.jobs)
        self._compare(granted_on)
        self._compare_rows(outcome.fresh)
        return outcome

    def end_tasks(self, job: Ids, task: Index) -> int:
        """Pass on, strike out what ended, and compare."""
        ended = super().end_tasks(job, task)
        struck = sum(
            self._books.end(number, index, "ended")
            for number, index in zip(job.tolist(), task.tolist(), strict=True)
        )
        if ended != struck:
            raise InvariantBroken(f"{struck} live tasks were ended; the store says {ended}")
        self._compare(granted_on=())
        return ended

    def cancel(self, job: int) -> bool:
        """Pass on, strike out what ran, and compare."""
        cancelled = super().cancel(job)
        running = list(self._books.live[job])
        if running and not cancelled:
            raise InvariantBroken(f"job {job} has {len(running)} live tasks and was not cancelled")
        for task in running:
            self._books.end(job, task, "cancelled")
        self._compare(granted_on=())
        return cancelled

    def audit(self) -> None:
        """Compare everything with the store: all rows, all allocations, its own verify."""
        self._compare(granted_on=())
        self._compare_rows(self.snapshot().rows)
        live = self.allocations()
        told = sorted(
            zip(live.job.tolist(), live.task.tolist(), live.machine.tolist(), strict=True)
        )
        kept = sorted(
            (job, task, held.machine)
            for job, tasks in self._books.live.items()
            for task, held in tasks.items()
        )
        if told != kept:
            differ = sorted(set(told) ^ set(kept)) or "one of them twice"
            raise InvariantBroken(f"allocations (job, task, machine) differ: {differ}")
        if violations := self.verify():
            raise InvariantBroken("the store accuses itself", story=[str(v) for v in violations])

    def _enter(self, transaction: Transaction, outcome: Outcome) -> set[int]:
        claims, demand = transaction.claims, transaction.claims.demand
        granted_on = set()
        for part in transaction.jobs:
            for claim in range(part.claims.start, part.claims.stop):
                machine, task = int(claims.machine[claim]), int(claims.task[claim])
                if outcome.accepted[claim]:
                    self._books.grant(part.job, task, machine, demand[claim])
                    granted_on.add(machine)
                else:
                    verdict = Verdict(int(outcome.verdicts[claim])).name
                    line = f"refused to task {task} of job {part.job}: {verdict}"
                    self._books.tell(machine, line)
        return granted_on

    def _expect_the_same_again(
        self, transaction: Transaction, known: list[int], verdicts: list[int]
    ) -> None:
        if known != verdicts:
            raise InvariantBroken(
                f"transaction {transaction.id} was answered {known} and then {verdicts}"
            )

    def _expect_whole_gangs(self, parts: Iterable[JobPart]) -> None:
        for part in parts:
            minimum = self._specs[part.job].minimum if part.job in self._specs else 0
            placed = self._books.placed(part.job)
            if 0 < placed < minimum:
                raise InvariantBroken(
                    f"job {part.job} is a gang of at least {minimum} and has {placed} tasks placed"
                )

    def _compare(self, granted_on: Collection[int]) -> None:
        """Compare the rows that changed, and how far their counters rose, with the books."""
        changes = self._store.changes_since(self._mark)
        self._mark = changes.mark
        rows, books = changes.rows, self._books
        self._compare_rows(rows)
        counters = zip(rows.sequence.tolist(), rows.revision.tolist(), strict=True)
        for machine, (sequence, revision) in zip(rows.id.tolist(), counters, strict=True):
            sequence_before, revision_before = books.counters.get(machine, (sequence, revision))
            rise = sequence - sequence_before
            if machine in books.counters and rise != (machine in granted_on):
                books.accuse(machine, f"sequence rose by {rise} to {sequence}")
            if revision < revision_before + rise:
                books.accuse(machine, f"revision went from {revision_before} to {revision}")
            books.counters[machine] = sequence, revision
        if missed := set(granted_on) - set(rows.id.tolist()):
            books.accuse(min(missed), "was granted on, and no delta tells")

    def _compare_rows(self, rows: MachineRows) -> None:
        for at, machine in enumerate(rows.id.tolist()):
            expected = self._books.used[machine]
            if (expected != rows.used[at]).any():
                what = f"books {named(expected)}, store {named(rows.used[at])}"
                self._books.accuse(machine, f"use disagrees: {what}")
            if (rows.used[at] > rows.capacity[at]).any():
                what = f"{named(rows.used[at])} of {named(rows.capacity[at])}"
                self._books.accuse(machine, f"is oversold: {what}")
