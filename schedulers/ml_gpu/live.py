"""Rounds on a live cell: who trains on which GPUs next, as claims.

Goal     Play the same rounds as the replay does, with machines, other schedulers and a past that
         another process may have lived.
Promise  Planned from view, memo and what runs alone: the same of these give the same plan. Who goes
         on where it is makes no claim; gangs come largest first, on the fewest machines.
Source   Gavel (OSDI 2020), section 5; docs/papers/gavel.md, docs/decisions/0028.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from omega.cell.view import View
from omega.framework.rounds import RoundPlan, Rounds, RoundState, Stretch
from omega.limits import LIMITS
from omega.model.allocations import Allocations
from omega.model.arrays import Ids, Index, Mask, integers, positions
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.placement.gangs import on_fewest_machines
from omega.placement.groups import place_groups
from omega.placement.making_room import make_room
from omega.workload.throughputs import Rates, Throughputs
from schedulers.ml_gpu.cluster import Cluster, goes_by_rounds, kinds_of, size_of
from schedulers.ml_gpu.policies.named import Policy
from schedulers.ml_gpu.problem import NOWHERE, Problem
from schedulers.ml_gpu.record import Record
from schedulers.ml_gpu.rounds import Holes, Ledger, fastest_first, select

Place = Callable[[View, LeasedJob, np.random.Generator], Claims]
PASSES = 4
"""Times that GPUs are given out in a round: again, to others, where a gang found no room."""


@dataclass(frozen=True, kw_only=True)
class Playing:
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

    def __init__(self, playing: Playing, place: Place) -> None:
        """Play rounds so, and place by `place` what cannot be interrupted."""
        self.length_ms = playing.length_ms
        self._playing = playing
        self._place_beside = place
        self._chosen: dict[int, tuple[Cluster, int]] = {}
        """Type for which each gang was selected in this round, for tries after conflicts."""

    def plan(self, view: View, state: RoundState, chance: np.random.Generator) -> RoundPlan:
        """Say which gangs train where next, and place the other jobs on what is free."""
        table = _Table.of(view, state, self._playing)
        record = _charged(table, state, self._playing)
        if _is_due(record, table, self._playing, state.began_ms):
            record = _promised(record, table, self._playing, state.began_ms, chance)
        record = replace(record, began_ms=state.began_ms)

        beside = [job for job in state.waiting if not goes_by_rounds(job)]
        kept, gangs = _given_out(view, table, record.ledger, self._playing, chance)
        self._chosen = {job.id: (table.cluster, type_) for job, type_, _ in gangs}
        parts = [(job, claims) for job, _, claims in gangs]
        may_go = set(table.ids.tolist()) - kept
        claims = make_room(view, parts, state.allocations, may_go)
        stretches = [
            Stretch(job, its, job.spec.tasks) for (job, _), its in zip(parts, claims, strict=True)
        ]
        return RoundPlan(
            [*self._beside(view, beside, chance), *stretches], record.memo(), table.ids.tolist()
        )

    def again(
        self, view: View, refused: Sequence[LeasedJob], chance: np.random.Generator
    ) -> Sequence[Stretch]:
        """Place gangs that met others once more, on the GPUs of their type that are free."""
        stretches = []
        beside = [job for job in refused if job.id not in self._chosen]
        with view.trying():
            for job in refused:
                if job.id in self._chosen:
                    cluster, type_ = self._chosen[job.id]
                    claims = _placed(view, cluster, type_, job, chance)
                    view.try_on(claims)
                    if len(claims):
                        stretches.append(Stretch(job, claims, job.spec.tasks))
        return [*stretches, *self._beside(view, beside, chance)]

    def _beside(
        self, view: View, jobs: Sequence[LeasedJob], chance: np.random.Generator
    ) -> list[Stretch]:
        """Place jobs that run to their end, on what is free now."""
        stretches = []
        with view.trying():
            for job in jobs:
                claims = self._place_beside(view, job, chance)
                view.try_on(claims)
                if len(claims):
                    stretches.append(Stretch(job, claims, job.lacking))
        return stretches


@dataclass(frozen=True, eq=False)
class _Table:
    """The training jobs of a round, ascending by id, and how fast each is on which type."""

    cluster: Cluster
    jobs: Sequence[LeasedJob]
    ids: Ids
    rate: Rates
    """Steps/s of each job on each type; 0 where it cannot run."""
    on: Index
    """Type on which each job runs now, or NOWHERE."""
    started_ms: Ids
    running: Allocations

    @classmethod
    def of(cls, view: View, state: RoundState, playing: Playing) -> "_Table":
        live = state.allocations
        gangs = sorted((*state.running, *filter(goes_by_rounds, state.waiting)), key=_id)
        jobs = [job for job in gangs if goes_by_rounds(job)]
        ids = np.array([job.id for job in jobs], np.int64)
        cluster = Cluster.of(view, playing.attribute, _of(live, np.isin(live.job, ids)))
        kinds, kind = kinds_of(jobs)
        rates: Rates = np.ones((len(kinds), len(cluster.types)))
        if playing.table is not None:
            known = playing.table.of(cluster.types, kinds).rates
            rates = np.asarray(np.where(known.any(axis=1, keepdims=True), known, rates))
        rate = rates[kind].reshape(len(jobs), len(cluster.types))
        for at, job in enumerate(jobs):
            rate[at] *= cluster.fits(view, job.spec)
        on, started_ms = np.full(len(jobs), NOWHERE, np.intp), np.zeros(len(jobs), np.int64)
        row = positions(ids, live.job)
        there = row >= 0
        type_ = cluster.types_of(view, live.machine)
        is_open: Mask = np.asarray(view.open[np.maximum(view.where(live.machine), 0)])
        on[row[there]] = type_[there]
        on[row[np.logical_and(there, ~is_open)]] = NOWHERE
        np.maximum.at(started_ms, row[there], live.started_ms[there])
        return cls(cluster, jobs, ids, rate, on, started_ms, live)

    @property
    def gangs(self) -> Ids:
        """How many GPUs each job uses at once."""
        return np.array([size_of(job.spec) for job in self.jobs], np.int64)


def _charged(table: _Table, state: RoundState, playing: Playing) -> Record:
    """Return what was had up to now: by those that run, since the last round or their start."""
    record = Record.of(state.memo, table.cluster.types, playing.length_ms / 2_000)
    record = record.among(table.ids, integers(state.away), state.began_ms)
    runs = np.flatnonzero(table.on != NOWHERE)
    since_ms = np.maximum(table.started_ms[runs], record.began_ms)
    seconds = np.maximum(state.began_ms - since_ms, 0) / 1_000
    return replace(record, ledger=record.ledger.charged(runs, table.on[runs], seconds))


def _is_due(record: Record, table: _Table, playing: Playing, now_ms: int) -> bool:
    """Say whether shares are to be promised anew: hysteresis, or every arrival would be a reset."""
    if record.reset_ms is None:
        return True
    changed = record.is_due or record.gpus != tuple(table.cluster.gpus.tolist())
    return changed and now_ms - record.reset_ms >= playing.resets_after * playing.length_ms


def _promised(
    record: Record, table: _Table, playing: Playing, now_ms: int, chance: np.random.Generator
) -> Record:
    """Ask the policy for shares, and settle what the last ones have come to."""
    share = np.zeros_like(table.rate)
    runs = np.flatnonzero(table.rate.any(axis=1))
    if len(runs):
        share[runs] = playing.policy.solve(_problem(record, table, runs, now_ms), chance).share
    elapsed_s = 0.0 if record.reset_ms is None else (now_ms - record.reset_ms) / 1_000
    ledger = record.ledger.reset(table.ids, record.ledger.second, share, elapsed_s)
    gpus = tuple(table.cluster.gpus.tolist())
    return replace(record, ledger=ledger, gpus=gpus, reset_ms=now_ms, is_due=False)


def _problem(record: Record, table: _Table, runs: Index, now_ms: int) -> Problem:
    """State the problem of those jobs that can run somewhere."""
    jobs = [table.jobs[at] for at in runs.tolist()]
    rows, kind = np.unique(
        np.column_stack([table.rate[runs], table.gangs[runs]]), axis=0, return_inverse=True
    )
    tenants, entity = np.unique([job.spec.tenant for job in jobs], return_inverse=True)
    steps = np.array([_steps(job) for job in jobs], np.float64)
    return Problem(
        types=table.cluster.types,
        gpus=table.cluster.gpus,
        table=rows[:, :-1],
        gang=rows[:, -1].astype(np.int64),
        kind=kind.ravel(),
        weight=np.ones(len(jobs)),
        total_steps=steps,
        remaining_steps=steps,
        age_s=record.age_s(now_ms)[runs],
        entity=entity,
        entity_weight=np.ones(len(tenants)),
        entity_is_fifo=np.zeros(len(tenants), np.bool_),
        runs_on=table.on[runs],
    )


def _given_out(
    view: View, table: _Table, ledger: Ledger, playing: Playing, chance: np.random.Generator
) -> tuple[set[int], list[tuple[LeasedJob, int, Claims]]]:
    """Say who keeps its GPUs, and who is to be placed where; larger gangs are placed first."""
    rate, gangs, left = table.rate.copy(), table.gangs, table.cluster.gpus.copy()
    order = fastest_first(table.rate) if len(table.jobs) else np.arange(len(left))
    holes = Holes.LAST if playing.policy.fills_holes else Holes.NEVER
    kept: set[int] = set()
    placed: list[tuple[LeasedJob, int, Claims]] = []
    with view.trying():
        goes = np.ones(len(table.jobs), np.bool_)
        for nth in range(PASSES):
            on = select(ledger, rate, gangs, left, order, holes)
            if nth == 0:
                goes = (on == NOWHERE) | (on != table.on)
                gone = _of(table.running, np.isin(table.running.job, table.ids[goes]))
                view.take_off(gone.machine, gone.amounts)
                stay = np.flatnonzero(~goes)
                kept = set(table.ids[stay].tolist())
                np.subtract.at(left, on[stay], gangs[stay])
                rate[stay] = 0
                on[stay] = NOWHERE
            new = np.flatnonzero(on != NOWHERE)
            failed = False
            for at in new[np.argsort(-gangs[new], kind="stable")].tolist():
                job, type_ = table.jobs[at], int(on[at])
                claims = _placed(view, table.cluster, type_, job, chance)
                if len(claims):
                    view.try_on(claims)
                    placed.append((job, type_, claims))
                    left[type_] -= gangs[at]
                    rate[at] = 0
                else:
                    rate[at, type_] = 0
                    failed = True
            if not failed:
                break
    return kept, placed


def _placed(
    view: View, cluster: Cluster, type_: int, job: LeasedJob, chance: np.random.Generator
) -> Claims:
    """Return claims for a whole gang on machines of one type; none if it does not fit."""
    if job.spec.tasks > LIMITS.claims_per_transaction_max:
        return Claims.none()
    return place_groups(view, cluster.only_on(type_, job), on_fewest_machines, chance)


def _id(job: LeasedJob) -> int:
    return job.id


def _steps(job: LeasedJob) -> int:
    assert job.spec.training is not None
    return job.spec.training.steps


def _of(live: Allocations, which: Mask) -> Allocations:
    return Allocations(
        live.job[which],
        live.task[which],
        live.machine[which],
        live.amounts[which],
        live.started_ms[which],
        live.duration_ms[which],
    )
