"""Reads a live cell whole, at one moment: what it holds, and what it did lately.

Goal     Copy a cell that goes on working, with the rights of a reader.
Promise  All statements see the database at one moment; none waits for a lock or makes a commit
         wait. Tokens of leases are not read. What the history no longer holds is not there.
Source   docs/decisions/0055-snapshots-and-what-if.md; PostgreSQL's manual, "Repeatable Read".
"""

from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final

import numpy as np

from omega.errors import BadInput
from omega.lifecycle.states import ParkReason, State
from omega.model.arrays import Ids, Index, integers
from omega.model.claims import ConflictRule
from omega.model.machines import Catalogue, Machines
from omega.model.outcomes import Verdict
from omega.model.quotas import BUDGETS, UNLIMITED, Budget, Quota, QuotaScope
from omega.model.resources import COLUMNS, KINDS
from omega.model.wire import spec_from_wire
from omega.ordering.tenants import Tenant
from omega.store.loading import HOLDER
from omega.store.postgres.connection import Cursor, Link
from omega.store.postgres.json_text import an_object, decoded
from omega.store.saved.cell import (
    PARTS,
    PastTasks,
    RunningTasks,
    SavedCell,
    SavedJob,
    SavedMachines,
    SavedProcess,
    SavedScheduler,
)


def _ms(moment: str) -> str:
    return f"(extract(epoch FROM {moment}) * 1000)::bigint"


def _by_part(column: str) -> str:
    """Return the array of the sums of a column, one for each part of the time."""
    sums = [f"coalesce(sum({column}) FILTER (WHERE x.part = {n + 1}), 0)" for n in range(PARTS)]
    return f"ARRAY[{', '.join(sums)}]"


# A start state that was loaded is where a cell begins, not something that schedulers did.
_CELL: Final = f"""
    SELECT {_ms("now")}, {_ms("greatest(now - %(since_ms)s * interval '1 ms', loaded)")},
           generation, catalogue, precedence_gap
      FROM omega.cell, (SELECT clock_timestamp() AS now) AS moment,
           (SELECT max(committed_at) AS loaded FROM omega.transaction
             WHERE scheduler = %(loader)s) AS start
"""
_MACHINES: Final = f"""
    SELECT m.id, p.name, p.codes, p.address, m.state, m.sequence, m.revision, m.notice,
           {_ms("m.notice_ends_at")}, ARRAY[{", ".join(f"m.{kind}_capacity" for kind in COLUMNS)}]
      FROM omega.machine m JOIN omega.machine_profile p ON p.id = m.id ORDER BY m.id
"""
_QUOTAS: Final = 'SELECT scope, name, limits FROM omega.quota ORDER BY scope, name COLLATE "C"'
_TENANTS: Final = 'SELECT name, weight, parent FROM omega.tenant ORDER BY name COLLATE "C"'
_GOES_ON_OR_ENDED_LATELY: Final = f"""
    (j.finished_at IS NULL OR {_ms("j.finished_at")} >= %(begin_ms)s)
"""
_JOBS: Final = f"""
    SELECT j.id, s.wire, j.state::text,
           (SELECT array_agg(lower(r) ORDER BY r) FROM unnest(j.unplaced) AS r),
           (SELECT array_agg(upper(r) ORDER BY r) FROM unnest(j.unplaced) AS r),
           j.failed, j.attempts, j.fruitless, j.park_reason::text, j.park_detail,
           coalesce(j.park_generation = (SELECT generation FROM omega.cell), false),
           {_ms("j.submitted_at")}, {_ms("j.first_leased_at")}, {_ms("j.not_before")},
           {_ms("j.finished_at")}, j.evicted_by, {_ms("j.evicted_at")},
           {_ms("j.precedence_set_at")}, j.parent, p.steps, p.run_ms,
           (SELECT array_agg(f.done ORDER BY f.phase) FROM omega.phase_progress f
             WHERE f.job_id = j.id),
           (SELECT array_agg(f.busy_ms ORDER BY f.phase) FROM omega.phase_progress f
             WHERE f.job_id = j.id)
      FROM omega.job j JOIN omega.job_spec s ON s.job_id = j.id
      LEFT JOIN omega.progress p ON p.job_id = j.id
     WHERE {_GOES_ON_OR_ENDED_LATELY}
     ORDER BY j.id
"""
_RUNNING: Final = f"""
    SELECT {
    ", ".join(
        f"coalesce(array_agg({column} ORDER BY job_id, task), '{{}}')"
        for column in ("job_id", "task", "machine_id", _ms("started_at"), *COLUMNS)
    )
} FROM omega.allocation
"""
_PAST: Final = f"""
    SELECT {
    ", ".join(
        f"coalesce(array_agg({column} ORDER BY e.ended_at, e.job_id, e.task), '{{}}')"
        for column in (
            *("e.job_id", "e.task", "e.machine_id", _ms("e.started_at"), _ms("e.ended_at")),
            "e.cause",
        )
    )
} FROM omega.ended_task e JOIN omega.job j ON j.id = e.job_id
     WHERE {_ms("e.ended_at")} >= %(begin_ms)s AND {_GOES_ON_OR_ENDED_LATELY}
"""
_LAST: Final = f"""
    SELECT coalesce(max({_ms("committed_at")}), %(begin_ms)s) FROM omega.transaction
     WHERE {_ms("committed_at")} >= %(begin_ms)s AND scheduler <> %(loader)s
"""
# A job conflicted as `Outcome.conflicted` says: a quota's refusal is none.
_SCHEDULERS: Final = f"""
    SELECT t.scheduler, t.replica, t.by_sequence, count(*), sum(x.jobs)::bigint,
           sum(x.conflicted)::bigint, sum(x.claims)::bigint, sum(x.refused)::bigint,
           max({_ms("t.committed_at")}),
           {_by_part("x.jobs")}, {_by_part("x.conflicted")}
      FROM omega.transaction t CROSS JOIN LATERAL (
           SELECT width_bucket({_ms("t.committed_at")}::float8, %(begin_ms)s::float8,
                               %(last_ms)s::float8 + 1, {PARTS}) AS part,
                  count(*) AS jobs, count(*) FILTER (WHERE y.is_conflicted) AS conflicted,
                  sum(y.claims) AS claims, sum(y.refused) AS refused
             FROM (SELECT count(*) AS claims,
                          count(*) FILTER (WHERE v <> {int(Verdict.ACCEPTED)}) AS refused,
                          CASE WHEN bool_or(v = {int(Verdict.QUOTA)})
                               THEN bool_or(v NOT IN ({int(Verdict.ACCEPTED)},
                                                      {int(Verdict.QUOTA)},
                                                      {int(Verdict.GANG_BROKEN)}))
                               ELSE bool_or(v <> {int(Verdict.ACCEPTED)}) END AS is_conflicted
                     FROM unnest(t.verdicts) WITH ORDINALITY AS c (v, n)
                    GROUP BY width_bucket(c.n::integer - 1, t.ends)) AS y) AS x
     WHERE {_ms("t.committed_at")} >= %(begin_ms)s AND t.scheduler <> %(loader)s
     GROUP BY t.scheduler, t.replica, t.by_sequence
     ORDER BY t.scheduler COLLATE "C", t.replica COLLATE "C", t.by_sequence
"""
_PROCESSES: Final = f"""
    SELECT kind, replica, greatest(0, %(taken_ms)s - {_ms("seen_at")}), facts
      FROM omega.process ORDER BY kind COLLATE "C", replica COLLATE "C", login
"""


def save_cell(url: str, *, since_ms: int, statement_timeout_ms: int) -> SavedCell:
    """Read the cell, and what it did in the last `since_ms` milliseconds or since it was loaded.

    A job whose spec this version cannot read is left out if it has ended. Raises BadInput if one
    goes on, and as Link.call does.
    """
    link = Link(url, application_name="omega snapshot", statement_timeout_ms=statement_timeout_ms)
    with closing(link):
        return link.together(lambda cursor: _saved(cursor, since_ms), reads_only=True)


def _saved(cursor: Cursor, since_ms: int) -> SavedCell:
    told: dict[str, Any] = {"since_ms": since_ms, "loader": HOLDER}

    def read(query: str) -> list[Any]:
        return cursor.execute(query.encode(), told).fetchall()

    ((taken_ms, begin_ms, _, catalogue, gap),) = read(_CELL)
    told |= {"taken_ms": taken_ms, "begin_ms": begin_ms}
    stored = decoded(catalogue)
    known = Catalogue(tuple(stored["names"]), tuple(map(tuple, stored["values"])))
    jobs = tuple(job for row in read(_JOBS) if (job := _job(row)) is not None)
    (running,), (past,) = read(_RUNNING), read(_PAST)
    ((told["last_ms"],),) = read(_LAST)
    return SavedCell(
        taken_ms=taken_ms,
        begin_ms=min(begin_ms, taken_ms),
        precedence_gap=gap,
        machines=_machines(read(_MACHINES), known),
        quotas=tuple(_quota(*row) for row in read(_QUOTAS)),
        tenants=tuple(Tenant(*row) for row in read(_TENANTS)),
        jobs=jobs,
        running=_running(*running),
        past=_past(jobs, *past),
        schedulers=tuple(_scheduler(*row) for row in read(_SCHEDULERS)),
        processes=tuple(
            SavedProcess(kind=kind, replica=replica, seen_ms_ago=ms, facts=an_object(facts))
            for kind, replica, ms, facts in read(_PROCESSES)
        ),
    )


def _machines(rows: list[Any], catalogue: Catalogue) -> SavedMachines:
    ids, names, codes, address, state, sequence, revision, notice, ends_ms, capacity = (
        list(zip(*rows, strict=True)) if rows else [()] * 10
    )
    attributes = {
        name: [catalogue.value(column, int(row[column])) for row in codes]
        for column, name in enumerate(catalogue.names)
    }
    none = np.zeros(KINDS, dtype=np.int64)
    return SavedMachines(
        id=integers(list(ids)),
        machines=Machines(tuple(names), integers(list(capacity)).reshape(-1, KINDS), attributes),
        state=np.array(state, dtype=np.int8),
        sequence=integers(list(sequence)),
        revision=integers(list(revision)),
        address=tuple(address),
        notice=integers([none if it is None else it for it in notice]).reshape(-1, KINDS),
        notice_ends_ms=tuple(ends_ms),
    )


def _quota(scope: str, name: str, limits: list[int]) -> Quota:
    assert len(limits) == BUDGETS
    return Quota(
        QuotaScope(scope),
        name,
        {budget: int(limits[budget]) for budget in Budget if limits[budget] < UNLIMITED},
    )


def _job(row: tuple[Any, ...]) -> SavedJob | None:
    job, wire, state, starts, stops, *counts, steps, run_ms, done, busy_ms = row
    try:
        spec = spec_from_wire(decoded(wire))
    except BadInput as error:
        if row[14] is not None:
            return None
        raise BadInput(f"the spec of job {job} cannot be read; cancel it: {error}") from error
    failed, attempts, fruitless, reason, detail, for_now, *times = counts
    submitted_ms, first_leased_ms, not_before_ms, finished_ms = times[:4]
    evicted_by, evicted_ms, precedence_set_ms, parent = times[4:]
    return SavedJob(
        id=job,
        spec=spec,
        state=State(state),
        unplaced=() if starts is None else _pairs(starts, stops),
        failed=failed,
        attempts=attempts,
        fruitless=fruitless,
        park_reason=None if reason is None else ParkReason(reason),
        park_detail=detail,
        is_parked_for_now=for_now,
        submitted_ms=submitted_ms,
        first_leased_ms=first_leased_ms,
        not_before_ms=not_before_ms,
        finished_ms=finished_ms,
        evicted_by=evicted_by,
        evicted_ms=evicted_ms,
        precedence_set_ms=precedence_set_ms,
        parent=parent,
        progress=None if steps is None else (steps, run_ms),
        phases=() if done is None else _pairs(done, busy_ms),
    )


def _pairs(left: Any, right: Any) -> tuple[tuple[int, int], ...]:  # noqa: ANN401 - arrays
    return tuple(zip(map(int, left), map(int, right), strict=True))


def _running(job: Ids, task: Index, machine: Ids, started_ms: Ids, *amounts: Ids) -> RunningTasks:
    return RunningTasks(
        job=integers(job),
        task=np.asarray(task, dtype=np.intp),
        machine=integers(machine),
        started_ms=integers(started_ms),
        amounts=np.stack([integers(of_kind) for of_kind in amounts], axis=1),
    )


def _past(
    jobs: Sequence[SavedJob],
    job: Ids,
    task: Index,
    machine: Ids,
    started_ms: Ids,
    ended_ms: Ids,
    cause: Sequence[str],
) -> PastTasks:
    """Return the tasks without those of jobs that were left out."""
    kept = np.isin(job, integers([one.id for one in jobs]))
    return PastTasks(
        job=integers(job)[kept],
        task=np.asarray(task, dtype=np.intp)[kept],
        machine=integers(machine)[kept],
        started_ms=integers(started_ms)[kept],
        ended_ms=integers(ended_ms)[kept],
        cause=tuple(one for one, is_kept in zip(cause, kept.tolist(), strict=True) if is_kept),
    )


def _scheduler(kind: str, replica: str, by_sequence: bool, *counts: Any) -> SavedScheduler:  # noqa: ANN401, FBT001 - columns
    *sums, jobs_by_part, conflicted_by_part = counts
    transactions, jobs, conflicted, claims, refused, last_ms = map(int, sums)
    by_part = zip(map(int, jobs_by_part), map(int, conflicted_by_part), strict=True)
    return SavedScheduler(
        kind=kind,
        replica=replica,
        rule=ConflictRule.SEQUENCE if by_sequence else ConflictRule.FIT,
        transactions=transactions,
        job_transactions=jobs,
        job_transactions_conflicted=conflicted,
        claims=claims,
        claims_refused=refused,
        last_ms=last_ms,
        parts=tuple(by_part),
    )
