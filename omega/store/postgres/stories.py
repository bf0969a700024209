"""What is on record of one job or one machine, in Postgres.

Goal     Read what `omega.store.stories` needs, with the rights of a reader.
Promise  Records of commits are read from the newest on, by the index on `changed_by`. The history
         of runs has no index, because each end would have to write it: of its file, the last
         RUN_BYTES_MAX are read. After `omega db prune` new runs fill the room before them. Then
         runs of a longer file are missing, and that is said. Nothing is locked, and no commit does
         more for this.
Source   docs/decisions/0054-why-a-job-waits.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar
from uuid import UUID

from omega.model.outcomes import ACCEPTED, Verdict
from omega.store.inquiries import (
    CLAIMS_SEARCHED_MAX,
    TRANSACTIONS_SEARCHED_MAX,
    JobTransaction,
)
from omega.store.postgres.connection import Link
from omega.store.postgres.inquiries import NEWEST, PostgresInquiries, bounded
from omega.store.postgres.packing import Big, Int
from omega.store.stories import (
    EVICTIONS_MAX,
    RUNS_MAX,
    TRANSACTIONS_MAX,
    VISIT_CLAIMS_MAX,
    VISITS_MAX,
    JobRecords,
    MachineRecords,
    PastRun,
    RecordedEviction,
    RecordedVisit,
    RunEnd,
    Searched,
    machines_of,
)

_Record = TypeVar("_Record", JobTransaction, RecordedEviction)

RUN_BYTES_MAX: Final = 128 * 2**20
"""How much of the history of runs is read: some two million runs, in some tenths of a second."""


def _ms(column: str) -> str:
    return f"(extract(epoch FROM {column}) * 1000)::bigint"


NEAR_TIMES_MAX: Final = 10
"""Around so many earlier times, the first one and the last ones, commits are searched, too ..."""
NEAR_RECORDS_MAX: Final = 3_000
"""... so many at each, from a little before: who was refused saw the cell then."""
BEFORE_MS: Final = 1_000
_FROM: Final = """
    SELECT x.* FROM omega.transaction x WHERE x.changed_by >= a.number::text::xid8
     ORDER BY x.changed_by LIMIT %(near)s
"""
_NEAR: Final = f"""
    (SELECT w.* FROM unnest(%(numbers)s) AS a (number)
      CROSS JOIN LATERAL ({bounded(_FROM, "r.changed_by")}) AS w) AS t
"""
# Times of records are in the order of their numbers, but for commits that overlap. So the first
# record of a time is found by halving, each time by a look into the index.
_NUMBERS: Final = """
    WITH RECURSIVE halved AS (
        SELECT a.n, a.ms,
               (SELECT t.changed_by FROM omega.transaction t ORDER BY t.changed_by LIMIT 1
               )::text::bigint AS low,
               (SELECT t.changed_by FROM omega.transaction t ORDER BY t.changed_by DESC LIMIT 1
               )::text::bigint AS high
          FROM unnest(%(times)s) WITH ORDINALITY AS a (ms, n)
         UNION ALL
        SELECT h.n, h.ms, CASE WHEN h.is_early THEN h.middle + 1 ELSE h.low END,
               CASE WHEN h.is_early THEN h.high ELSE h.middle END
          FROM (SELECT s.*, (s.low + s.high) / 2 AS middle,
                       (SELECT t.committed_at FROM omega.transaction t
                         WHERE t.changed_by >= ((s.low + s.high) / 2)::text::xid8
                         ORDER BY t.changed_by LIMIT 1) < to_timestamp(s.ms / 1000.0) AS is_early
                  FROM halved s WHERE s.low < s.high) AS h
    )
    SELECT n, low FROM halved WHERE low >= high ORDER BY n
"""
_FIRST_LEASED: Final = f"""
    SELECT {_ms("first_leased_at")} FROM omega.job WHERE id = %s AND first_leased_at IS NOT NULL
"""
_SEARCHED: Final = f"""
    SELECT s.records, s.oldest_ms,
           NOT EXISTS (SELECT FROM omega.transaction o WHERE o.changed_by < s.first::text::xid8)
      FROM (SELECT count(*) AS records, min({_ms("t.committed_at")}) AS oldest_ms,
                   min(t.changed_by::text::bigint) AS first FROM {NEWEST}) AS s
"""
# The job of the n-th claim: each of `ends` is the number of the claim after the job's last one.
_CLAIMANT: Final = "t.jobs[width_bucket(c.n::integer - 1, t.ends) + 1]"
_CLAIMS: Final = (
    "unnest(t.tasks, t.machines, t.verdicts) WITH ORDINALITY AS c (task, machine, verdict, n)"
)
_VISITS: Final = f"""
    WITH visits AS (
        SELECT t.* FROM {NEWEST} WHERE t.machines @> ARRAY[%(subject)s::integer]
         ORDER BY t.committed_at DESC LIMIT %(most)s
    ), parts AS (
        SELECT t.id, t.scheduler, t.replica, t.committed_at, part.jobs, part.tasks, part.verdicts,
               sum(cardinality(part.tasks)) OVER (
                   ORDER BY t.committed_at DESC, t.id
                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
          FROM visits AS t,
               LATERAL (SELECT array_agg({_CLAIMANT} ORDER BY c.n) AS jobs,
                               array_agg(c.task ORDER BY c.n) AS tasks,
                               array_agg(c.verdict ORDER BY c.n) AS verdicts
                          FROM {_CLAIMS} WHERE c.machine = %(subject)s) AS part
    )
    SELECT t.id, t.scheduler, t.replica, {_ms("t.committed_at")}, t.jobs, t.tasks, t.verdicts
      FROM parts AS t WHERE t.before IS NULL OR t.before < %(told)s
     ORDER BY t.committed_at DESC, t.id
"""
_FIRST_BLOCK: Final = """
    SELECT greatest(0, pg_relation_size('omega.ended_task') - %s)
           / current_setting('block_size')::bigint
"""


def _evictions_of(column: str, records: str) -> str:
    """Return the query for tasks that commits evicted, of one job or on one machine."""
    return f"""
    SELECT t.id, t.scheduler, t.replica, {_ms("t.committed_at")}, e.job, e.task, e.machine,
           (SELECT c.machine FROM {_CLAIMS}
             WHERE c.verdict = {ACCEPTED} AND c.task = e.task AND {_CLAIMANT} = e.job),
           ARRAY(SELECT DISTINCT {_CLAIMANT} FROM {_CLAIMS}
                  WHERE c.verdict = {ACCEPTED} AND c.machine = e.machine ORDER BY 1)
      FROM {records}, unnest(t.evicted_jobs, t.evicted_tasks, t.evicted_machines)
                         AS e (job, task, machine)
     WHERE cardinality(t.evicted_jobs) > 0 AND e.{column} = %(subject)s
     ORDER BY t.committed_at DESC, e.job, e.task LIMIT %(most)s
    """


def _runs_of(column: str) -> str:
    """Return the query for runs that go on or are over, of one job or on one machine."""
    return f"""
    SELECT * FROM (
        (SELECT job_id, task, machine_id, {_ms("started_at")} AS began, NULL::bigint AS over,
                NULL AS cause
           FROM omega.allocation WHERE {column} = %(subject)s
          ORDER BY started_at DESC LIMIT %(most)s)
         UNION ALL
        (SELECT job_id, task, machine_id, {_ms("started_at")}, {_ms("ended_at")}, cause
           FROM omega.ended_task WHERE {column} = %(subject)s AND ctid >= %(first)s::tid
          ORDER BY ended_at DESC LIMIT %(most)s)) AS r
     ORDER BY over DESC NULLS FIRST, began DESC, job_id, task LIMIT %(most)s
    """


class PostgresStories(PostgresInquiries):
    """What is on record of one job or one machine."""

    def __init__(self, link: Link) -> None:
        super().__init__(link)
        self._link = link

    def job_records(self, job: int) -> JobRecords:
        """Return what is on record of a job; nothing of one that never was."""
        searched = self._searched()
        runs, are_all = self._runs("job_id", job)
        numbers = self._earlier(job, runs, searched)
        transactions = self.transactions_of(job, transactions_max=TRANSACTIONS_MAX)
        evictions = self._evictions("job", job)
        if numbers:
            near = {
                "numbers": Big(numbers),
                "near": NEAR_RECORDS_MAX,
                "claims": CLAIMS_SEARCHED_MAX,
            }
            transactions += self._transactions_in(_NEAR, near, job, TRANSACTIONS_MAX)
            evictions += self._evictions("job", job, _NEAR, near)
        transactions = _newest(
            {it.transaction: it for it in transactions}.values(), TRANSACTIONS_MAX
        )
        evictions = _newest(dict.fromkeys(evictions), EVICTIONS_MAX)
        named = sorted(machines_of(transactions, evictions, runs))
        names = self._link.call(
            "SELECT id, name FROM omega.machine_profile WHERE id = ANY (%s)", (Int(named),)
        )
        return JobRecords(
            transactions=tuple(transactions),
            evictions=tuple(evictions),
            runs=runs,
            are_all_runs=are_all,
            searched=replace(searched, near=len(numbers)),
            names={int(number): str(name) for number, name in names},
        )

    def machine_records(self, machine: int) -> MachineRecords:
        """Return what is on record of a machine; nothing of one that never was."""
        rows = self._call(_VISITS, machine, VISITS_MAX, told=VISIT_CLAIMS_MAX)
        runs, are_all = self._runs("machine_id", machine)
        return MachineRecords(
            visits=tuple(_visit(*row) for row in rows),
            evictions=tuple(self._evictions("machine", machine)),
            runs=runs,
            are_all_runs=are_all,
            searched=self._searched(),
        )

    def _searched(self) -> Searched:
        bounds = {"searched": TRANSACTIONS_SEARCHED_MAX, "claims": CLAIMS_SEARCHED_MAX}
        ((found, oldest_ms, are_all),) = self._link.call(_SEARCHED, bounds)
        return Searched(int(found), oldest_ms, are_all=are_all)

    def _earlier(self, job: int, runs: Sequence[PastRun], searched: Searched) -> list[int]:
        """Return the numbers of the records from which a job's earlier commits are searched.

        None if all records are searched anyway.
        """
        if searched.are_all or searched.oldest_ms is None:
            return []
        times = {int(first) for (first,) in self._link.call(_FIRST_LEASED, (job,))}
        times |= {run.started_ms for run in runs}
        times |= {run.ended_ms or 0 for run in runs if run.end is RunEnd.EVICTED}
        earlier = _apart(sorted(each for each in times if each <= searched.oldest_ms))
        if len(earlier) > NEAR_TIMES_MAX:
            earlier = [earlier[0], *earlier[1 - NEAR_TIMES_MAX :]]
        if not earlier:
            return []
        begins = [each - BEFORE_MS for each in earlier]
        return [int(low) for _, low in self._link.call(_NUMBERS, {"times": Big(begins)})]

    def _evictions(
        self,
        column: str,
        subject: int,
        records: str = NEWEST,
        searched: Mapping[str, object] | None = None,
    ) -> list[RecordedEviction]:
        query = _evictions_of(column, records)
        rows = self._call(query, subject, EVICTIONS_MAX, **(searched or {}))
        return [_eviction(*row) for row in rows]

    def _runs(self, column: str, subject: int) -> tuple[tuple[PastRun, ...], bool]:
        """Return the newest runs in the part that is read, and whether these are all."""
        ((block,),) = self._link.call(_FIRST_BLOCK, (RUN_BYTES_MAX,))
        rows = self._call(_runs_of(column), subject, RUNS_MAX + 1, first=f"({block},0)")
        runs = [_run(*row) for row in rows]
        return tuple(runs[:RUNS_MAX]), block == 0 and len(runs) <= RUNS_MAX

    def _call(self, query: str, subject: int, most: int, **more: object) -> list[Any]:
        told = {
            "subject": subject,
            "most": most,
            "searched": TRANSACTIONS_SEARCHED_MAX,
            "claims": CLAIMS_SEARCHED_MAX,
            **more,
        }
        return self._link.call(query, told)


def _apart(times: Sequence[int]) -> list[int]:
    """Return ascending times without those that follow another within BEFORE_MS."""
    kept: list[int] = []
    for each in times:
        if not kept or each - kept[-1] > BEFORE_MS:
            kept.append(each)
    return kept


def _newest(records: Iterable[_Record], most: int) -> list[_Record]:
    return sorted(records, key=lambda it: -it.committed_ms)[:most]


def _run(
    job: int, task: int, machine: int, started_ms: int, ended_ms: int | None, end: str | None
) -> PastRun:
    return PastRun(job, task, machine, started_ms, ended_ms, None if end is None else RunEnd(end))


def _eviction(
    transaction: UUID,
    scheduler: str,
    replica: str,
    committed_ms: int,
    *evicted: Any,  # noqa: ANN401
) -> RecordedEviction:
    job, task, machine, moved_to, for_jobs = evicted
    return RecordedEviction(
        transaction,
        scheduler,
        replica,
        committed_ms,
        job,
        task,
        machine,
        moved_to,
        tuple(map(int, for_jobs)),
    )


def _visit(
    transaction: UUID,
    scheduler: str,
    replica: str,
    committed_ms: int,
    *claims: Any,  # noqa: ANN401
) -> RecordedVisit:
    jobs, tasks, verdicts = (tuple(map(int, column)) for column in claims)
    return RecordedVisit(
        transaction, scheduler, replica, committed_ms, jobs, tasks, tuple(map(Verdict, verdicts))
    )
