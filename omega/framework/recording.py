"""Records a scheduler's transactions with what each was judged against, as they are answered.

Goal     Keep all that is needed to judge them again, by another rule or another version.
Promise  Commits are passed on unchanged. What a transaction was judged against follows from its
         outcome: fresh rows are read under the locks of the commit, so that races do not blur
         them. Only claims that evict, and quotas, cost further reads. Each record is judged at
         once: one that does not give the outcome that the store gave has no facts.
Source   docs/decisions/0057-replay.md.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast
from uuid import UUID

import numpy as np

from omega.cell.commit_context import NO_VICTIMS, CommitContext, Victims
from omega.cell.judge import judge
from omega.cell.quota_balances import NO_QUOTA_BALANCES, QuotaBalances
from omega.model.allocations import Allocations
from omega.model.arrays import Amounts, Ids, Index, Mask, integers
from omega.model.claims import JobSlice, Transaction
from omega.model.jobs import NEVER_YIELDS, JobSpec, LeasedJob
from omega.model.machines import MachineRows
from omega.model.occupants import Occupants
from omega.model.outcomes import Outcome, Verdict
from omega.model.quotas import BUDGETS, UNLIMITED, Budget, QuotaScope, QuotaUse, cost
from omega.store.protocols import Store
from omega.store.saved.recorded import NO_TOKEN, Against, RecordedCommit

JOBS_KEPT_MAX: Final = 10_000
"""Jobs of which is kept what their lease or a look at occupants told, the last ones."""


@dataclass
class _Known:
    """What is known of a job."""

    minimum: int
    placed: int
    spec: JobSpec | None = None
    """None of a job that was only met on a machine."""
    yields_to: int = NEVER_YIELDS


@dataclass(frozen=True)
class _Before:
    """What was read just before a commit."""

    live: Allocations | None
    """All that ran of the jobs that it may evict, or that quotas are about; None if not read."""
    quotas: Sequence[QuotaUse]


class Recording:
    """A store that passes calls on, and keeps what was committed. `store` is what to give on."""

    def __init__(
        self, store: Store, now_ms: Callable[[], int], keep: Callable[[RecordedCommit], None]
    ) -> None:
        self._store = store
        self._now_ms = now_ms
        self._keep = keep
        self._known: OrderedDict[int, _Known] = OrderedDict()
        self._unanswered: set[UUID] = set()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any method of the store
        return getattr(self._store, name)

    @property
    def store(self) -> Store:
        """The store that records."""
        return cast(Store, self)

    def lease(self, *asked: Any, **named: Any) -> list[LeasedJob]:  # noqa: ANN401 - passed on
        """Lease, and note what the leases tell."""
        return self._leased(self._store.lease(*asked, **named))

    def recall(self, *asked: Any, **named: Any) -> list[LeasedJob]:  # noqa: ANN401 - passed on
        """Recall, and note what the leases tell."""
        return self._leased(self._store.recall(*asked, **named))

    def add_helpers(self, *asked: Any, **named: Any) -> LeasedJob | None:  # noqa: ANN401 - as above
        """Make helpers, and note what their lease tells."""
        job = self._store.add_helpers(*asked, **named)
        return job and self._leased([job])[0]

    def occupants(self, machine: Ids) -> Occupants:
        """Read occupants, and note what is told of their jobs."""
        there = self._store.occupants(machine)
        for at, job in enumerate(there.distinct_job.tolist()):
            known = self._known.get(job)
            spec = None if known is None else known.spec
            self._note(
                job,
                _Known(
                    int(there.minimum[at]), int(there.placed[at]), spec, int(there.yields_to[at])
                ),
            )
        return there

    def commit(self, transaction: Transaction) -> Outcome:
        """Commit; keep the transaction with what it was judged against."""
        is_repeated = transaction.id in self._unanswered
        self._unanswered.add(transaction.id)
        before = self._read(transaction)
        outcome = self._store.commit(transaction)
        against = None
        if not is_repeated:  # the rows of a repeated answer are of a later moment
            against = self._against(transaction, outcome, before)
            if against is None and before.quotas:
                again = self._read_again(transaction, outcome, before)
                against = self._against(transaction, outcome, again)
        # Only now: if quotas could not be read again, the commit is repeated.
        self._unanswered.discard(transaction.id)
        self._keep(
            RecordedCommit(
                at_ms=self._now_ms(),
                transaction=without_tokens(transaction),
                verdicts=outcome.verdicts,
                machine=outcome.machine,
                evicted=_evicted(outcome),
                against=against,
            )
        )
        self._count(transaction, outcome)
        return outcome

    def _leased(self, jobs: list[LeasedJob]) -> list[LeasedJob]:
        for job in jobs:
            self._note(job.id, _Known(job.spec.minimum, job.placed, job.spec))
        return jobs

    def _note(self, job: int, known: _Known) -> None:
        self._known[job] = known
        self._known.move_to_end(job)
        if len(self._known) > JOBS_KEPT_MAX:
            self._known.popitem(last=False)

    def _count(self, transaction: Transaction, outcome: Outcome) -> None:
        """Note how many tasks of each job have a place after a commit."""
        for part in transaction.jobs:
            if part.job in self._known:
                granted = np.count_nonzero(outcome.accepted[part.claims])
                self._known[part.job].placed += int(granted)
        for job in outcome.evicted_job.tolist():
            if job in self._known:
                self._known[job].placed -= 1

    def _read(self, transaction: Transaction) -> _Before:
        """Read what the outcome does not tell."""
        quotas = self._store.quotas()
        jobs = set(transaction.claims.evictions.job.tolist())
        if quotas:
            jobs |= {part.job for part in transaction.jobs}
        return _Before(self._store.allocations_of(sorted(jobs)) if jobs else None, quotas)

    def _read_again(self, transaction: Transaction, outcome: Outcome, before: _Before) -> _Before:
        """Return quotas as they are after a commit, without what it has drawn."""
        drawn: dict[tuple[QuotaScope, str], Amounts] = {}
        demand = cost(transaction.claims.demand_on(outcome.machine))
        for part in transaction.jobs:
            known = self._known.get(part.job)
            granted = outcome.accepted[part.claims]
            if known is None or known.spec is None or before.live is None or not granted.any():
                continue
            asked = demand[part.claims][granted].sum(axis=0)
            asked[Budget.JOBS] = not (before.live.job == part.job).any()
            for key in _keys(known.spec):
                drawn[key] = drawn.get(key, 0) + asked
        quotas = [
            use
            if (by := drawn.get((use.quota.scope, use.quota.name))) is None
            else replace(use, left={each: left + int(by[each]) for each, left in use.left.items()})
            for use in self._store.quotas()
        ]
        return _Before(before.live, quotas)

    def _against(
        self, transaction: Transaction, outcome: Outcome, before: _Before
    ) -> Against | None:
        """Return what a transaction was judged against; None if it is not known exactly."""
        known = [self._known.get(part.job) for part in transaction.jobs]
        specs = [it.spec for it in known if it is not None and it.spec is not None]
        if len(specs) < len(known):
            return None
        held = _held(transaction, outcome)
        victims = self._victims(transaction, held, before.live)
        balances = self._balances(transaction, victims, before)
        if victims is None or balances is None:
            return None
        context = CommitContext(
            lease_held=held,
            minimum=integers([spec.minimum for spec in specs]),
            placed=integers([it.placed for it in known if it is not None]),
            precedence=integers([spec.precedence for spec in specs]),
            unplaced=_unplaced(transaction, outcome, victims),
            victims=victims,
            quota_balances=balances,
        )
        rows = _rows_before(transaction, outcome, victims)
        if rows is None:
            return None
        against = Against(with_victims(rows, victims), context)
        again = judge(against.rows, transaction, context)
        return against if _is_the_same(again, outcome) else None

    def _victims(
        self, transaction: Transaction, held: Mask, live: Allocations | None
    ) -> Victims | None:
        """Return what ran of the jobs that evictions name; None if one of them is not known."""
        victim_jobs = sorted(set(transaction.claims.evictions.job.tolist()))
        if not victim_jobs:
            return NO_VICTIMS
        facts = [self._known.get(job) for job in victim_jobs]
        if live is None or any(it is None for it in facts):
            return None
        sure = [it for it in facts if it is not None]
        mine = np.flatnonzero(np.isin(live.job, victim_jobs))
        order = mine[np.lexsort((live.task[mine], live.job[mine]))]
        presented = {
            part.job for part, is_held in zip(transaction.jobs, held, strict=True) if is_held
        }
        return Victims(
            job=live.job[order],
            task=live.task[order],
            machine=live.machine[order],
            amounts=live.amounts[order],
            distinct_job=integers(victim_jobs),
            yields_to=integers([it.yields_to for it in sure]),
            minimum=integers([it.minimum for it in sure]),
            placed=integers([it.placed for it in sure]),
            own=np.array(
                [
                    [part.job in presented and job in presented for job in victim_jobs]
                    for part in transaction.jobs
                ],
                dtype=np.bool_,
            ).reshape(len(transaction.jobs), len(victim_jobs)),
        )

    def _balances(
        self, transaction: Transaction, victims: Victims | None, before: _Before
    ) -> QuotaBalances | None:
        """Return what was left of quotas; None if it is not known on which a job draws."""
        if not before.quotas:
            return NO_QUOTA_BALANCES
        if victims is None or before.live is None:
            return None
        specs: dict[int, JobSpec] = {}
        for job in {part.job for part in transaction.jobs} | set(victims.distinct_job.tolist()):
            known = self._known.get(job)
            if known is None or known.spec is None:
                return None
            specs[job] = known.spec
        whose = {key for spec in specs.values() for key in _keys(spec)}
        quotas = [use for use in before.quotas if (use.quota.scope, use.quota.name) in whose]
        drawn_by = {job: rows for job, spec in specs.items() if (rows := _drawn_on(spec, quotas))}
        left = [[use.left.get(each, UNLIMITED) for each in Budget] for use in quotas]
        running = {job: int(np.count_nonzero(before.live.job == job)) for job in drawn_by}
        return QuotaBalances(integers(left).reshape(-1, BUDGETS), drawn_by, running)


def without_tokens(transaction: Transaction) -> Transaction:
    """Return a transaction that presents no lease."""
    jobs = tuple(
        JobSlice(part.job, NO_TOKEN, part.grants_min, part.claims) for part in transaction.jobs
    )
    return replace(transaction, jobs=jobs)


def with_victims(rows: MachineRows, victims: Victims) -> MachineRows:
    """Return rows that have the machines of all victims, too; of further ones only what they hold.

    No claim names these: what is on them decides nothing.
    """
    more = np.setdiff1d(victims.machine, rows.id)
    if not len(more):
        return rows
    held = np.zeros((len(more), rows.capacity.shape[1]), dtype=np.int64)
    at = np.searchsorted(more, victims.machine)
    there = np.isin(victims.machine, more)
    np.add.at(held, at[there], victims.amounts[there])
    order = np.argsort(np.concatenate([rows.id, more]), kind="stable")
    none = np.zeros(len(more), dtype=np.int64)
    return MachineRows(
        np.concatenate([rows.id, more])[order],
        np.concatenate([rows.capacity, held])[order],
        np.concatenate([rows.used, held])[order],
        np.concatenate([rows.sequence, none])[order],
        np.concatenate([rows.revision, none])[order],
        np.concatenate([rows.state, none.astype(np.int8)])[order],
    )


def _held(transaction: Transaction, outcome: Outcome) -> Mask:
    """Return which leases were held: if one was not, all claims of the job say so."""
    return np.array(
        [
            not (outcome.verdicts[part.claims] == Verdict.LEASE_LOST).any()
            for part in transaction.jobs
        ],
        dtype=np.bool_,
    )


def _unplaced(transaction: Transaction, outcome: Outcome, victims: Victims) -> Mask:
    """Return, for each claim, whether its task had no place: the verdicts tell.

    Of a task that is claimed twice the second claim says that it has a place, and the first one
    that it had none. A task that moves had one.
    """
    names = list(zip(_claimants(transaction), transaction.claims.task.tolist(), strict=True))
    placed_already = outcome.verdicts == Verdict.ALREADY_PLACED
    had_none = {
        name for name, is_placed in zip(names, placed_already, strict=True) if not is_placed
    }
    ran = set(zip(victims.job.tolist(), victims.task.tolist(), strict=True))
    return np.array([name in had_none and name not in ran for name in names], dtype=np.bool_)


def _rows_before(
    transaction: Transaction, outcome: Outcome, victims: Victims
) -> MachineRows | None:
    """Return the rows that an outcome brings, as they were before; None if that is impossible."""
    fresh, accepted = outcome.fresh, outcome.accepted
    demand = transaction.claims.demand_on(outcome.machine)[accepted]
    lost = _positions(victims, _evicted(outcome))
    if lost is None:
        return None
    used = fresh.used.copy()
    np.subtract.at(used, fresh.where(outcome.machine[accepted]), demand)
    np.add.at(used, fresh.where(victims.machine[lost]), victims.amounts[lost])
    granted = np.isin(fresh.id, outcome.machine[accepted])
    changed = granted | np.isin(fresh.id, victims.machine[lost])
    sequence, revision = fresh.sequence - granted, fresh.revision - changed
    if (used < 0).any() or (sequence < 0).any() or (revision < 0).any():
        return None
    return MachineRows(fresh.id, fresh.capacity, used, sequence, revision, fresh.state)


def _positions(victims: Victims, evicted: Sequence[tuple[int, int]]) -> Index | None:
    """Return where the evicted tasks are among the victims; None if one is not."""
    names = zip(victims.job.tolist(), victims.task.tolist(), strict=True)
    at = {name: place for place, name in enumerate(names)}
    if not at.keys() >= set(evicted):
        return None
    return np.array([at[name] for name in evicted], dtype=np.intp)


def _claimants(transaction: Transaction) -> list[int]:
    return [
        part.job for part in transaction.jobs for _ in range(part.claims.start, part.claims.stop)
    ]


def _evicted(outcome: Outcome) -> tuple[tuple[int, int], ...]:
    return tuple(zip(outcome.evicted_job.tolist(), outcome.evicted_task.tolist(), strict=True))


def _keys(spec: JobSpec) -> tuple[tuple[QuotaScope, str], ...]:
    return (QuotaScope.TENANT, spec.tenant), (QuotaScope.SCHEDULER, spec.scheduler)


def _drawn_on(spec: JobSpec, quotas: Sequence[QuotaUse]) -> tuple[int, ...]:
    whose = _keys(spec)
    return tuple(
        number for number, use in enumerate(quotas) if (use.quota.scope, use.quota.name) in whose
    )


def _is_the_same(again: Outcome, outcome: Outcome) -> bool:
    """Return whether two outcomes are equal, rows included."""
    fresh, told = again.fresh, outcome.fresh
    at = fresh.where(told.id)
    return (
        np.array_equal(again.verdicts, outcome.verdicts)
        and np.array_equal(again.machine, outcome.machine)
        and _evicted(again) == _evicted(outcome)
        and bool((at >= 0).all())
        and np.array_equal(fresh.used[at], told.used)
        and np.array_equal(fresh.sequence[at], told.sequence)
        and np.array_equal(fresh.revision[at], told.revision)
    )
