"""The training jobs of a round, as arrays.

Goal     Put side by side what a view, a round and a memo say of the jobs that go by rounds.
Promise  Ascending by id. Nothing here decides.
Source   Gavel (OSDI 2020), section 3.1; docs/decisions/0028-rounds-on-the-shared-cell.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from omega.cell.view import View
from omega.framework.rounds import RoundState
from omega.model.allocations import Allocations
from omega.model.arrays import Counts, Ids, Index, Mask, integers, positions
from omega.model.jobs import LeasedJob
from omega.model.progress import JobProgress
from schedulers.ml_gpu.cluster import Cluster, goes_by_rounds, kinds_of, size_of
from schedulers.ml_gpu.history import STALLED_ROUNDS, stalled
from schedulers.ml_gpu.problem import NOWHERE
from schedulers.ml_gpu.record import Record
from schedulers.ml_gpu.throughputs import Kind, Rates, Throughputs


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """The training jobs of a round, ascending by id."""

    cluster: Cluster
    gpus: Counts
    """Of each type, with those that jobs hold which are away: what shares are promised of."""
    jobs: Sequence[LeasedJob]
    ids: Ids
    kinds: Sequence[Kind]
    kind: Index
    """Of each job, the place of its kind."""
    fits: Mask
    """Whether each job can run on each type: (jobs, types)."""
    ran_on: Index
    """Type on which each job runs now, or NOWHERE."""
    on: Index
    """The same, but NOWHERE for a job that cannot stay: some of its machines take no claims."""
    started_ms: Ids
    progress: JobProgress
    """Of these jobs."""
    running: Allocations

    @classmethod
    def of(cls, view: View, state: RoundState, attribute: str) -> "TrainingTable":
        live = state.allocations
        jobs = sorted(filter(goes_by_rounds, (*state.running, *state.waiting)), key=_id)
        ids = integers(job.id for job in jobs)
        cluster = Cluster.of(view, attribute, live.only(np.isin(live.job, ids)))
        kinds, kind = kinds_of(jobs)
        by_groups = {job.spec.groups: job.spec for job in jobs}
        fits_of = {groups: cluster.fits(view, spec) for groups, spec in by_groups.items()}
        fits = np.array([fits_of[job.spec.groups] for job in jobs], np.bool_)
        ran_on, started_ms = np.full(len(jobs), NOWHERE, np.intp), np.zeros(len(jobs), np.int64)
        trains = np.isin(live.job, np.append(ids, integers(state.away)))
        row = positions(ids, live.job)
        there = row >= 0
        type_ = cluster.types_of(view, live.machine)
        is_open: Mask = np.asarray(view.open[np.maximum(view.where(live.machine), 0)])
        ran_on[row[there]] = type_[there]
        on = ran_on.copy()
        on[row[np.logical_and(there, ~is_open)]] = NOWHERE
        np.maximum.at(started_ms, row[there], live.started_ms[there])
        return cls(
            cluster=cluster,
            gpus=Cluster.of(view, attribute, live.only(trains)).gpus,
            jobs=jobs,
            ids=ids,
            kinds=kinds,
            kind=kind,
            fits=fits.reshape(len(jobs), len(cluster.types)),
            ran_on=ran_on,
            on=on,
            started_ms=started_ms,
            progress=_progress_of(state.progress, ids),
            running=live,
        )

    @property
    def gangs(self) -> Counts:
        """How many GPUs each job uses at once."""
        return integers(size_of(job.spec) for job in self.jobs)

    @cached_property
    def precedence(self) -> Counts:
        """The precedence of each job."""
        return integers(job.spec.precedence for job in self.jobs)

    def rates(self, record: Record, told: Throughputs | None, length_ms: int) -> Rates:
        """Return the steps/s that are believed of each job on each type; 0 where it cannot run.

        So it is where a kind that the table told does not have was long seen to make no step;
        `length_ms` is that of a round.
        """
        believed = record.learnt.rates(self.kinds, told)
        after_s = STALLED_ROUNDS * length_ms / 1_000
        idle = stalled(record.history, self.kind, len(self.kinds), after_s)
        believed[idle & ~record.learnt.known(self.kinds, told)] = 0.0
        return np.asarray(believed[self.kind].reshape(self.fits.shape) * self.fits)

    def without_rate(self, rate: Rates) -> Mask:
        """Say which jobs run, and have no rate on any type on which they could: (jobs,)."""
        hopeless = self.fits.any(axis=1) & ~rate.any(axis=1)
        return np.asarray((self.ran_on != NOWHERE) & hopeless)


def _id(job: LeasedJob) -> int:
    return job.id


def _progress_of(told: JobProgress, ids: Ids) -> JobProgress:
    """Return the progress of these jobs, all of which train."""
    row = positions(told.job, ids)
    assert (row >= 0).all(), "each job that trains tells how far it is"
    return JobProgress(
        told.job[row],
        tuple(told.kind[at] for at in row.tolist()),
        told.wanted[row],
        told.done[row],
        told.run_ms[row],
        told.tasks[row],
        told.since_ms[row],
    )
