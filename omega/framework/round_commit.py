"""One round: planned on one view, committed at once, tried again where others refused.

Goal     Have all of a round on one page, apart from whoever plans it and whoever drives it.
Promise  No I/O, no clock: whoever drives it supplies them. A job loses its places only to a claim
         that is granted.
Source   Gavel (OSDI 2020), section 5; docs/decisions/0028-rounds-on-the-shared-cell.md.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from omega.cell.view import View
from omega.framework.attempt import Replica
from omega.framework.effects import Steps, committed, refreshed, thought
from omega.framework.progress import Attempted, Ending, with_grants, without
from omega.framework.rng import rng_for
from omega.framework.rounds import JobClaims, RoundPlan, Rounds, RoundState
from omega.limits import Limits
from omega.model.claims import Claims, Transaction
from omega.model.jobs import LeasedJob
from omega.model.outcomes import ACCEPTED, Outcome, Verdict
from omega.placement.diagnosis import Diagnosis, diagnose

TRIES_MAX = 3
"""Commits of what others refused, in one round; after that it waits for the next."""


def plan_round(
    replica: Replica, rounds: Rounds, state: RoundState
) -> Steps[tuple[View, RoundPlan]]:
    """Bring the view up to date and plan on it."""
    view = yield from refreshed()
    replica.set_signals(view, state.waiting)
    rng = rng_for(replica.run_seed, state.number, replica.name)
    plan = rounds.plan(view, state, rng)
    yield from thought(replica.decision_time.of(len(state.waiting) + len(state.running)))
    return view, plan


def commit_round(
    replica: Replica, rounds: Rounds, state: RoundState, view: View, plan: RoundPlan
) -> Steps[list[Attempted]]:
    """Commit a plan, and try again what others refused; say what became of each job."""
    progress = _RoundProgress([*state.waiting, *state.running])
    rng = rng_for(replica.run_seed, state.number, replica.name, 1)
    claims_by_job = plan.claims
    for tries in range(1, TRIES_MAX + 1):
        for transaction in progress.transactions(replica, claims_by_job):
            outcome = yield from committed(transaction)
            view.patch(outcome.fresh)
            progress.learn(transaction, outcome)
        refused = [
            progress.jobs[s.job.id] for s in claims_by_job if progress.may_try_again(s.job.id)
        ]
        if not refused or tries == TRIES_MAX:
            break
        view = yield from refreshed()
        replica.set_signals(view, [job for job in refused if len(job.unplaced)])
        claims_by_job = rounds.again(view, refused, rng)
    return [progress.attempted(job.id, view) for job in (*state.waiting, *state.running)]


class _RoundProgress:
    """How each job stands as a round is committed, transaction by transaction."""

    def __init__(self, jobs: Sequence[LeasedJob]) -> None:
        self.jobs = {job.id: job for job in jobs}
        self._tries = dict.fromkeys(self.jobs, 0)
        self._granted = dict.fromkeys(self.jobs, 0)
        self._refusals: dict[int, set[Verdict]] = {job: set() for job in self.jobs}

    def transactions(
        self, replica: Replica, claims_by_job: Sequence[JobClaims]
    ) -> Iterator[Transaction]:
        """Put claims into as few transactions as the limits allow, in order.

        Each also presents the leases of those that it evicts.
        """
        for together in _divided(claims_by_job, replica.limits):
            claimants = {job_claims.job.id for job_claims in together}
            victims = sorted(set().union(*map(_victims, together)) - claimants)
            parts = [(s.job.id, s.job.token, s.minimum, s.claims) for s in together]
            parts += [(job, self.jobs[job].token, 0, Claims.none()) for job in victims]
            yield Transaction.of(
                parts,
                id=replica.new_id(),
                scheduler=replica.scheduler.kind,
                replica=replica.name,
                rule=replica.scheduler.rule,
            )

    def learn(self, transaction: Transaction, outcome: Outcome) -> None:
        """Take in what a transaction came to: first who fell, then who was placed."""
        for job in np.unique(outcome.evicted_job).tolist():
            its = outcome.evicted_task[outcome.evicted_job == job]
            self.jobs[job] = without(self.jobs[job], its)
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

    def may_try_again(self, job: int) -> bool:
        """Say whether a job was refused something for what others did, and still waits for it."""
        refusals = self._refusals[job]
        hopeless = {Verdict.LEASE_LOST, Verdict.QUOTA} & refusals
        return bool(refusals) and not hopeless and bool(len(self.jobs[job].unplaced))

    def attempted(self, job: int, view: View) -> Attempted:
        """Sum up what the round was for a job."""
        now, refusals = self.jobs[job], self._refusals[job]
        if Verdict.LEASE_LOST in refusals:
            ending = Ending.LEASE_LOST
        elif not len(now.unplaced):
            ending = Ending.DONE
        elif Verdict.QUOTA in refusals:
            ending = Ending.OVER_QUOTA
        else:
            ending = Ending.CONFLICTS if refusals else Ending.NO_ROOM
        return Attempted(
            now,
            self._granted[job],
            self._tries[job],
            self._granted[job] + len(now.unplaced),
            ending,
            _first_diagnosis(view, now) if ending is Ending.NO_ROOM else None,
        )


def _first_diagnosis(view: View, job: LeasedJob) -> Diagnosis | None:
    """Say why a job that is seen for the first time finds no room: later it is known to fit."""
    return diagnose(view, job) if job.waited_ms is not None else None


def _divided(claims_by_job: Sequence[JobClaims], limits: Limits) -> Iterator[list[JobClaims]]:
    """Divide claims, in order; a job whose claims fit no transaction is left out."""
    together: list[JobClaims] = []
    jobs: set[int] = set()
    claims = 0
    for job_claims in claims_by_job:
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
    """Return some of a transaction's claims, without what they evict."""
    return Claims(
        claims.task[which],
        claims.machine[which],
        claims.seen[which],
        claims.shape[which],
        claims.shapes,
    )
