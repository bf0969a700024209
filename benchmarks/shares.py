"""The shares that training jobs have had, beside their target shares, round by round."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.postgres.rounds import Intervals
from omega.errors import InvariantBroken

WITHIN: Final = 0.05
"""Fraction of the time by which a job may differ from its share."""


def compared(
    ran: Intervals,
    commits: Mapping[str, Sequence[Mapping[str, Any]]],
    plan: Mapping[str, Any],
    ids: Sequence[int],
    *,
    machines: Sequence[int],
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Compare what each job has had with its share, after each commit of the first scheduler.

    `plan` is from the memo of the last round, `machines` the number of each type, in order. Returns
    one row per commit, and a summary. Raises InvariantBroken if no task has run.
    """
    if not len(ran.job):
        raise InvariantBroken("nothing was trained")
    target = np.array([plan["share"][plan["jobs"].index(job)] for job in ids])
    type_of = np.repeat(np.arange(len(machines)), machines)
    mine = next(iter(commits.values()))
    began, over = mine[0]["at_s"], float(ran.ended_s.max())
    rows: list[dict[str, Any]] = []
    off = np.zeros_like(target)
    for at, one in enumerate(mine):
        until = mine[at + 1]["at_s"] if at + 1 < len(mine) else over
        more = had(ran, ids, type_of, began, until) - target
        off = np.abs(more)
        rows.append(
            {
                "at_s": round(one["at_s"] - began, 3),
                "replica": one["replica"],
                "furthest": round(float(off.max()), 4),
                "mean": round(float(off.mean()), 4),
                "short": round(max(0.0, float(-more.min())), 4),
                **{name: one[name] for name in ("granted", "evicted", "refused")},
            }
        )
    played_by = [row["replica"] for row in rows]
    summary = {
        "rounds": len(rows),
        "furthest": rows[-1]["furthest"],
        "mean": rows[-1]["mean"],
        "short": rows[-1]["short"],
        "furthest_job": _furthest(off, target),
        "after_50": {
            name: rows[min(50, len(rows)) - 1][name] for name in ("furthest", "mean", "short")
        },
        "rounds_until_within": until_within(rows),
        "granted": sum(row["granted"] for row in rows),
        "evicted": sum(row["evicted"] for row in rows),
        "commits": {kind: _counted(its) for kind, its in commits.items()},
        "rounds_by": {name: played_by.count(name) for name in sorted(set(played_by))},
    }
    return rows, summary


def _furthest(off: NDArray[np.float64], target: NDArray[np.float64]) -> dict[str, Any]:
    """Return the job, by its position, and the type with the largest difference."""
    job, type_ = np.unravel_index(int(off.argmax()), off.shape)
    share = round(float(target[job, type_]), 4)
    return {"job": int(job), "type": int(type_), "share": share}


def had(
    ran: Intervals,
    ids: Sequence[int],
    type_of: NDArray[np.intp],
    began_s: float,
    until_s: float,
) -> NDArray[np.float64]:
    """Return the fraction of the time (jobs, types) that each job's first task has run on a type.

    `type_of` is the type of each machine, by id from 1; `ids` ascend.
    """
    lead = ran.task == 0
    overlap = np.minimum(ran.ended_s, until_s) - np.maximum(ran.began_s, began_s)
    counted = np.zeros((len(ids), int(type_of.max()) + 1))
    row = np.searchsorted(ids, ran.job[lead])
    np.add.at(counted, (row, type_of[ran.machine[lead] - 1]), np.maximum(overlap[lead], 0))
    return np.asarray(counted / (until_s - began_s))


def until_within(rows: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the round from which on all jobs are within WITHIN; None if there is none."""
    beyond = [at for at, row in enumerate(rows, start=1) if row["furthest"] > WITHIN]
    last = max(beyond, default=0)
    return last + 1 if last < len(rows) else None


def _counted(commits: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return {
        "transactions": len(commits),
        "conflicted": sum(one["refused"] > 0 for one in commits),
        "granted": sum(one["granted"] for one in commits),
        "refused": sum(one["refused"] for one in commits),
    }
