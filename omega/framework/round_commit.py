"""One round: planned on one view, committed, and refused claims tried again.

Goal     Keep all of a round on one page, apart from the scheduler's plan and from the driver.
Promise  No I/O, no clock: the driver supplies them. A running job is evicted only for a claim that
         is granted.
Source   Gavel (OSDI 2020), section 5; docs/decisions/0028-rounds-on-the-shared-cell.md.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from omega.cell.view import View
from omega.framework.attempt import PlanningContext
from omega.framework.effects import Effects, committed, refreshed, thought
from omega.framework.job_attempt import AttemptEnd, JobResult, with_grants, without
from omega.framework.rng import rng_for
from omega.framework.rounds import JobClaims, RoundPlan, Rounds, RoundState
from omega.limits import Limits
from omega.model.claims import Claims, Transaction
from omega.model.jobs import LeasedJob
from omega.model.outcomes import ACCEPTED, Outcome, Verdict
from omega.placement.diagnosis import Diagnosis, diagnose

TRIES_MAX = 3
"""How many tries one round has; what is refused after that waits for the next round."""


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
    return [progress.result(job.id, view) for job in (*state.waiting, *state.running)]


class _RoundProgress:
    """The state of each job while a round is committed, transaction by transaction."""

    def __init__(self, jobs: Sequence[LeasedJob]) -> None:
        self.jobs = {job.id: job for job in jobs}
        self._tries = dict.fromkeys(self.jobs, 0)
        self._granted = dict.fromkeys(self.jobs, 0)
        self._refusals: dict[int, set[Verdict]] = {job_id: set() for job_id in self.jobs}

    def transactions(
        self, context: PlanningContext, planned: Sequence[JobClaims]
    ) -> Iterator[Transaction]:
        """Yield the claims in order, in transactions as large as the limits allow.

        A transaction also presents the leases of the jobs that its claims evict.
        """
        for together in _divided(planned, context.limits):
            claimants = {job_claims.job.id for job_claims in together}
            victims = sorted(set().union(*map(_victims, together)) - claimants)
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
        for job_id in np.unique(outcome.evicted_job).tolist():
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

    def may_try_again(self, job_id: int) -> bool:
        """Return whether a job has unplaced tasks, was refused, and another try could help.

        After a lost lease or a refusal by a quota a new try in this round is useless.
        """
        refusals = self._refusals[job_id]
        hopeless = {Verdict.LEASE_LOST, Verdict.QUOTA} & refusals
        return bool(refusals) and not hopeless and bool(len(self.jobs[job_id].unplaced))

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
        return JobResult(
            job=job,
            placed=self._granted[job_id],
            tries=self._tries[job_id],
            tasks_decided=self._granted[job_id] + len(job.unplaced),
            ending=ending,
            diagnosis=_first_diagnosis(view, job) if ending is AttemptEnd.NO_ROOM else None,
        )


def _first_diagnosis(view: View, job: LeasedJob) -> Diagnosis | None:
    """Diagnose a job on its first lease; None later, because then it is known to fit the cell."""
    return diagnose(view, job) if job.waited_ms is not None else None


def _divided(planned: Sequence[JobClaims], limits: Limits) -> Iterator[list[JobClaims]]:
    """Yield the claims in order, divided by transaction; leave out jobs too large for one."""
    together: list[JobClaims] = []
    jobs: set[int] = set()
    claims = 0
    for job_claims in planned:
        named = {job_claims.job.id} | _victims(job_claims)
        if (
            len(named) > limits.jobs_per_transaction_max
            or len(job_claims.claims) > limits.claims_per_transaction_max
        ):
            continue
        claims += len(job_claims.claims)
        is_full = len(jobs | named) > limits.jobs_per_transaction_max
        if together and (is_full or claims > limits.claims_per_transaction_max):
            yield together
            together, jobs, claims = [], set(), len(job_claims.claims)
        together.append(job_claims)
        jobs |= named
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
