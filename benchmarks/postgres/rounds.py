"""Statements of the live rounds: where and when tasks ran, and the result of each commit."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from omega.store.postgres.connection import Link
from omega.store.postgres.json_text import decoded


@dataclass(frozen=True, eq=False)
class Intervals:
    """Where tasks ran, and from when to when, as columns with one row per run.

    Times are seconds since the epoch on the server's clock. Tasks that still run end now.
    """

    job: NDArray[np.int64]
    task: NDArray[np.int64]
    machine: NDArray[np.int64]
    began_s: NDArray[np.float64]
    ended_s: NDArray[np.float64]


def intervals(link: Link, scheduler: str) -> Intervals:
    """Return all runs of tasks of a scheduler kind's jobs."""
    rows = link.call(
        "SELECT r.job_id, r.task, r.machine_id, extract(epoch FROM r.started_at)::float8,"
        " extract(epoch FROM r.ended_at)::float8"
        " FROM (SELECT job_id, task, machine_id, started_at, ended_at FROM omega.ended_task"
        "       UNION ALL"
        "       SELECT job_id, task, machine_id, started_at, clock_timestamp()"
        "         FROM omega.allocation) AS r"
        " JOIN omega.job j ON j.id = r.job_id WHERE j.scheduler = %s",
        (scheduler,),
    )
    job, task, machine, began, ended = zip(*rows, strict=True) if rows else [()] * 5
    return Intervals(
        np.array(job, np.int64),
        np.array(task, np.int64),
        np.array(machine, np.int64),
        np.array(began, np.float64),
        np.array(ended, np.float64),
    )


def last_round(link: Link, scheduler: str) -> tuple[int, str, dict[str, Any]]:
    """Return number, holder and memo of the last round; (0, "", {}) if there was none."""
    rows = link.call(
        "SELECT number, holder, memo FROM omega.round WHERE scheduler = %s", (scheduler,)
    )
    if not rows:
        return 0, "", {}
    number, holder, memo = rows[0]
    return number, holder, decoded(memo)


def commits(link: Link, scheduler: str) -> list[dict[str, Any]]:
    """Return the result of each transaction of a kind of scheduler, oldest first."""
    rows = link.call(
        "SELECT extract(epoch FROM t.committed_at)::float8, t.replica,"
        " (SELECT count(*) FILTER (WHERE v = 0) FROM unnest(t.verdicts) AS v),"
        " (SELECT count(*) FILTER (WHERE v <> 0) FROM unnest(t.verdicts) AS v),"
        " cardinality(t.evicted_jobs)"
        " FROM omega.transaction t WHERE t.scheduler = %s ORDER BY t.committed_at",
        (scheduler,),
    )
    names = ("at_s", "replica", "granted", "refused", "evicted")
    return [dict(zip(names, row, strict=True)) for row in rows]


def went_on(link: Link, scheduler: str, without: str | None) -> bool:
    """Return whether the last commit of a kind of scheduler is not of the replica `without`."""
    rows = link.call(
        "SELECT scheduler || '-' || replica FROM omega.transaction WHERE scheduler = %s"
        " ORDER BY committed_at DESC LIMIT 1",
        (scheduler,),
    )
    return bool(rows) and rows[0][0] != without
