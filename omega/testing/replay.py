"""A cell on which a history is replayed: one event at a time, each of which can be undone.

Goal     Say whether an event could have happened now, given its answer.
Promise  Commits are judged only by `omega.cell.judge`. An event whose answer does not fit changes
         nothing. An event that was applied can be undone, the last one first.
Source   docs/decisions/0003-the-commit-rule.md, 0015-evictions-alternates-machines.md.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from omega.cell.commit_context import NO_VICTIMS, CommitContext, Victims
from omega.cell.judge import judge
from omega.model.arrays import Amounts, Index, integers
from omega.model.claims import Transaction
from omega.model.jobs import LeasedJob
from omega.model.machines import MachineRows
from omega.model.outcomes import Outcome
from omega.model.resources import KINDS
from omega.testing.recorder import Ended, Event, Judged, Moment, places
from omega.testing.twin import differences, row_differences

Undo = Callable[[], None]


@dataclass(frozen=True, eq=False)
class Held:
    """The machine and the amounts of one task."""

    machine: int
    amounts: Amounts


@dataclass(frozen=True, eq=False)
class JobState:
    """One job, as far as the judge must know it."""

    token: UUID | None
    minimum: int
    scheduler: str
    precedence: int
    yields_to: int
    unplaced: frozenset[int]
    placed: int
    live: Mapping[int, Held]

    @cached_property
    def mark(self) -> int:
        """A hash that differs between states of the job that the judge distinguishes."""
        held = ((task, it.machine, it.amounts.tobytes()) for task, it in self.live.items())
        return hash((self.token is None, self.unplaced, frozenset(held)))


class Replay:
    """Machines and jobs, from one moment on."""

    def __init__(self, start: Moment, jobs: Sequence[LeasedJob]) -> None:
        rows = start.rows
        self._rows = rows
        self._used = rows.used.copy()
        self._sequence = rows.sequence.copy()
        self._revision = rows.revision.copy()
        live: dict[int, dict[int, Held]] = defaultdict(dict)
        for at, ((job, task), machine) in enumerate(places(start.allocations).items()):
            live[job][task] = Held(machine, start.allocations.amounts[at])
        self._jobs = {
            job.id: JobState(
                job.token,
                job.spec.minimum,
                job.spec.scheduler,
                job.spec.precedence,
                job.spec.yields_to(start.precedence_gap),
                frozenset(job.unplaced.tolist()),
                job.placed,
                live.get(job.id, {}),
            )
            for job in jobs
        }
        self._at = {job: at for at, job in enumerate(self._jobs)}
        self._marks = np.array(
            [job_state.mark for job_state in self._jobs.values()], dtype=np.int64
        )
        self._strangers = {
            (job, task): held.machine
            for job in live.keys() - self._jobs.keys()
            for task, held in live[job].items()
        }
        """Running tasks of other jobs; no event ends or evicts them."""

    def apply(self, event: Event) -> Undo | list[str]:
        """Apply an event if its answer fits; return its undo, or the reasons why it does not fit.

        An event without an answer fits if it has an effect now.
        """
        return self._commit(event) if isinstance(event, Judged) else self._end(event)

    def strays(self, event: Event) -> bool:
        """Return, without judging, whether an event's rows are not of this moment."""
        if isinstance(event, Ended) or event.asked_again:
            return False
        fresh = event.outcome.fresh
        at = self._rows.where(fresh.id)
        if (at < 0).any():
            return True
        ahead = fresh.revision - self._revision[at]
        return bool(((ahead < 0) | (ahead > 1)).any())

    def where_it_differs(self, end: Moment) -> list[str]:
        """Return the differences between the replayed cell and the one found at the end."""
        found = row_differences(self.rows(), end.rows)
        there = places(end.allocations)
        ours = self._strangers | {
            (job, task): held.machine
            for job, job_state in self._jobs.items()
            for task, held in job_state.live.items()
        }
        return found + [
            f"job {job} task {task}: on machine {ours.get((job, task))} by its history,"
            f" found on {there.get((job, task))}"
            for job, task in sorted(ours.keys() | there.keys())
            if ours.get((job, task)) != there.get((job, task))
        ]

    @property
    def state(self) -> bytes:
        """A fingerprint of all that later answers depend on.

        It includes leases and tasks. Two events on different machines leave the same revisions in
        either order, but not always the same leases and tasks.
        """
        all_of_it = self._revision.tobytes() + self._sequence.tobytes() + self._marks.tobytes()
        return blake2b(all_of_it, digest_size=16).digest()

    def rows(self) -> MachineRows:
        """Return the rows of all machines as they are now."""
        return self._take(np.arange(len(self._rows)))

    def _take(self, at: Index) -> MachineRows:
        return MachineRows(
            self._rows.id[at],
            self._rows.capacity[at],
            self._used[at],
            self._sequence[at],
            self._revision[at],
            self._rows.state[at],
        )

    def _commit(self, event: Judged) -> Undo | list[str]:
        transaction = event.transaction
        context = self._context(transaction)
        machines = np.unique(np.concatenate([transaction.claims.machines, context.victims.machine]))
        at = self._rows.where(machines)
        outcome = judge(self._take(at[at >= 0]), transaction, context)
        wrong = _differences(outcome, event)
        return wrong or self._enter(transaction, outcome)

    def _context(self, transaction: Transaction) -> CommitContext:
        states = [self._jobs.get(part.job) for part in transaction.jobs]
        held = [
            job_state is not None and job_state.token == part.token
            for job_state, part in zip(states, transaction.jobs, strict=True)
        ]
        unplaced = [
            job_state is not None and task in job_state.unplaced
            for job_state, part in zip(states, transaction.jobs, strict=True)
            for task in transaction.claims.task[part.claims].tolist()
        ]
        own = {part.job for part, is_held in zip(transaction.jobs, held, strict=True) if is_held}
        return CommitContext(
            lease_held=np.array(held, dtype=np.bool_),
            minimum=integers([job_state.minimum if job_state else 0 for job_state in states]),
            placed=integers([job_state.placed if job_state else 0 for job_state in states]),
            precedence=integers([job_state.precedence if job_state else 0 for job_state in states]),
            unplaced=np.array(unplaced, dtype=np.bool_),
            victims=self._victims(transaction, own),
        )

    def _victims(self, transaction: Transaction, own: set[int]) -> Victims:
        named = transaction.claims.evictions.job.tolist()
        about = sorted({job for job in named if job in self._jobs})
        if not about:
            return NO_VICTIMS
        states = [self._jobs[job] for job in about]
        live = [
            (job, task, held)
            for job, job_state in zip(about, states, strict=True)
            for task, held in sorted(job_state.live.items())
        ]
        return Victims(
            job=integers([job for job, _, _ in live]),
            task=np.array([task for _, task, _ in live], dtype=np.intp),
            machine=integers([held.machine for _, _, held in live]),
            amounts=np.array([held.amounts for _, _, held in live], np.int64).reshape(-1, KINDS),
            distinct_job=integers(about),
            yields_to=integers([job_state.yields_to for job_state in states]),
            minimum=integers([job_state.minimum for job_state in states]),
            placed=integers([job_state.placed for job_state in states]),
            own=np.array(
                [
                    {part.job, job} <= own
                    and self._jobs[part.job].scheduler == self._jobs[job].scheduler
                    for part in transaction.jobs
                    for job in about
                ],
                dtype=np.bool_,
            ).reshape(len(transaction.jobs), len(about)),
        )

    def _enter(self, transaction: Transaction, outcome: Outcome) -> Undo:
        undo = [self._write(outcome.fresh)]
        evicted: dict[int, list[int]] = defaultdict(list)
        for job, task in zip(
            outcome.evicted_job.tolist(), outcome.evicted_task.tolist(), strict=True
        ):
            evicted[job].append(task)
        granted = _grants(transaction, outcome)
        undo += [
            self._move(job, evicted.get(job, []), granted.get(job, {}))
            for job in evicted.keys() | granted.keys()
        ]
        return _all_of(undo)

    def _move(self, job: int, evicted: list[int], granted: dict[int, Held]) -> Undo:
        """Unplace some tasks of a job, and then place some."""
        job_state = self._jobs[job]
        unplaced = job_state.unplaced.union(evicted).difference(granted)
        stayed = {task: held for task, held in job_state.live.items() if task not in set(evicted)}
        moved = replace(
            job_state,
            # A job whose tasks all run has no lease any more.
            token=job_state.token if unplaced else None,
            unplaced=unplaced,
            placed=job_state.placed + len(granted) - len(evicted),
            live=stayed | granted,
        )
        return self._turn_to(job, moved)

    def _turn_to(self, job: int, job_state: JobState) -> Undo:
        """Replace the state of a job; return the undo."""
        before = self._jobs[job]
        self._jobs[job] = job_state
        self._marks[self._at[job]] = job_state.mark

        def undo() -> None:
            self._jobs[job] = before
            self._marks[self._at[job]] = before.mark

        return undo

    def _write(self, rows: MachineRows) -> Undo:
        at = self._rows.where(rows.id)
        before = self._used[at], self._sequence[at], self._revision[at]
        self._used[at], self._sequence[at], self._revision[at] = (
            rows.used,
            rows.sequence,
            rows.revision,
        )

        def undo() -> None:
            self._used[at], self._sequence[at], self._revision[at] = before

        return undo

    def _end(self, event: Ended) -> Undo | list[str]:
        told = set(zip(event.job.tolist(), event.task.tolist(), strict=True))
        live = sorted(
            (job, task) for job, task in told if job in self._jobs and task in self._jobs[job].live
        )
        if event.ended not in (None, len(live)):
            return [f"{event.ended} ended by the answer, {len(live)} of them live: {sorted(told)}"]
        if event.ended is None and not live:
            return [f"none is live of {sorted(told)}"]
        held = [self._jobs[job].live[task] for job, task in live]
        at = self._rows.where(integers([one.machine for one in held]))
        used, revision = self._used.copy(), self._revision.copy()
        for row, one in zip(at, held, strict=True):
            self._used[row] -= one.amounts
        self._revision[np.unique(at)] += 1
        undo = [
            self._let_go(job, {task for of, task in live if of == job})
            for job in {job for job, _ in live}
        ]

        def undo_rows() -> None:
            self._used, self._revision = used, revision

        return _all_of([undo_rows, *undo])

    def _let_go(self, job: int, tasks: set[int]) -> Undo:
        """Record that some tasks of a job have ended; return the undo."""
        job_state = self._jobs[job]
        live = {task: held for task, held in job_state.live.items() if task not in tasks}
        return self._turn_to(job, replace(job_state, live=live))


def _grants(transaction: Transaction, outcome: Outcome) -> dict[int, dict[int, Held]]:
    """Return what was granted, by job and task."""
    claims, others = transaction.claims, transaction.claims.alternates
    granted: dict[int, dict[int, Held]] = {}
    for part in transaction.jobs:
        for at in np.flatnonzero(outcome.accepted[part.claims]) + part.claims.start:
            machine, shape = int(outcome.machine[at]), claims.shape[at]
            if machine != claims.machine[at]:
                (other, *_) = np.flatnonzero((others.claim == at) & (others.machine == machine))
                shape = others.shape[other]
            held = Held(machine, claims.shapes[shape])
            granted.setdefault(part.job, {})[int(claims.task[at])] = held
    return granted


def _differences(expected: Outcome, event: Judged) -> list[str]:
    """Return the differences between the judge's outcome and the recorded one."""
    told = event.outcome
    if not event.asked_again and all(map(np.array_equal, _arrays(expected), _arrays(told))):
        return []
    found = differences(expected, told)
    # The rows of a repeated answer are of a later moment, so they are not compared.
    return [line for line in found if not (event.asked_again and line.startswith("machine "))]


def _arrays(outcome: Outcome) -> Sequence[NDArray[np.integer[Any]]]:
    fresh = outcome.fresh
    return (
        outcome.verdicts,
        outcome.machine,
        outcome.evicted_job,
        outcome.evicted_task,
        fresh.id,
        fresh.capacity,
        fresh.used,
        fresh.sequence,
        fresh.revision,
        fresh.state,
    )


def _all_of(undos: Sequence[Undo]) -> Undo:
    def undo() -> None:
        for one in reversed(undos):
            one()

    return undo
