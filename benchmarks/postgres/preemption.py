"""Statements about preemption: what services committed, whom they evicted, and until when."""

from dataclasses import dataclass
from typing import Final

from omega.store.postgres.connection import Link

ACCEPTED: Final = 0
LIKE_EPOCH: Final = "extract(epoch FROM {})::float8"


@dataclass(frozen=True)
class ServiceJob:
    """A service job, after its tasks have run. Times are seconds of the server's clock."""

    attempts: int
    commits: int
    """Transactions with claims of the job."""
    conflicted: int
    """Those of them in which a claim was refused."""
    submitted_s: float
    placed_s: float
    """The commit that placed the last task."""
    first_end_s: float
    """The first end of one of its tasks."""


@dataclass(frozen=True)
class EvictedJob:
    """A job that lost tasks. Times are seconds of the server's clock."""

    precedence: int
    tasks: int
    """How many tasks it lost, those lost again included."""
    evicted_s: float
    """The first eviction."""
    whole_s: float
    """The last commit that placed a task of it."""


def service_jobs(link: Link, scheduler: str) -> list[ServiceJob]:
    """Return the jobs of a kind of scheduler; their tasks have run."""
    rows = link.call(
        "SELECT j.attempts, count(t.id), count(t.id) FILTER (WHERE EXISTS"
        " (SELECT FROM unnest(t.verdicts[coalesce(t.ends[p.n - 1], 0) + 1 : p.stop]) AS v"
        "   WHERE v <> %s)),"
        f" {_epoch('j.submitted_at')}, {_epoch('max(t.committed_at)')},"
        f" (SELECT {_epoch('min(e.ended_at)')} FROM omega.ended_task e WHERE e.job_id = j.id)"
        " FROM omega.job j JOIN omega.transaction t ON j.id = ANY (t.jobs),"
        " unnest(t.jobs, t.ends) WITH ORDINALITY AS p (job, stop, n)"
        " WHERE j.scheduler = %s AND p.job = j.id GROUP BY j.id ORDER BY j.id",
        (ACCEPTED, scheduler),
    )
    return [ServiceJob(*row) for row in rows]


def evicted_jobs(link: Link) -> list[EvictedJob]:
    """Return every job that lost tasks to claims."""
    rows = link.call(
        "WITH lost AS (SELECT e.job, count(*) AS tasks, min(t.committed_at) AS at"
        " FROM omega.transaction t, unnest(t.evicted_jobs) AS e (job) GROUP BY e.job),"
        " granted AS (SELECT p.job, max(t.committed_at) AS at FROM omega.transaction t,"
        " unnest(t.jobs, t.ends) WITH ORDINALITY AS p (job, stop, n)"
        " WHERE %s = ANY (t.verdicts[coalesce(t.ends[p.n - 1], 0) + 1 : p.stop]) GROUP BY p.job)"
        f" SELECT j.precedence, lost.tasks, {_epoch('lost.at')}, {_epoch('granted.at')}"
        " FROM lost JOIN granted USING (job) JOIN omega.job j ON j.id = lost.job ORDER BY j.id",
        (ACCEPTED,),
    )
    return [EvictedJob(*row) for row in rows]


def _epoch(moment: str) -> str:
    return LIKE_EPOCH.format(moment)
