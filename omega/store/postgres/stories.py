"""What is on record of one job or one machine, in Postgres.

Goal     Read what `omega.store.stories` needs, with the rights of a reader.
Promise  Records of commits are read from the newest on, by the index on `changed_by`. The history
         of runs has no index, because each end would have to write it: its last RUN_BYTES_MAX are
         read. Nothing is locked, and no commit does more for this.
Source   docs/decisions/0054-why-a-job-waits.md.
"""

from typing import Any, Final
from uuid import UUID

from omega.model.outcomes import ACCEPTED, Verdict
from omega.store.inquiries import TRANSACTIONS_SEARCHED_MAX
from omega.store.postgres.connection import Link
from omega.store.postgres.inquiries import NEWEST, PostgresInquiries
from omega.store.postgres.packing import Int
from omega.store.stories import (
    ATTEMPTS_MAX,
    EVICTIONS_MAX,
    RUNS_MAX,
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

RUN_BYTES_MAX: Final = 128 * 2**20
"""How much of the history of runs is read: some two million runs, in some tenths of a second."""


def _ms(column: str) -> str:
    return f"(extract(epoch FROM {column}) * 1000)::bigint"


_SEARCHED: Final = f"SELECT count(*), min({_ms('t.committed_at')}) FROM {NEWEST}"
# The job of the n-th claim: each of `ends` is the number of the claim after the job's last one.
_CLAIMANT: Final = "t.jobs[width_bucket(c.n::integer - 1, t.ends) + 1]"
_CLAIMS: Final = (
    "unnest(t.tasks, t.machines, t.verdicts) WITH ORDINALITY AS c (task, machine, verdict, n)"
)
_VISITS: Final = f"""
    SELECT t.id, t.scheduler, t.replica, {_ms("t.committed_at")},
           part.jobs, part.tasks, part.verdicts
      FROM {NEWEST},
           LATERAL (SELECT array_agg({_CLAIMANT} ORDER BY c.n) AS jobs,
                           array_agg(c.task ORDER BY c.n) AS tasks,
                           array_agg(c.verdict ORDER BY c.n) AS verdicts
                      FROM {_CLAIMS} WHERE c.machine = %(subject)s) AS part
     WHERE t.machines @> ARRAY[%(subject)s::integer]
     ORDER BY t.committed_at DESC LIMIT %(most)s
"""
_FIRST_BLOCK: Final = """
    SELECT greatest(0, pg_relation_size('omega.ended_task') - %s)
           / current_setting('block_size')::bigint
"""


def _evictions_of(column: str) -> str:
    """Return the query for tasks that commits evicted, of one job or on one machine."""
    return f"""
    SELECT t.id, t.scheduler, t.replica, {_ms("t.committed_at")}, e.job, e.task, e.machine,
           (SELECT c.machine FROM {_CLAIMS}
             WHERE c.verdict = {ACCEPTED} AND c.task = e.task AND {_CLAIMANT} = e.job),
           ARRAY(SELECT DISTINCT {_CLAIMANT} FROM {_CLAIMS}
                  WHERE c.verdict = {ACCEPTED} AND c.machine = e.machine ORDER BY 1)
      FROM {NEWEST}, unnest(t.evicted_jobs, t.evicted_tasks, t.evicted_machines)
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
        attempts = tuple(self.attempts_of(job, attempts_max=ATTEMPTS_MAX))
        evictions = self._evictions("job", job)
        runs, are_all = self._runs("job_id", job)
        named = sorted(machines_of(attempts, evictions, runs))
        names = self._link.call(
            "SELECT id, name FROM omega.machine_profile WHERE id = ANY (%s)", (Int(named),)
        )
        return JobRecords(
            attempts=attempts,
            evictions=evictions,
            runs=runs,
            are_all_runs=are_all,
            searched=self._searched(),
            names={int(number): str(name) for number, name in names},
        )

    def machine_records(self, machine: int) -> MachineRecords:
        """Return what is on record of a machine; nothing of one that never was."""
        rows = self._call(_VISITS, machine, VISITS_MAX)
        runs, are_all = self._runs("machine_id", machine)
        return MachineRecords(
            visits=tuple(_visit(*row) for row in rows),
            evictions=self._evictions("machine", machine),
            runs=runs,
            are_all_runs=are_all,
            searched=self._searched(),
        )

    def _searched(self) -> Searched:
        searched = TRANSACTIONS_SEARCHED_MAX
        ((found, oldest_ms),) = self._link.call(_SEARCHED, {"searched": searched})
        return Searched(int(found), oldest_ms, are_all=found < searched)

    def _evictions(self, column: str, subject: int) -> tuple[RecordedEviction, ...]:
        rows = self._call(_evictions_of(column), subject, EVICTIONS_MAX)
        return tuple(_eviction(*row) for row in rows)

    def _runs(self, column: str, subject: int) -> tuple[tuple[PastRun, ...], bool]:
        """Return the newest runs, and whether no other is on record."""
        ((block,),) = self._link.call(_FIRST_BLOCK, (RUN_BYTES_MAX,))
        rows = self._call(_runs_of(column), subject, RUNS_MAX + 1, first=f"({block},0)")
        runs = [_run(*row) for row in rows]
        return tuple(runs[:RUNS_MAX]), block == 0 and len(runs) <= RUNS_MAX

    def _call(self, query: str, subject: int, most: int, **more: str) -> list[Any]:
        told = {"subject": subject, "most": most, "searched": TRANSACTIONS_SEARCHED_MAX, **more}
        return self._link.call(query, told)


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
