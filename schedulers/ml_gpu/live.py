"""Rounds on a live cell: who trains on which GPUs next, as claims.

Goal     Play the same rounds as the replay does, with machines, other schedulers and state saved by
         another replica.
Promise  Planned from view, memo and what runs alone: the same of these give the same plan. Who goes
         on where it is makes no claim; gangs come largest first, on the fewest machines, and of
         as few on those of one rack.
Source   Gavel (OSDI 2020), section 5; docs/papers/gavel.md, docs/decisions/0028.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from omega.cell.view import View
from omega.framework.rounds import JobClaims, RoundPlan, Rounds, RoundState
from omega.model.allocations import Allocations
from omega.model.arrays import Index, integers
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.model.round_summary import RoundSummary
from omega.placement.groups import place_groups
from omega.placement.preemption import add_evictions
from schedulers.ml_gpu.cluster import CONSOLIDATED, Cluster, goes_by_rounds
from schedulers.ml_gpu.idle_gangs import Place, in_place_of_idle
from schedulers.ml_gpu.learning import is_news
from schedulers.ml_gpu.policies.named import Policy
from schedulers.ml_gpu.precedence import outranks_promised, share_by_precedence
from schedulers.ml_gpu.problem import NOWHERE, Problem
from schedulers.ml_gpu.record import UNKNOWN, Record
from schedulers.ml_gpu.rounds import Ledger, LeftoverPolicy, fastest_first, select
from schedulers.ml_gpu.summary import evicted, summary_of
from schedulers.ml_gpu.throughputs import Rates, Throughputs
from schedulers.ml_gpu.training_table import TrainingTable
from schedulers.ml_gpu.weights import digest_of, job_weights, own_weights, tenant_fractions

PASSES: Final = 4
"""Times that GPUs are given out in a round: again, to others, where a gang found no room."""


@dataclass(frozen=True, kw_only=True)
class RoundsConfig:
    """How rounds are played."""

    policy: Policy
    length_ms: int
    resets_after: int = 5
    """Rounds between two solutions, at least; Gavel's are 1,920 s apart, in rounds of 360."""
    table: Throughputs | None = None
    """Rates that are known; of kinds that it does not have, all types count alike."""
    attribute: str = "gpu_model"
    """Of machines: what tells GPU types apart."""


class GpuRounds(Rounds):
    """Gavel's rounds for training jobs; other jobs of the kind are placed beside them."""

    def __init__(self, config: RoundsConfig, place: Place) -> None:
        """Play rounds so, and place by `place` what cannot be interrupted."""
        self.length_ms = config.length_ms
        self._config = config
        self._place_beside = place
        self._chosen: dict[int, tuple[Cluster, int]] = {}
        """Type for which each gang was selected in this round, for tries after conflicts."""

    def plan(self, view: View, state: RoundState, rng: np.random.Generator) -> RoundPlan:
        """Say which gangs train where next, and place the other jobs on what is free."""
        waiting = [job for job in state.waiting if not goes_by_rounds(job)]
        beside = self._beside(view, waiting, rng)
        with view.tentative():
            for job_claims in beside:
                view.assume_claims(job_claims.claims)
            fit = {each.job.id for each in beside}
            without = [job for job in waiting if job.id not in fit]
            record, table, gangs, wanting, summary = self._by_rounds(view, state, without, rng)
        claims = [*beside, *gangs]
        placed = {each.job.id: len(each.claims) for each in claims}
        short = [job for job in waiting if placed.get(job.id, 0) < len(job.unplaced)]
        recall, wants = table.ids.tolist(), [*short, *wanting]
        return RoundPlan(claims, record.memo(), recall, wanting=wants, summary=summary)

    def _by_rounds(
        self,
        view: View,
        state: RoundState,
        without: Sequence[LeasedJob],
        rng: np.random.Generator,
    ) -> tuple[Record, TrainingTable, list[JobClaims], list[LeasedJob], RoundSummary]:
        """Give GPUs to the training jobs, on what those beside them leave.

        Jobs beside them that are still `without` a place get what gangs hold that make no step.
        """
        table = TrainingTable.of(view, state, self._config.attribute)
        record = _charged(table, state, self._config)
        rate = table.rates(record, self._config.table, self.length_ms)
        if _is_due(record, rate, table, self._config, state):
            record = _promised(record, table, rate, self._config, state, rng)

        kept, gangs, failed = _given_out(view, table, rate, record.ledger, self._config, rng)
        self._chosen = {job.id: (table.cluster, type_) for job, type_, _ in gangs}
        parts = [(job, claims) for job, _, claims in gangs]
        preemptible = set(table.ids.tolist()) - kept
        claims = add_evictions(view, parts, state.allocations, preemptible)
        claims_by_job = [
            JobClaims(job, its, len(its)) for (job, _), its in zip(parts, claims, strict=True)
        ]
        claims_by_job += in_place_of_idle(
            view,
            without,
            claims_by_job,
            state.allocations,
            table.ids[table.without_rate(rate)],
            self._place_beside,
            rng,
        )
        served = kept.union(job.id for job, _ in parts)
        wanting = [
            table.cluster.only_on(type_, job) for job, type_ in failed if job.id not in served
        ]
        gone, on = evicted(claims_by_job, table.ids), table.ran_on.copy()
        on[gone] = NOWHERE
        for job, type_, _ in gangs:
            on[np.searchsorted(table.ids, job.id)] = type_
        record = replace(record, history=record.history.preempting(gone, state.number))
        age_s = record.age_s(state.began_ms)
        summary = summary_of(record, rate, table.gpus, table.gangs, on, age_s)
        return record, table, claims_by_job, wanting, summary

    def again(
        self, view: View, refused: Sequence[LeasedJob], rng: np.random.Generator
    ) -> Sequence[JobClaims]:
        """Place gangs that met others once more, on the GPUs of their type that are free."""
        claims_by_job = []
        beside = [job for job in refused if job.id not in self._chosen]
        with view.tentative():
            for job in refused:
                if job.id in self._chosen:
                    cluster, type_ = self._chosen[job.id]
                    claims = _placed(view, cluster, type_, job, rng)
                    view.assume_claims(claims)
                    if len(claims):
                        claims_by_job.append(JobClaims(job, claims, len(claims)))
            claims_by_job += self._beside(view, beside, rng)
        return claims_by_job

    def _beside(
        self, view: View, jobs: Sequence[LeasedJob], rng: np.random.Generator
    ) -> list[JobClaims]:
        """Place jobs that run to their end, on what is free now."""
        claims_by_job = []
        with view.tentative():
            for job in jobs:
                claims = self._place_beside(view, job, rng)
                view.assume_claims(claims)
                if len(claims):
                    claims_by_job.append(JobClaims(job, claims, job.lacking))
        return claims_by_job


def _charged(table: TrainingTable, state: RoundState, config: RoundsConfig) -> Record:
    """Return what was had up to now, by those that run, and learn from what they have done.

    Nothing is learnt of a job that has just changed its type: what it did on the old one is
    reported a little later, too.
    """
    record = Record.of(state.memo, table.cluster.types, config.length_ms / 2_000)
    record = record.among(table.ids, integers(state.away), state.began_ms)
    runs = np.flatnonzero(table.ran_on != NOWHERE)
    since_ms = np.maximum(table.started_ms[runs], record.charged_ms[runs])
    seconds = np.maximum(state.began_ms - since_ms, 0) / 1_000
    done, run_ms = table.progress.done, table.progress.run_ms
    steps = (done - record.done).astype(np.float64)
    ran_s = (run_ms - record.run_ms) / 1_000
    is_clear = (record.on == NOWHERE) | (record.on == table.ran_on)
    elapsed_s = np.maximum(state.began_ms - record.charged_ms, 0) / 1_000
    stayed = (table.ran_on != NOWHERE) & (table.started_ms < record.charged_ms)
    seen = np.flatnonzero((is_clear[runs] | (steps[runs] == 0)) & (ran_s[runs] > 0))
    history = (
        record.history.spared(stayed, record.round)
        .after(record.ledger.share.sum(axis=1) * elapsed_s, runs, seconds)
        .observed(runs[seen], table.ran_on[runs[seen]], steps[runs[seen]], seconds[seen])
    )
    known = record.on[runs] != UNKNOWN
    return replace(
        record.measured(ran_s[runs][known], seconds[known]),
        ledger=record.ledger.charged(runs, table.ran_on[runs], seconds),
        learnt=record.learnt.observed(
            table.kinds, table.kind, np.where(is_clear, table.ran_on, NOWHERE), steps, ran_s
        ),
        on=table.ran_on.astype(np.int64),
        charged_ms=np.full(len(table.ids), state.began_ms),
        history=history,
        round=state.number,
        done=done,
        run_ms=run_ms,
    )


def _is_due(
    record: Record, rate: Rates, table: TrainingTable, config: RoundsConfig, state: RoundState
) -> bool:
    """Say whether shares are to be promised anew: hysteresis, or every arrival would be a reset.

    Where nothing was promised to anybody, or by another policy, there is nothing to wait for. Nor
    is there where a newcomer has a higher precedence than a job that was there.
    """
    if record.reset_ms is None or not record.ledger.is_promised.any():
        return True
    if record.policy != config.policy.name:
        return True
    can_run = np.asarray(rate.any(axis=1))
    if outranks_promised(table.precedence, record.ledger.is_promised, can_run):
        return True
    changed = record.is_due or record.gpus != tuple(table.gpus.tolist())
    changed = changed or record.tenants != digest_of(state.tenants)
    is_time = state.began_ms - record.reset_ms >= config.resets_after * config.length_ms
    return is_time and (changed or is_news(rate, record.promised_by))


def _promised(
    record: Record,
    table: TrainingTable,
    rate: Rates,
    config: RoundsConfig,
    state: RoundState,
    rng: np.random.Generator,
) -> Record:
    """Ask the policy for shares, and settle what the last ones have come to."""
    share, now_ms = np.zeros_like(rate), state.began_ms
    runs = np.flatnonzero(rate.any(axis=1))
    if len(runs):
        problem = _problem(record, table, rate, runs, config.policy, state)
        precedence = table.precedence[runs]
        share[runs] = share_by_precedence(problem, precedence, config.policy.solve, rng)
    elapsed_s = 0.0 if record.reset_ms is None else (now_ms - record.reset_ms) / 1_000
    return replace(
        record,
        ledger=record.ledger.reset(table.ids, record.ledger.second, share, elapsed_s),
        gpus=tuple(table.gpus.tolist()),
        reset_ms=now_ms,
        promised_by=rate,
        policy=config.policy.name,
        tenants=digest_of(state.tenants),
        is_due=False,
    )


def _problem(
    record: Record,
    table: TrainingTable,
    rate: Rates,
    runs: Index,
    policy: Policy,
    state: RoundState,
) -> Problem:
    """State the problem of those jobs that can run somewhere.

    Between tenants as entities their parts of the cell count, and within a tenant the jobs' own
    weights. Without entities a job's weight is also its tenant's. Ages are in seconds of the nodes
    that run the jobs, as rates are: with a speed-up of 60, sixty in each second of the store.
    """
    jobs = [table.jobs[at] for at in runs.tolist()]
    rows, kind = np.unique(
        np.column_stack([rate[runs], table.gangs[runs]]), axis=0, return_inverse=True
    )
    tenants, entity = np.unique([job.spec.tenant for job in jobs], return_inverse=True)
    wanted = table.progress.wanted[runs].astype(np.float64)
    return Problem(
        types=table.cluster.types,
        gpus=table.gpus,
        table=rows[:, :-1],
        gang=rows[:, -1].astype(np.int64),
        kind=kind.ravel(),
        weight=own_weights(jobs) if policy.has_entities else job_weights(jobs, state.tenants),
        total_steps=wanted,
        remaining_steps=np.maximum(wanted - table.progress.done[runs], 1.0),
        age_s=record.age_s(state.began_ms)[runs] * record.speed_up,
        entity=entity,
        entity_weight=tenant_fractions(tenants.tolist(), state.tenants),
        entity_is_fifo=np.zeros(len(tenants), np.bool_),
        runs_on=table.on[runs],
    )


def _given_out(
    view: View,
    table: TrainingTable,
    rate: Rates,
    ledger: Ledger,
    config: RoundsConfig,
    rng: np.random.Generator,
) -> tuple[set[int], list[tuple[LeasedJob, int, Claims]], list[tuple[LeasedJob, int]]]:
    """Say who keeps its GPUs, who is to be placed where, and who found no room on which type.

    Larger gangs are placed first.
    """
    order = fastest_first(rate) if rate.size else np.arange(len(table.cluster.gpus))
    rate, gangs, left = rate.copy(), table.gangs, table.cluster.gpus.copy()
    had = ledger.received_s.sum(axis=1)
    leftovers = LeftoverPolicy.LAST if config.policy.uses_leftovers else LeftoverPolicy.NEVER
    kept: set[int] = set()
    placed: list[tuple[LeasedJob, int, Claims]] = []
    failed: list[tuple[LeasedJob, int]] = []
    with view.tentative():
        goes = np.ones(len(table.jobs), np.bool_)
        for nth in range(PASSES):
            on = select(
                ledger, rate, gangs, left, order, leftovers, had=had, precedence=table.precedence
            )
            if nth == 0:
                goes = (on == NOWHERE) | (on != table.on)
                gone = table.running.only(np.isin(table.running.job, table.ids[goes]))
                view.assume_removed(gone.machine, gone.amounts)
                stay = np.flatnonzero(~goes)
                kept = set(table.ids[stay].tolist())
                np.subtract.at(left, on[stay], gangs[stay])
                rate[stay] = 0
                on[stay] = NOWHERE
            new = np.flatnonzero(on != NOWHERE)
            before = len(failed)
            for at in new[np.argsort(-gangs[new], kind="stable")].tolist():
                job, type_ = table.jobs[at], int(on[at])
                if type_ == table.on[at] and _put_back(view, table.running, job):
                    kept.add(job.id)
                elif len(claims := _placed(view, table.cluster, type_, job, rng)):
                    view.assume_claims(claims)
                    placed.append((job, type_, claims))
                else:
                    rate[at, type_] = 0
                    failed.append((job, type_))
                    continue
                left[type_] -= gangs[at]
                rate[at] = 0
            if len(failed) == before:
                break
    return kept, placed, failed


def _put_back(view: View, running: Allocations, job: LeasedJob) -> bool:
    """Leave a gang that found no room on a better type where it is, if nobody is to come there."""
    its = running.only(np.asarray(running.job == job.id))
    view.undo_removal(its.machine, its.amounts)
    if (view.free[view.where(its.machine)] >= 0).all():
        return True
    view.assume_removed(its.machine, its.amounts)
    return False


def _placed(
    view: View, cluster: Cluster, type_: int, job: LeasedJob, rng: np.random.Generator
) -> Claims:
    """Return claims for a whole gang on machines of one type; none if it does not fit."""
    return place_groups(view, cluster.only_on(type_, job), CONSOLIDATED, rng)
