"""Puts a saved cell into an empty database: machines, jobs, queue, running tasks, quotas, tenants.

Goal     Have the cell of a file again, to look at, to try something on, or after a disaster.
Promise  All of it or nothing, and only in a database whose cell is empty. Ids, sequences and names
         are as they were. Times are moved by the time since the cell was saved, so that tasks have
         as long to run, and jobs have waited as long, as then. Leases are over: a job that was
         being planned is pending. Every invariant is checked before anybody sees the cell. Only the
         owner may do this.
Source   docs/decisions/0055-snapshots-and-what-if.md; PostgreSQL's manual, "COPY".
"""

from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any, Final

from psycopg import sql
from psycopg.types.json import Jsonb

from omega.errors import BadInput, InvariantBroken
from omega.lifecycle.states import State
from omega.model.lanes import job_demand, lane_class
from omega.model.machines import Catalogue
from omega.model.resources import COLUMNS
from omega.model.wire import spec_to_wire
from omega.store.postgres.column_types import SCHEMA
from omega.store.postgres.connection import Cursor, Link
from omega.store.postgres.packing import Big
from omega.store.saved.cell import SavedCell, SavedJob

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Nobody submits jobs, sets quotas or tenants, or adds machines until the cell is whole.
_LOCK: Final = """
    LOCK TABLE omega.job, omega.quota, omega.tenant, omega.machine IN SHARE ROW EXCLUSIVE MODE
"""
_FOUND: Final = """
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
           (SELECT count(*) FROM omega.machine), (SELECT count(*) FROM omega.job),
           (SELECT count(*) FROM omega.quota), (SELECT count(*) FROM omega.tenant),
           (SELECT count(*) FROM omega.transaction)
"""
_SET_CELL: Final = """
    UPDATE omega.cell SET generation = generation + 1, catalogue = %s, precedence_gap = %s
    RETURNING generation
"""
_RECORD_CHANGE: Final = """
    INSERT INTO omega.machine_change (machines) SELECT array_agg(id) FROM omega.machine
    HAVING count(*) > 0
"""
_PASS_OVER: Final = """
    SELECT setval(n, greatest(nextval(n), %s))
      FROM pg_get_serial_sequence('omega.job', 'id') AS n
"""
_PROBLEM: Final = """
    SELECT s.job_id, p.problem
      FROM omega.job_spec s, omega.problem_with_job(s.wire) AS p (problem)
     WHERE p.problem IS NOT NULL ORDER BY s.job_id LIMIT 1
"""
# As omega.count_quota does; it need not wait for commits that do not know the quota, because no
# commit can have known these machines.
_SET_QUOTA: Final = "SELECT omega.set_quota(%s, %s, %s)"
_COUNT_QUOTAS: Final = """
    WITH held AS (
        SELECT q.id, q.limits, coalesce(u.used, array_fill(0::bigint, ARRAY[cardinality(q.limits)]))
                     AS used
          FROM omega.quota q LEFT JOIN omega.used_of_quotas() AS u ON u.quota = q.id
    ), settled AS (
        SELECT omega.settle_quotas(ARRAY[id], ARRAY[NULL]::integer[], omega.minus(limits, used),
                                   array_fill(0::bigint, ARRAY[cardinality(limits)]))
          FROM held
    )
    SELECT count(*) FROM settled
"""
_COUNTED: Final = "UPDATE omega.quota SET counted = true"
_VERIFY: Final = "SELECT invariant, subject, detail FROM omega.verify() LIMIT 1"


def restore_cell(url: str, cell: SavedCell, *, file: str, statement_timeout_ms: int) -> int:
    """Put a saved cell into the database; return by how many milliseconds its times were moved.

    `file` is where the cell was read, for errors. Raises BadInput if the cell there is not empty,
    or if the saved one is not sound, NotAllowed to all but the owner, and as Link.call does. After
    an error the database is as it was.
    """
    link = Link(url, application_name="omega restore", statement_timeout_ms=statement_timeout_ms)
    with closing(link):
        try:
            return link.together(lambda cursor: _Restoring(cursor, cell, file).run())
        except InvariantBroken as error:  # a CHECK of a table
            raise BadInput(f"the saved cell is not sound: {error.what}", file=file) from error


class _Restoring:
    """One transaction that fills the tables."""

    def __init__(self, cursor: Cursor, cell: SavedCell, file: str) -> None:
        self._cursor = cursor
        self._cell = cell
        self._file = file
        self._moved_ms = 0

    def run(self) -> int:
        self._cursor.execute("SELECT omega.begin_incarnation()")
        self._cursor.execute(_LOCK)
        ((now_ms, *there),) = self._read(_FOUND)
        machines, jobs, quotas, tenants, transactions = there
        if any(there):
            raise BadInput(
                f"the cell of this database is not empty ({machines:,} machines, {jobs:,} jobs,"
                f" {quotas:,} quotas, {tenants:,} tenants, {transactions:,} recorded commits):"
                " restore into another"
            )
        self._moved_ms = now_ms - self._cell.taken_ms
        generation = self._write_machines()
        self._write_jobs(generation)
        self._write_running()
        self._write_quotas()
        self._copy(
            "tenant",
            ("name", "weight", "parent"),
            ((tenant.name, tenant.weight, tenant.parent) for tenant in self._cell.tenants),
        )
        for invariant, subject, detail in self._read(_VERIFY):
            broken = f"{invariant}; {subject}: {detail}"
            raise BadInput(f"the saved cell is not sound: {broken}", file=self._file)
        return self._moved_ms

    def _write_machines(self) -> int:
        """Write machines and settings; return the generation of the cell."""
        saved, used = self._cell.machines, self._cell.used
        catalogue, codes = Catalogue().encode(saved.machines)
        wire = Jsonb({"names": catalogue.names, "values": catalogue.values})
        ((generation,),) = self._read(_SET_CELL, (wire, self._cell.precedence_gap))
        names = saved.machines.names
        self._copy(
            "machine_profile",
            ("id", "name", "codes", "address"),
            zip(saved.id.tolist(), names, codes.tolist(), saved.address, strict=True),
        )
        self._copy(
            "machine",
            (
                *("id", "sequence", "revision", "state", "notice", "notice_ends_at"),
                *(f"{kind}_capacity" for kind in COLUMNS),
                *(f"{kind}_used" for kind in COLUMNS),
            ),
            (
                (
                    *(machine, sequence, revision, state, None if ends_ms is None else notice),
                    *(self._moment(ends_ms), *capacity, *taken),
                )
                for machine, sequence, revision, state, notice, ends_ms, capacity, taken in zip(
                    saved.id.tolist(),
                    saved.sequence.tolist(),
                    saved.revision.tolist(),
                    saved.state.tolist(),
                    saved.notice.tolist(),
                    saved.notice_ends_ms,
                    saved.machines.capacity.tolist(),
                    used.tolist(),
                    strict=True,
                )
            ),
        )
        self._cursor.execute(_RECORD_CHANGE)
        return int(generation)

    def _write_jobs(self, generation: int) -> None:
        jobs = [job for job in self._cell.jobs if job.goes_on]
        running: dict[int, int] = {}
        for job in self._cell.running.job.tolist():
            running[job] = running.get(job, 0) + 1
        self._copy(
            "job",
            _JOB_COLUMNS,
            (self._job(job, job.placed - running.get(job.id, 0), generation) for job in jobs),
        )
        self._copy("job_spec", _SPEC_COLUMNS, map(_spec, jobs))
        self._copy(
            "progress",
            ("job_id", "steps", "run_ms"),
            ((job.id, *job.progress) for job in jobs if job.progress is not None),
        )
        self._copy(
            "phase_progress",
            ("job_id", "phase", "done", "busy_ms"),
            ((job.id, phase, *it) for job in jobs for phase, it in enumerate(job.phases)),
        )
        for job_id, problem in self._read(_PROBLEM):
            raise BadInput(f"job {job_id}: {problem}", file=self._file, field="spec")
        if jobs:
            self._read(_PASS_OVER, (jobs[-1].id,))

    def _job(self, job: SavedJob, ended: int, generation: int) -> tuple[object, ...]:
        spec, state = job.spec, job.state
        if state is State.PLANNING:
            state = State.PENDING if job.unplaced else State.RUNNING
        parked = state is State.PARKED
        return (
            *(job.id, spec.scheduler, spec.precedence, state.value, spec.tasks, spec.minimum),
            *(job.placed, ended, _multirange(job.unplaced), self._moment(job.not_before_ms)),
            *(job.attempts, job.fruitless),
            None if job.park_reason is None else job.park_reason.value,
            job.park_detail,
            (generation if job.is_parked_for_now else generation - 1) if parked else None,
            *(self._moment(job.submitted_ms), self._moment(job.first_leased_ms)),
            *(spec.preemptible, job.evicted_by, self._moment(job.evicted_ms)),
            None if spec.workers is None else spec.workers.at_most,
            *(job.parent, job.failed, self._moment(job.precedence_set_ms)),
            *(spec.tenant, lane_class(spec), job.submitted_ms + self._moved_ms),
        )

    def _write_running(self) -> None:
        running = self._cell.running
        self._copy(
            "allocation",
            ("job_id", "task", "machine_id", "started_at", *COLUMNS),
            (
                (job, task, machine, self._moment(started_ms), *amounts)
                for job, task, machine, started_ms, amounts in zip(
                    running.job.tolist(),
                    running.task.tolist(),
                    running.machine.tolist(),
                    running.started_ms.tolist(),
                    running.amounts.tolist(),
                    strict=True,
                )
            ),
        )

    def _write_quotas(self) -> None:
        for quota in self._cell.quotas:
            self._read(_SET_QUOTA, (quota.scope.value, quota.name, Big(quota.row)))
        self._read(_COUNT_QUOTAS)
        self._cursor.execute(_COUNTED)

    def _moment(self, ms: int | None) -> datetime | None:
        return None if ms is None else _EPOCH + timedelta(milliseconds=ms + self._moved_ms)

    def _read(self, query: str, parameters: Sequence[object] = ()) -> list[Any]:
        return self._cursor.execute(query.encode(), parameters).fetchall()

    def _copy(self, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
            sql.Identifier(SCHEMA, table), sql.SQL(", ").join(map(sql.Identifier, columns))
        )
        with self._cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)


_JOB_COLUMNS: Final = (
    *("id", "scheduler", "precedence", "state", "tasks", "minimum"),
    *("placed", "ended", "unplaced", "not_before"),
    *("attempts", "fruitless", "park_reason", "park_detail", "park_generation"),
    *("submitted_at", "first_leased_at", "preemptible", "evicted_by", "evicted_at"),
    *("workers_max", "parent", "failed", "precedence_set_at"),
    *("tenant", "lane_class", "order_key"),
)
_SPEC_COLUMNS: Final = (
    *("job_id", "name", "tenant", "needs_sibling_machines"),
    *("group_starts", "group_durations_ms", "demand", "wire"),
)


def _spec(job: SavedJob) -> tuple[object, ...]:
    """Return a row of `job_spec`, as omega.submit_jobs writes it."""
    spec = job.spec
    groups = spec.groups
    return (
        *(job.id, spec.name, spec.tenant),
        any(group.spread_over is not None or group.different_machines for group in groups),
        [0, *accumulate(group.tasks for group in groups[:-1])],
        [group.duration_ms for group in groups],
        job_demand(spec).tolist(),
        Jsonb(spec_to_wire(spec)),
    )


def _multirange(ranges: Sequence[tuple[int, int]]) -> str:
    return "{" + ",".join(f"[{first},{stop})" for first, stop in ranges) + "}"
