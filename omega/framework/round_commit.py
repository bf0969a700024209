"""One round: planned on one view, committed, and refused claims tried again.

Goal     Keep all of a round on one page, apart from the scheduler's plan and from the driver.
Promise  No I/O, no clock: the driver supplies them. A running job is evicted only for a claim that
         is granted. Tasks of other kinds are evicted after all that the round planned is committed.
Source   Gavel (OSDI 2020), section 5; docs/decisions/0028-rounds-on-the-shared-cell.md,
         0042-rounds-make-way.md.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from omega.cell.view import View
from omega.framework.attempt import PlanningContext
from omega.framework.effects import Effects, committed, refreshed, thought
from omega.framework.job_attempt import (
    AttemptEnd,
    JobResult,
    not_enough_yields,
    with_grants,
    without,
)
from omega.framework.rng import rng_for
from omega.framework.round_evictions import claims_that_evict
from omega.framework.rounds import JobClaims, RoundPlan, Rounds, RoundState
from omega.limits import Limits
from omega.model.claims import Claims, Transaction
from omega.model.jobs import JobSpec, LeasedJob
from omega.model.outcomes import ACCEPTED, Outcome, Verdict
from omega.placement.diagnosis import Diagnosis, diagnose

TRIES_MAX = 3
"""How many tries one round has; what is refused after that waits for the next round."""
HOPELESS = frozenset({Verdict.LEASE_LOST, Verdict.QUOTA})
"""Refusals after which another try in the same round is useless."""


def plan_round(
    context: PlanningContext, rounds: Rounds, state: RoundState
) -> Effects[tuple[View, RoundPlan]]:
    """Bring the view up to date and plan on it; return the view and the plan."""
    view = yield from refreshed()
    context.set_signals(view, state.waiting)
    rng = rng_for(context.run_seed, state.number, context.name)
    plan = rounds.plan(view, state, rng)
    yield from thought(context.decision_time.of(len(state.waiting) + len(state.running)))
    return view, plan


def commit_round(
    context: PlanningContext, rounds: Rounds, state: RoundState, view: View, plan: RoundPlan
) -> Effects[list[JobResult]]:
    """Commit a plan, and try refused claims again; return the result for each job of the state."""
    progress = _RoundProgress([*state.waiting, *state.running])
    rng = rng_for(context.run_seed, state.number, context.name, 1)
    planned = plan.claims
    for tries in range(1, TRIES_MAX + 1):
        for transaction in progress.transactions(context, planned):
            outcome = yield from committed(transaction)
            view.patch(outcome.fresh)
            progress.record_outcome(transaction, outcome)
        refused = [
            progress.jobs[each.job.id] for each in planned if progress.may_try_again(each.job.id)
        ]
        if not refused or tries == TRIES_MAX:
            break
        view = yield from refreshed()
        context.set_signals(view, [job for job in refused if len(job.unplaced)])
        planned = rounds.again(view, refused, rng)
    if context.preempts:
        view = yield from _make_way(context, progress, view, plan.wanting, rng)
    return [progress.result(job.id, view) for job in (*state.waiting, *state.running)]


def _make_way(
    context: PlanningContext,
    progress: "_RoundProgress",
    view: View,
    wanting: Sequence[LeasedJob],
    rng: np.random.Generator,
) -> Effects[View]:
    """Have tasks of other kinds evicted for jobs that found no room; return the view after it."""
    for _ in range(TRIES_MAX):
        jobs = progress.still_unplaced(wanting)
        if not jobs:
            return view
        planned = yield from claims_that_evict(context, view, jobs, rng, progress.looked_at)
        for transaction in progress.transactions(context, planned):
            outcome = yield from committed(transaction)
            view.patch(outcome.fresh)
            progress.record_outcome(transaction, outcome)
        if not any(progress.may_try_again(each.job.id) for each in planned):
            return view
        view = yield from refreshed()
    return view


class _RoundProgress:
    """The state of each job while a round is committed, transaction by transaction."""

    def __init__(self, jobs: Sequence[LeasedJob]) -> None:
        self.jobs = {job.id: job for job in jobs}
        self._tries = dict.fromkeys(self.jobs, 0)
        self._granted = dict.fromkeys(self.jobs, 0)
        self._refusals: dict[int, set[Verdict]] = {job_id: set() for job_id in self.jobs}
        self.looked_at: dict[int, tuple[int, JobSpec]] = {}
        """By job, on how many machines victims were looked for, and what was to be placed."""

    def transactions(
        self, context: PlanningContext, planned: Sequence[JobClaims]
    ) -> Iterator[Transaction]:
        """Yield the claims in order, in transactions as large as the limits allow.

        A transaction also presents the leases of this round's jobs that its claims evict.
        """
        for together in _divided(planned, self.jobs.keys(), context.limits):
            claimants = {job_claims.job.id for job_claims in together}
            evicted = set().union(*map(_victims, together)) & self.jobs.keys()
            victims = sorted(evicted - claimants)
            parts = [
                (each.job.id, each.job.token, each.grants_min, each.claims) for each in together
            ]
            parts += [(job_id, self.jobs[job_id].token, 0, Claims.none()) for job_id in victims]
            yield Transaction.of(
                parts,
                id=context.new_id(),
                scheduler=context.scheduler.kind,
                replica=context.name,
                rule=context.scheduler.rule,
            )

    def record_outcome(self, transaction: Transaction, outcome: Outcome) -> None:
        """Record the outcome of a transaction: first the evicted tasks, then the granted ones."""
        for job_id in set(outcome.evicted_job.tolist()) & self.jobs.keys():
            evicted = outcome.evicted_task[outcome.evicted_job == job_id]
            self.jobs[job_id] = without(self.jobs[job_id], evicted)
        for part in transaction.jobs:
            verdicts = outcome.verdicts[part.claims]
            if not len(verdicts):
                continue
            claims = _part_of(transaction.claims, part.claims)
            granted = verdicts == ACCEPTED
            job = self.jobs[part.job]
            self.jobs[part.job] = with_grants(
                job, claims, outcome.machine[part.claims], granted, claims.task[~granted]
            )
            self._tries[part.job] += 1
            self._granted[part.job] += int(np.count_nonzero(granted))
            self._refusals[part.job] = {Verdict(v) for v in verdicts[~granted].tolist()}

    def still_unplaced(self, wanting: Sequence[LeasedJob]) -> list[LeasedJob]:
        """Return the wanting jobs that have unplaced tasks, as they are now.

        Those that lost their lease, or are over their quota, are left out.
        """
        return [
            replace(self.jobs[each.id], spec=each.spec)
            for each in wanting
            if len(self.jobs[each.id].unplaced) and not HOPELESS & self._refusals[each.id]
        ]

    def may_try_again(self, job_id: int) -> bool:
        """Return whether a job has unplaced tasks, was refused, and another try could help.

        After a lost lease or a refusal by a quota a new try in this round is useless.
        """
        refusals = self._refusals[job_id]
        return bool(refusals) and not HOPELESS & refusals and bool(len(self.jobs[job_id].unplaced))

    def result(self, job_id: int, view: View) -> JobResult:
        """Return the result of the round for a job."""
        job, refusals = self.jobs[job_id], self._refusals[job_id]
        if Verdict.LEASE_LOST in refusals:
            ending = AttemptEnd.LEASE_LOST
        elif not len(job.unplaced):
            ending = AttemptEnd.DONE
        elif Verdict.QUOTA in refusals:
            ending = AttemptEnd.OVER_QUOTA
        else:
            ending = AttemptEnd.CONFLICTS if refusals else AttemptEnd.NO_ROOM
        diagnosis, looked = None, False
        if ending is AttemptEnd.NO_ROOM:
            diagnosis = _first_diagnosis(view, job)
            if diagnosis is None or not diagnosis.reason.is_permanent:
                found = self._not_enough_yields(view, job)
                diagnosis, looked = found or diagnosis, found is not None
        return JobResult(
            job=job,
            placed=self._granted[job_id],
            tries=self._tries[job_id],
            tasks_decided=self._granted[job_id] + len(job.unplaced),
            ending=ending,
            diagnosis=diagnosis,
            looked_for_victims=looked,
        )

    def _not_enough_yields(self, view: View, job: LeasedJob) -> Diagnosis | None:
        """Return why a job found no room; None if no victims were looked for, or if it is not so.

        The diagnosis is that of the job as it was to be placed.
        """
        if job.id not in self.looked_at:
            return None
        machines, spec = self.looked_at[job.id]
        found = diagnose(view, replace(job, spec=spec))
        if found is None or found.reason.is_permanent:
            return None
        return not_enough_yields(found, job, machines)


def _first_diagnosis(view: View, job: LeasedJob) -> Diagnosis | None:
    """Diagnose a job on its first lease; None later, because then it is known to fit the cell."""
    return diagnose(view, job) if job.waited_ms is not None else None


def _divided(
    planned: Sequence[JobClaims], leased: Collection[int], limits: Limits
) -> Iterator[list[JobClaims]]:
    """Yield the claims in order, divided by transaction.

    Jobs that are too large for one are left out, and so are those without a claim.

    A transaction names the jobs that claim and, of those `leased`, those that are evicted.
    """
    together: list[JobClaims] = []
    jobs: set[int] = set()
    claims = evictions = 0
    most = limits.claims_per_transaction_max
    for job_claims in planned:
        named = {job_claims.job.id} | {job for job in _victims(job_claims) if job in leased}
        size, evicts = len(job_claims.claims), len(job_claims.claims.evictions)
        is_too_large = len(named) > limits.jobs_per_transaction_max or size > most or evicts > most
        if is_too_large or not size:
            continue
        is_full = (
            len(jobs | named) > limits.jobs_per_transaction_max
            or claims + size > most
            or evictions + evicts > most
        )
        if together and is_full:
            yield together
            together, jobs, claims, evictions = [], set(), 0, 0
        together.append(job_claims)
        jobs |= named
        claims += size
        evictions += evicts
    if together:
        yield together


def _victims(job_claims: JobClaims) -> set[int]:
    return set(job_claims.claims.evictions.job.tolist())


def _part_of(claims: Claims, which: slice) -> Claims:
    """Return a slice of a transaction's claims, without alternates and evictions."""
    return Claims(
        claims.task[which],
        claims.machine[which],
        claims.seen[which],
        claims.shape[which],
        claims.shapes,
    )
