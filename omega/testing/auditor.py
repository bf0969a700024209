"""The auditor: a shadow state beside a store, compared after every change.

Goal     Detect a store that loses, doubles or oversells, at the call that does it.
Promise  The shadow state is computed only from what callers were told. A difference raises
         InvariantBroken with the last events of the machine.
Source   TigerBeetle's auditor; docs/decisions/0003-the-commit-rule.md.

All changes of the store must be made through the auditor; any other change is a difference.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np

from omega.errors import InvariantBroken
from omega.model.allocations import Allocations
from omega.model.arrays import Amounts, Ids, Index
from omega.model.claims import Transaction
from omega.model.exits import TaskExit
from omega.model.jobs import JobSpec, LeasedJob
from omega.model.lanes import Lane
from omega.model.machines import MachineRows, Machines, MachineState
from omega.model.outcomes import Outcome, Verdict
from omega.model.resources import named
from omega.store.protocols import Store
from omega.testing.pass_through import PassThrough
from omega.testing.shadow_state import ShadowState
from omega.testing.twin import TaskName, evicted_by


class Auditor(PassThrough):
    """A store that compares another store with a shadow state at every call."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._shadow = ShadowState(store)
        self._specs: dict[int, JobSpec] = {}
        self._parents: dict[int, int] = {}
        """By job of helpers, the elastic job that they help."""
        self._outcomes: dict[UUID, list[list[Any]]] = {}
        self._mark = 0
        self._gap = store.precedence_gap()
        self._compare(raised=())

    def set_precedence_gap(self, gap: int) -> None:
        """Pass on."""
        super().set_precedence_gap(gap)
        self._gap = gap

    def add_machines(self, machines: Machines) -> Ids:
        """Add machines, and record the counters that they begin with."""
        ids = super().add_machines(machines)
        self._compare(raised=())
        return ids

    def submit(self, specs: Sequence[JobSpec]) -> list[int]:
        """Submit jobs, and record their specs."""
        jobs = super().submit(specs)
        self._specs.update(zip(jobs, specs, strict=True))
        return jobs

    def lease(
        self,
        scheduler: str,
        *,
        holder: str,
        jobs_max: int,
        lease_ms: int,
        lanes: Mapping[Lane, int] | None = None,
        by_key: bool = False,
    ) -> list[LeasedJob]:
        """Lease jobs; stages of pipelines became jobs without a call of this store."""
        leased = super().lease(
            scheduler,
            holder=holder,
            jobs_max=jobs_max,
            lease_ms=lease_ms,
            lanes=lanes,
            by_key=by_key,
        )
        self._specs = {job.id: job.spec for job in leased} | self._specs
        return leased

    def add_helpers(
        self,
        scheduler: str,
        parent: int,
        tasks: int,
        *,
        precedence: int,
        holder: str,
        lease_ms: int,
    ) -> LeasedJob | None:
        """Add helpers, and record whom they help."""
        helpers = super().add_helpers(
            scheduler, parent, tasks, precedence=precedence, holder=holder, lease_ms=lease_ms
        )
        if helpers is not None:
            self._specs[helpers.id] = helpers.spec
            self._parents[helpers.id] = parent
        return helpers

    def end_helpers(self, scheduler: str, job: Ids, task: Index) -> int:
        """End helpers, remove them from the shadow state, and compare."""
        ended = super().end_helpers(scheduler, job, task)
        helpers = {it for it in self._parents if self._specs[it].scheduler == scheduler}
        named = {name for name in _named(job, task) if name[0] in helpers}
        struck = sum(self._shadow.end(*name) for name in named)
        if ended != struck:
            raise InvariantBroken(f"{struck} live helpers were named; the store ended {ended}")
        self._compare(raised=())
        return ended

    def commit(self, transaction: Transaction) -> Outcome:
        """Commit; enter evictions and grants in the shadow state, and compare."""
        outcome = super().commit(transaction)
        told = [outcome.verdicts.tolist(), outcome.machine.tolist(), evicted_by(outcome)]
        known = self._outcomes.setdefault(transaction.id, told)
        if known is not told:
            self._expect_the_same_again(transaction, known, told)
            self._compare(raised=())
            return outcome
        evicted = evicted_by(outcome)
        self._strike_out_evicted(transaction, evicted)
        granted_on = self._enter(transaction, outcome)
        self._end_lost_helpers(evicted)
        self._expect_whole_gangs({part.job for part in transaction.jobs} | {j for j, _ in evicted})
        self._compare(granted_on)
        self._compare_rows(outcome.fresh)
        return outcome

    def end_tasks(self, job: Ids, task: Index, started_ms: Ids | None = None) -> int:
        """End tasks, remove them from the shadow state, and compare."""
        ended = super().end_tasks(job, task, started_ms)
        named = _named(job, task)
        if started_ms is not None and ended != sum(t in self._shadow.live[j] for j, t in named):
            named -= set(_names(self.allocations()))  # those that run are other allocations
        struck = sum(self._shadow.end(number, index) for number, index in named)
        if ended != struck:
            raise InvariantBroken(f"{struck} live tasks were ended; the store says {ended}")
        for number in set(job.tolist()) & self._specs.keys():
            if len(self._shadow.over[number]) == self._specs[number].tasks:
                self._strike_out_helpers_of(number)
        self._compare(raised=())
        return ended

    def report_exits(self, exits: Sequence[TaskExit]) -> int:
        """Report exits, remove what ended from the shadow state, and compare."""
        recorded = super().report_exits(exits)
        live = set(_names(self.allocations()))
        told = {(it.job, it.task): it for it in reversed(exits)}
        ended = [it for name, it in told.items() if self._has_lost(name, live)]
        broken = {it.job for it in ended if self._specs[it.job].minimum and not it.exit.is_success}
        if recorded != len(ended) and not broken:
            raise InvariantBroken(f"{len(ended)} live tasks exited; the store says {recorded}")
        for it in ended:
            self._shadow.end(it.job, it.task)
        for number in broken:
            self._shadow.fail_gang(number)
        for number in {it.job for it in ended}:
            if number in broken or len(self._shadow.over[number]) == self._specs[number].tasks:
                self._strike_out_helpers_of(number)
        self._compare(raised=())
        return recorded

    def _has_lost(self, name: TaskName, live: Collection[TaskName]) -> bool:
        """Return whether a task that ran runs no more."""
        job, task = name
        return name not in live and task in self._shadow.live.get(job, {})

    def register_machine(self, machine: Machines, address: str | None = None) -> int:
        """Register a machine, whose counters may rise by each change, and compare."""
        number = super().register_machine(machine, address)
        self._shadow.counters.pop(number, None)
        excess = self._shadow.used[number] - machine.capacity[0]
        self._shadow.tolerated[number] = np.asarray(np.maximum(excess, 0))
        self._compare(raised=())
        return number

    def hold_machine(self, machine: int, holder: UUID, *, lease_ms: int) -> bool:
        """Hold a machine, which may return to its state before, and compare."""
        is_held = super().hold_machine(machine, holder, lease_ms=lease_ms)
        self._shadow.counters.pop(machine, None)
        self._compare(raised=())
        return is_held

    def free_machine(self, machine: int, holder: UUID) -> bool:
        """Free a machine, which may return to its state before, and compare."""
        is_free = super().free_machine(machine, holder)
        self._shadow.counters.pop(machine, None)
        self._compare(raised=())
        return is_free

    def leave_machine(self, machine: int, holder: UUID) -> int:
        """Leave a machine, and remove its tasks, with their gangs."""
        lost = super().leave_machine(machine, holder)
        self._shadow.counters.pop(machine, None)
        self._strike_out_ended_by_force(lost, {machine})
        return lost

    def expire_machines(self) -> list[int]:
        """Let leases run out, and check that the counters of the machines taken down rise."""
        expired = super().expire_machines()
        self._compare(set(expired))
        return expired

    def set_state(self, machine: Ids, state: MachineState) -> int:
        """Change states, and check that the counters of the changed machines rise."""
        changed = super().set_state(machine, state)
        kept = (state, MachineState.GONE)
        raised = {m for m in machine.tolist() if self._shadow.states[m] not in kept}
        if changed != len(raised):
            raise InvariantBroken(f"{len(raised)} states change; the store says {changed}")
        self._compare(raised)
        return changed

    def resize(self, machine: int, capacity: Amounts, *, notice_ms: int) -> None:
        """Resize, and record what may be used above the new capacity."""
        super().resize(machine, capacity, notice_ms=notice_ms)
        excess = self._shadow.used[machine] - capacity
        self._shadow.tolerated[machine] = np.asarray(np.maximum(excess, 0))
        self._compare({machine})

    def lose_tasks(self, machine: Ids) -> int:
        """Evict tasks, and remove those on machines that are down or gone, with their gangs."""
        lost = super().lose_tasks(machine)
        dead = (MachineState.DOWN, MachineState.GONE)
        on = {m for m in machine.tolist() if self._shadow.states.get(m) in dead}
        self._strike_out_ended_by_force(lost, on)
        if left := [
            f"task {task} of job {job}"
            for job, tasks in self._shadow.live.items()
            for task, held in tasks.items()
            if held.machine in on
        ]:
            raise InvariantBroken(f"on dead machines {sorted(on)} there is still {left}")
        return lost

    def enforce_notices(self) -> int:
        """Evict tasks above capacity, and remove them from the shadow state."""
        ended = super().enforce_notices()
        self._strike_out_ended_by_force(ended, self._shadow.tolerated.keys())
        return ended

    def cancel(self, job: int) -> bool:
        """Cancel a job, remove its running tasks, and compare."""
        cancelled = super().cancel(job)
        running = list(self._shadow.live[job])
        if running and not cancelled:
            raise InvariantBroken(f"job {job} has {len(running)} live tasks and was not cancelled")
        for task in running:
            self._shadow.end(job, task)
        if cancelled:
            self._strike_out_helpers_of(job)
        self._compare(raised=())
        return cancelled

    def audit(self) -> None:
        """Compare all rows and all allocations with the store, and run the store's own check."""
        self._compare(raised=())
        self._compare_rows(self.snapshot().rows)
        live = self.allocations()
        told = sorted(
            (*name, machine)
            for name, machine in zip(_names(live), live.machine.tolist(), strict=True)
        )
        kept = sorted(
            (job, task, held.machine)
            for job, tasks in self._shadow.live.items()
            for task, held in tasks.items()
        )
        if told != kept:
            differ = sorted(set(told) ^ set(kept)) or "one of them twice"
            raise InvariantBroken(f"allocations (job, task, machine) differ: {differ}")
        if violations := self.verify():
            raise InvariantBroken("the store accuses itself", story=[str(v) for v in violations])

    def _enter(self, transaction: Transaction, outcome: Outcome) -> set[int]:
        claims = transaction.claims
        demand = claims.shapes[claims.shape_on(outcome.machine)]
        granted_on = set()
        for part in transaction.jobs:
            for claim in range(part.claims.start, part.claims.stop):
                machine, task = int(outcome.machine[claim]), int(claims.task[claim])
                if outcome.accepted[claim]:
                    self._shadow.grant(part.job, task, machine, demand[claim])
                    granted_on.add(machine)
                else:
                    verdict = Verdict(int(outcome.verdicts[claim])).name
                    line = f"refused to task {task} of job {part.job}: {verdict}"
                    self._shadow.tell(machine, line)
        return granted_on

    def _strike_out_evicted(self, transaction: Transaction, evicted: list[TaskName]) -> None:
        mine = {part.job for part in transaction.jobs}
        highest = max(
            (self._specs[job].precedence for job in mine if job in self._specs), default=None
        )
        for job, task in evicted:
            if not self._shadow.unplace(job, task, "evicted"):
                raise InvariantBroken(f"task {task} of job {job} was evicted and had no place")
            if job in self._specs and job not in mine:
                spec = self._specs[job]
                least = spec.yields_to(self._gap)
                if highest is not None and highest < least:
                    raise InvariantBroken(
                        f"job {job} of precedence {spec.precedence}, which yields to {least}, was"
                        f" evicted by {highest}"
                    )

    def _strike_out_ended_by_force(self, told: int, on: Collection[int]) -> None:
        """Remove tasks that lost their places; fail if neither on these machines nor in gangs."""
        live = set(_names(self.allocations()))
        ended = [
            (job, task, held.machine)
            for job, tasks in self._shadow.live.items()
            for task, held in tasks.items()
            if (job, task) not in live
        ]
        if told != len(ended):
            raise InvariantBroken(f"{len(ended)} tasks lost their places; the store says {told}")
        for job, task, machine in ended:
            if machine not in on and job in self._specs and not self._specs[job].minimum:
                self._shadow.fail(machine, f"task {task} of job {job} was ended without cause")
            self._shadow.unplace(job, task, "ended by force")
        self._end_lost_helpers([(job, task) for job, task, _ in ended])
        self._expect_whole_gangs({job for job, _, _ in ended})
        self._compare(raised=())

    def _strike_out_helpers_of(self, job: int) -> None:
        """Remove the helpers of a job that has ended."""
        for helpers, parent in self._parents.items():
            if parent == job:
                for task in list(self._shadow.live[helpers]):
                    self._shadow.end(helpers, task)

    def _end_lost_helpers(self, lost: Iterable[TaskName]) -> None:
        """Enter that helpers which have lost their places are over: no claim may place them."""
        for job, task in lost:
            if job in self._parents and task not in self._shadow.live[job]:
                self._shadow.over[job].add(task)

    def _expect_the_same_again(
        self, transaction: Transaction, known: list[list[Any]], told: list[list[Any]]
    ) -> None:
        for then, now in zip(known, told, strict=True):
            if then != now:
                raise InvariantBroken(
                    f"transaction {transaction.id} was answered {then} and then {now}"
                )

    def _expect_whole_gangs(self, jobs: Iterable[int]) -> None:
        for job in jobs:
            minimum = self._specs[job].minimum if job in self._specs else 0
            placed = self._shadow.placed(job)
            if self._shadow.live[job] and placed < minimum:
                raise InvariantBroken(
                    f"job {job} is a gang of at least {minimum} and has {placed} tasks placed"
                )

    def _compare(self, raised: Collection[int]) -> None:
        """Compare changed rows, and the rise of their counters, with the shadow state."""
        changes = self._store.changes_since(self._mark)
        self._mark = changes.mark
        rows, shadow = changes.rows, self._shadow
        self._compare_rows(rows)
        counters = zip(rows.sequence.tolist(), rows.revision.tolist(), strict=True)
        for machine, (sequence, revision) in zip(rows.id.tolist(), counters, strict=True):
            sequence_before, revision_before = shadow.counters.get(machine, (sequence, revision))
            rise = sequence - sequence_before
            if machine in shadow.counters and rise != (machine in raised):
                shadow.fail(machine, f"sequence rose by {rise} to {sequence}")
            if revision < revision_before + rise:
                shadow.fail(machine, f"revision went from {revision_before} to {revision}")
            shadow.counters[machine] = sequence, revision
        shadow.states.update(zip(rows.id.tolist(), rows.state.tolist(), strict=True))
        if missed := set(raised) - set(rows.id.tolist()):
            shadow.fail(min(missed), "was granted on or changed, and no delta tells")

    def _compare_rows(self, rows: MachineRows) -> None:
        for at, machine in enumerate(rows.id.tolist()):
            expected = self._shadow.used[machine]
            if (expected != rows.used[at]).any():
                what = f"expected {named(expected)}, store {named(rows.used[at])}"
                self._shadow.fail(machine, f"use disagrees: {what}")
            tolerated = self._shadow.tolerated.get(machine, 0)
            if (rows.used[at] > rows.capacity[at] + tolerated).any():
                what = f"{named(rows.used[at])} of {named(rows.capacity[at])}"
                self._shadow.fail(machine, f"is oversold: {what}")


def _named(job: Ids, task: Index) -> set[TaskName]:
    return set(zip(job.tolist(), task.tolist(), strict=True))


def _names(allocations: Allocations) -> list[TaskName]:
    return list(zip(allocations.job.tolist(), allocations.task.tolist(), strict=True))
