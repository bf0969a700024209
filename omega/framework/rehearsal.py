"""A rehearsal: a scheduler's whole attempt at a job that is not submitted, with nothing written.

Goal     Show where a job would go before it is submitted, by the code that would place it.
Promise  The loop, the scheduler and the rule are those of live processes. Only what a reader may
         read is read, no row is locked and none is changed: claims are judged by
         `omega.cell.judge` on the rows as they were read.
Source   docs/decisions/0053-plans-before-submission.md.
"""

from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import numpy as np

from omega.cell.commit_context import NO_VICTIMS, CommitContext, Victims
from omega.cell.judge import judge
from omega.cell.quota_balances import QuotaBalances
from omega.cell.view import View
from omega.errors import BadInput
from omega.framework.attempt import PlanningContext, attempt
from omega.framework.effects import Call, Commit, Effect, Refresh, drive
from omega.framework.job_attempt import JobResult
from omega.framework.scheduler import Scheduler
from omega.model.arrays import Index, integers
from omega.model.claims import Claims, Evictions, Transaction
from omega.model.jobs import JobSpec, LeasedJob
from omega.model.machines import MachineRows, Snapshot
from omega.model.occupants import Occupants
from omega.model.outcomes import Outcome
from omega.model.quotas import BUDGETS, UNLIMITED, Budget, QuotaScope, QuotaUse
from omega.store.protocols import ReaderStore

NO_TOKEN: Final = UUID(int=0)
NUMBER: Final = 0
"""The number of a job that has none yet; no job of a cell has it."""
REPLICA: Final = "plan"


@dataclass(frozen=True, eq=False)
class Rehearsed:
    """What an attempt came to."""

    snapshot: Snapshot
    """The cell as it was read."""
    view: View
    """The cell as it would be afterwards."""
    result: JobResult
    claims: Claims
    """Those that would be granted, on the machines where they would be; `seen` are the sequences
    of the snapshot."""
    evicted: tuple[tuple[int, int], ...]
    """Job and task of each task that would lose its place, in order."""
    running: int
    """How many of its tasks would run."""
    quotas: tuple[tuple[QuotaUse, QuotaUse], ...]
    """Those that the job draws on, as they are and as they would be."""


def rehearse(
    store: ReaderStore, scheduler: Scheduler, spec: JobSpec, *, run_seed: int
) -> Rehearsed:
    """Let a scheduler attempt a job on the cell as it is now; nothing is written.

    Raises BadInput for a kind that plans all its jobs at once.
    """
    if scheduler.rounds is not None:
        raise BadInput(
            f"{scheduler.kind} plans all its jobs at once, by rounds: of one job there is no plan",
            field="scheduler",
        )
    unplaced = np.arange(spec.tasks, dtype=np.intp)
    job = LeasedJob(id=NUMBER, token=NO_TOKEN, spec=spec, unplaced=unplaced, waited_ms=0)
    stage = _Stage(store, job)
    context = PlanningContext(
        scheduler=scheduler,
        name=REPLICA,
        run_seed=run_seed,
        new_id=lambda: NO_TOKEN,
        preempts=scheduler.preempts,
    )
    (result,) = drive(attempt(context, [job]), stage.answer)
    return stage.rehearsed(result)


class _Stage:
    """Answers the effects of one attempt from what is read, and keeps what was granted."""

    def __init__(self, store: ReaderStore, job: LeasedJob) -> None:
        self._store = store
        self._job = job
        self._snapshot = store.snapshot()
        self._rows = self._snapshot.rows
        self._quotas = store.quotas()
        self._left = integers(
            [[use.left.get(budget, UNLIMITED) for budget in Budget] for use in self._quotas]
        ).reshape(-1, BUDGETS)
        self._about: dict[int, tuple[int, int, int]] = {}
        """Of the jobs that were met: to whom they yield, their minimum, and how many are placed."""
        self._placed: set[int] = set()
        self._granted: list[Claims] = []
        self._evicted: list[tuple[int, int]] = []

    def answer(self, effect: Effect) -> object:
        """Return the answer to an effect; time does not pass."""
        match effect:
            case Refresh():
                return self._view()
            case Commit(transaction=transaction):
                return self._judge(transaction)
            case Call(make=make):
                answer = make(self._store)
                return self._met(answer) if isinstance(answer, Occupants) else answer
        return None

    def rehearsed(self, result: JobResult) -> Rehearsed:
        """Return what was granted in all tries, as one job's claims."""
        claims = Claims.of(self._granted) if self._granted else Claims.none()
        at = self._snapshot.rows.where(claims.machine)
        return Rehearsed(
            self._snapshot,
            self._view(),
            result,
            replace(claims, seen=self._snapshot.rows.sequence[at]),
            tuple(self._evicted),
            len(self._placed),
            tuple(
                (self._quotas[number], self._after(number))
                for number in self._drawn_on(self._job.spec.tenant, self._job.spec.scheduler)
            ),
        )

    def _after(self, number: int) -> QuotaUse:
        use = self._quotas[number]
        left = {budget: int(self._left[number, budget]) for budget in use.left}
        return replace(use, left=left)

    def _view(self) -> View:
        return View(replace(self._snapshot, rows=self._rows))

    def _met(self, there: Occupants) -> Occupants:
        """Note who runs somewhere; return them without those that were evicted before."""
        facts = zip(
            there.yields_to.tolist(), there.minimum.tolist(), there.placed.tolist(), strict=True
        )
        self._about.update(zip(there.distinct_job.tolist(), facts, strict=True))
        gone = set(self._evicted)
        names = zip(there.job.tolist(), there.task.tolist(), strict=True)
        return there.without(np.array([name in gone for name in names], dtype=np.bool_))

    def _judge(self, transaction: Transaction) -> Outcome:
        """Judge as a commit would, on the rows as they are after the tries before."""
        victims = self._victims(transaction.claims.evictions)
        task = transaction.claims.task.tolist()
        balances = self._balances(victims)
        context = CommitContext(
            lease_held=np.ones(1, dtype=np.bool_),
            minimum=integers([self._job.spec.minimum]),
            placed=integers([len(self._placed)]),
            precedence=integers([self._job.spec.precedence]),
            unplaced=np.array([each not in self._placed for each in task], dtype=np.bool_),
            victims=victims,
            quota_balances=balances,
        )
        outcome = judge(self._rows, transaction, context)
        self._note(transaction.claims, outcome, balances, victims)
        return outcome

    def _note(
        self, claims: Claims, outcome: Outcome, balances: QuotaBalances, victims: Victims
    ) -> None:
        granted = outcome.accepted.nonzero()[0]
        evicted = list(
            zip(outcome.evicted_job.tolist(), outcome.evicted_task.tolist(), strict=True)
        )
        names = zip(victims.job.tolist(), victims.task.tolist(), strict=True)
        gone = np.array([name in set(evicted) for name in names], dtype=np.bool_)
        demand = claims.demand_on(outcome.machine)[granted]
        after: QuotaBalances | None = balances
        for number, each in enumerate(demand):
            # What is evicted is given back with the first claim, as if each had come before all.
            some = gone if number == 0 else np.zeros_like(gone)
            assert after is not None, "the judge has granted it"
            after = after.after(NUMBER, each, victims.job[some], victims.amounts[some])
        if after is not None:
            self._left = after.left
        self._rows = _patched(self._rows, outcome.fresh)
        self._placed |= set(claims.task[granted].tolist())
        self._evicted += evicted
        if len(granted):
            self._granted.append(_granted(claims, outcome, granted))

    def _victims(self, evictions: Evictions) -> Victims:
        """Return all that runs of the jobs that are named, less what was evicted before."""
        named = sorted(set(evictions.job.tolist()))
        if not named:
            return NO_VICTIMS
        live = self._store.allocations_of(named)
        gone = set(self._evicted)
        kept = np.array(
            [
                at
                for at in np.lexsort((live.task, live.job)).tolist()
                if (int(live.job[at]), int(live.task[at])) not in gone
            ],
            dtype=np.intp,
        )
        yields_to, minimum, placed = zip(*(self._about[job] for job in named), strict=True)
        lost = [sum(job == other for other, _ in gone) for job in named]
        return Victims(
            job=live.job[kept],
            task=live.task[kept],
            machine=live.machine[kept],
            amounts=live.amounts[kept],
            distinct_job=integers(named),
            yields_to=integers(yields_to),
            minimum=integers(minimum),
            placed=integers(placed) - integers(lost),
            own=np.zeros((1, len(named)), dtype=np.bool_),
        )

    def _balances(self, victims: Victims) -> QuotaBalances:
        """Return what is left of the quotas that the job and its victims draw on."""
        spec = self._job.spec
        drawn_by = {NUMBER: self._drawn_on(spec.tenant, spec.scheduler)}
        running = {NUMBER: len(self._placed)}
        for job in victims.distinct_job.tolist() if self._quotas else ():
            status = self._store.job(job)
            if status is not None:
                drawn_by[job] = self._drawn_on(status.tenant, status.scheduler)
                running[job] = int((victims.job == job).sum())
        charged = {job: rows for job, rows in drawn_by.items() if rows}
        return QuotaBalances(self._left.copy(), charged, running)

    def _drawn_on(self, tenant: str, scheduler: str) -> tuple[int, ...]:
        whose = (QuotaScope.TENANT, tenant), (QuotaScope.SCHEDULER, scheduler)
        return tuple(
            number
            for number, use in enumerate(self._quotas)
            if (use.quota.scope, use.quota.name) in whose
        )


def _patched(rows: MachineRows, fresh: MachineRows) -> MachineRows:
    """Return the rows with those of the fresh ones in their places."""
    at = rows.where(fresh.id)
    used, sequence, revision = rows.used.copy(), rows.sequence.copy(), rows.revision.copy()
    used[at], sequence[at], revision[at] = fresh.used, fresh.sequence, fresh.revision
    return MachineRows(rows.id, rows.capacity, used, sequence, revision, rows.state)


def _granted(claims: Claims, outcome: Outcome, granted: Index) -> Claims:
    """Return the granted claims, each on the machine where it landed, with its evictions."""
    position = np.full(len(claims), -1, dtype=np.intp)
    position[granted] = np.arange(len(granted))
    named = claims.evictions
    # A claim evicts only on its own machine.
    kept = outcome.accepted[named.claim] & (outcome.machine == claims.machine)[named.claim]
    return Claims(
        task=claims.task[granted],
        machine=outcome.machine[granted],
        seen=claims.seen_on(outcome.machine)[granted],
        shape=claims.shape_on(outcome.machine)[granted],
        shapes=claims.shapes,
        evictions=Evictions(position[named.claim[kept]], named.job[kept], named.task[kept]),
    )
