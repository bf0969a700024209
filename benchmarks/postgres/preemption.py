"""Statements about preemption: what services committed, whom they evicted, and until when."""

from dataclasses import dataclass
from typing import Final

from benchmarks.postgres.statements import VERDICTS_BY_JOB
from omega.store.postgres.connection import Link

ACCEPTED: Final = 0


@dataclass(frozen=True)
class ServiceJob:
    """A service job, after its tasks have run. Times are seconds of the server's clock."""

    attempts: int
    commits: int
    """Transactions with claims of the job."""
    conflicted: int
    """Those of them in which a claim was refused."""
    refused: int
    """Refused claims of the job."""
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
        "WITH commits AS (SELECT job, committed_at,"
        " (SELECT count(*) FROM unnest(verdicts) AS one WHERE one <> %s) AS refused"
        f" FROM {VERDICTS_BY_JOB})"
        " SELECT j.attempts, count(*), count(*) FILTER (WHERE c.refused > 0),"
        f" sum(c.refused)::bigint, {_epoch('j.submitted_at')}, {_epoch('max(c.committed_at)')},"
        f" (SELECT {_epoch('min(e.ended_at)')} FROM omega.ended_task e WHERE e.job_id = j.id)"
        " FROM omega.job j JOIN commits c ON c.job = j.id"
        " WHERE j.scheduler = %s GROUP BY j.id ORDER BY j.id",
        (ACCEPTED, scheduler),
    )
    return [ServiceJob(*row) for row in rows]


def evicted_jobs(link: Link) -> list[EvictedJob]:
    """Return every job that lost tasks to claims."""
    rows = link.call(
        "WITH lost AS (SELECT e.job, count(*) AS tasks, min(t.committed_at) AS at"
        " FROM omega.transaction t, unnest(t.evicted_jobs) AS e (job) GROUP BY e.job),"
        f" granted AS (SELECT job, max(committed_at) AS at FROM {VERDICTS_BY_JOB}"
        " WHERE %s = ANY (verdicts) GROUP BY job)"
        f" SELECT j.precedence, lost.tasks, {_epoch('lost.at')}, {_epoch('granted.at')}"
        " FROM lost JOIN granted USING (job) JOIN omega.job j ON j.id = lost.job ORDER BY j.id",
        (ACCEPTED,),
    )
    return [EvictedJob(*row) for row in rows]


def _epoch(moment: str) -> str:
    return f"extract(epoch FROM {moment})::float8"
