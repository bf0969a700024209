"""What explains one job, in Postgres: three bounded reads.

Goal     Read what `omega.store.inquiries` needs, with the rights of a reader.
Promise  A job is found by its keys. Its line is counted in the index of pending jobs, and records
         of commits are read from the newest on, by the index on `changed_by`: both up to a limit.
Source   docs/decisions/0054-why-a-job-waits.md.
"""

from collections.abc import Mapping
from typing import Final
from uuid import UUID

import numpy as np

from omega.errors import BadInput
from omega.model.arrays import Ids, Index, Verdicts, integers
from omega.model.outcomes import Verdict
from omega.model.wire import spec_from_wire
from omega.store.inquiries import (
    CLAIMS_SEARCHED_MAX,
    CLAIMS_TOLD_MAX,
    LINE_MAX,
    TRANSACTIONS_SEARCHED_MAX,
    JobTransaction,
    Line,
    RecordedClaim,
    Rival,
    WaitingJob,
    refusals_of,
    traced,
)
from omega.store.postgres.connection import Link
from omega.store.postgres.jobs import STATUS, status_of, tasks_in
from omega.store.postgres.json_text import decoded
from omega.store.postgres.packing import Big, Int

_WAITING: Final = """
    SELECT s.wire, j.placed, j.placed - j.ended,
           (SELECT array_agg(lower(r) ORDER BY r) FROM unnest(j.unplaced) AS r),
           (SELECT array_agg(upper(r) ORDER BY r) FROM unnest(j.unplaced) AS r),
           greatest(0, (extract(epoch FROM j.not_before - clock_timestamp()) * 1000)::bigint),
           greatest(0, (extract(epoch FROM clock_timestamp() - j.submitted_at) * 1000)::bigint),
           (SELECT array_agg(a.task ORDER BY a.task) FROM omega.allocation a
             WHERE a.job_id = j.id AND s.needs_sibling_machines),
           (SELECT array_agg(a.machine_id ORDER BY a.task) FROM omega.allocation a
             WHERE a.job_id = j.id AND s.needs_sibling_machines)
      FROM omega.job j JOIN omega.job_spec s ON s.job_id = j.id
     WHERE j.id = %s AND j.finished_at IS NULL
"""
_HIGHER: Final = """
    FROM (SELECT id, precedence, not_before FROM omega.job
           WHERE scheduler = %(scheduler)s AND state = 'pending' AND precedence > %(precedence)s
           ORDER BY precedence DESC, id LIMIT %(most)s) AS h
   WHERE not_before <= clock_timestamp()
"""
_OLDER: Final = """
    FROM (SELECT id, precedence, not_before FROM omega.job
           WHERE scheduler = %(scheduler)s AND state = 'pending' AND precedence = %(precedence)s
             AND id < %(job)s
           ORDER BY id LIMIT %(most)s) AS o
   WHERE not_before <= clock_timestamp()
"""


def bounded(records: str, order: str) -> str:
    """Return a query for the first of some records, in this order, that hold few enough claims.

    A record with as many claims as there may be, or the last of them, is still among them.
    """
    return f"""
        SELECT b.* FROM (
            SELECT r.*, sum(coalesce(r.ends[cardinality(r.ends)], 0)) OVER (
                       ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
              FROM ({records}) AS r ORDER BY {order}) AS b
         WHERE b.before IS NULL OR b.before < %(claims)s
    """


_LAST: Final = """
    SELECT x.* FROM omega.transaction x ORDER BY x.changed_by DESC LIMIT %(searched)s
"""
NEWEST: Final = f"({bounded(_LAST, 'r.changed_by DESC')}) AS t"
"""The newest records of commits, as a table of a query."""
_TRANSACTIONS: Final = """
    SELECT a.id, a.scheduler, a.replica, (extract(epoch FROM a.committed_at) * 1000)::bigint,
           judged.granted, judged.refused, told.tasks, told.machines, told.verdicts
      FROM (SELECT t.*, coalesce(t.ends[found.n - 1], 0) + 1 AS first, t.ends[found.n] AS last
              FROM {records},
                   LATERAL (SELECT array_position(t.jobs, %(job)s::bigint) AS n) AS found
             WHERE found.n IS NOT NULL
             ORDER BY t.committed_at DESC LIMIT %(most)s) AS a,
           LATERAL (SELECT count(*) FILTER (WHERE v = {accepted}) AS granted,
                           count(*) FILTER (WHERE v <> {accepted}) AS refused
                      FROM unnest(a.verdicts[a.first:a.last]) AS v) AS judged,
           LATERAL (SELECT array_agg(c.task) AS tasks, array_agg(c.machine) AS machines,
                           array_agg(c.verdict) AS verdicts
                      FROM (SELECT * FROM unnest(a.tasks[a.first:a.last],
                                                 a.machines[a.first:a.last],
                                                 a.verdicts[a.first:a.last])
                              WITH ORDINALITY AS c (task, machine, verdict, n)
                             ORDER BY c.verdict = {accepted}, c.n LIMIT %(told)s) AS c) AS told
     ORDER BY a.committed_at DESC
"""
# Who is granted a machine holds its lock until the end, so that on one machine the times of commits
# are in the order of the grants; the numbers of transactions need not be.
_RIVALS: Final = """
    WITH last AS (
        SELECT w.n, max(ARRAY[(extract(epoch FROM t.committed_at) * 1000000)::bigint,
                              t.changed_by::text::bigint, c.n]) AS granted
          FROM {records}
         CROSS JOIN unnest(%(ids)s::uuid[], %(machines)s) WITH ORDINALITY AS w (id, machine, n)
          JOIN omega.transaction mine ON mine.id = w.id
          JOIN LATERAL unnest(t.machines, t.verdicts) WITH ORDINALITY AS c (machine, verdict, n)
            ON c.machine = w.machine AND c.verdict = {accepted}
         WHERE t.machines && %(machines)s
           AND t.committed_at < mine.committed_at AND t.id <> mine.id
         GROUP BY w.n
    )
    SELECT l.n, t.id, t.scheduler, t.replica,
           t.jobs[width_bucket((l.granted[3] - 1)::integer, t.ends) + 1],
           (extract(epoch FROM t.committed_at) * 1000)::bigint
      FROM last l JOIN omega.transaction t ON t.changed_by = (l.granted[2])::text::xid8
"""


class PostgresInquiries:
    """Reads that explain one job."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def waiting_job(self, job: int) -> WaitingJob | None:
        """Return a job as placement sees it; None if it has ended, or cannot be read."""
        rows = self._link.call(_WAITING, (job,))
        if not rows:
            return None
        wire, placed, running, starts, stops, waits_ms, age_ms, tasks, machines = rows[0]
        try:
            spec = spec_from_wire(decoded(wire))
            unplaced = tasks_in(starts, stops, spec.tasks)
        except BadInput:
            return None
        return WaitingJob(
            id=job,
            spec=spec,
            unplaced=unplaced,
            placed_task=np.zeros(0, np.intp) if tasks is None else tasks,
            placed_machine=integers() if machines is None else machines,
            placed=placed,
            running=running,
            waits_ms=int(waits_ms),
            age_ms=int(age_ms),
        )

    def line_before(self, scheduler: str, precedence: int, job: int, *, jobs_max: int) -> Line:
        """Return who is leased before a job of this kind, precedence and number."""
        told = {
            "scheduler": scheduler,
            "precedence": precedence,
            "job": job,
            "most": LINE_MAX,
            "first": jobs_max,
        }
        ((higher, older, first),) = self._link.call(
            f"SELECT (SELECT count(*) {_HIGHER}), (SELECT count(*) {_OLDER}),"
            f" ARRAY((SELECT id {_HIGHER} ORDER BY precedence DESC, id LIMIT %(first)s)"
            f" UNION ALL (SELECT id {_OLDER} ORDER BY id LIMIT %(first)s))",
            told,
        )
        ids = list(map(int, first))[:jobs_max]
        rows = self._link.call(STATUS + " WHERE j.id = ANY (%s)", (Big(ids),)) if ids else []
        by_id = {status.id: status for status in map(status_of, rows)}
        return Line(int(higher), int(older), tuple(by_id[each] for each in ids if each in by_id))

    def transactions_of(self, job: int, *, transactions_max: int) -> list[JobTransaction]:
        """Return the newest recorded transactions that claimed for a job, newest first."""
        searched = {"searched": TRANSACTIONS_SEARCHED_MAX, "claims": CLAIMS_SEARCHED_MAX}
        return self._transactions_in(NEWEST, searched, job, transactions_max)

    def _transactions_in(
        self, records: str, searched: Mapping[str, object], job: int, transactions_max: int
    ) -> list[JobTransaction]:
        """Return the newest of these records that claimed for a job, newest first.

        `records` is a table of a query, and `searched` are its parameters.
        """
        query = _TRANSACTIONS.format(records=records, accepted=int(Verdict.ACCEPTED))
        told = {"job": job, "most": transactions_max, "told": CLAIMS_TOLD_MAX}
        rows = self._link.call(query, {**searched, **told})
        transactions = [_transaction(*row) for row in rows]
        wanted = refusals_of(transactions)
        if not wanted:
            return transactions
        found = self._link.call(
            _RIVALS.format(records=records, accepted=int(Verdict.ACCEPTED)),
            {
                **searched,
                "ids": [it.transaction for it, _ in wanted],
                "machines": Int([machine for _, machine in wanted]),
            },
        )
        rivals = {}
        for number, *rival in found:
            transaction, machine = wanted[number - 1]
            rivals[transaction.transaction, machine] = Rival(*rival)
        return traced(transactions, rivals)


def _transaction(
    transaction: UUID,
    scheduler: str,
    replica: str,
    committed_ms: int,
    granted: int,
    refused: int,
    *claims: Index | Ids | Verdicts,
) -> JobTransaction:
    tasks, machines, verdicts = (column.tolist() for column in claims)
    return JobTransaction(
        transaction,
        scheduler,
        replica,
        int(committed_ms),
        granted=int(granted),
        refused=int(refused),
        claims=tuple(
            RecordedClaim(task, machine, Verdict(verdict))
            for task, machine, verdict in zip(tasks, machines, verdicts, strict=True)
        ),
    )
