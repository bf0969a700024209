"""Statements of the benchmarks: the server's settings, counts and times, and emptying tables."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import psutil
from numpy.typing import NDArray

from omega.errors import OmegaError
from omega.model.outcomes import Verdict
from omega.model.resources import COLUMNS
from omega.store.postgres.connection import Link
from omega.store.postgres.store import PostgresStore

SETTINGS: Final = (
    "server_version",
    "fsync",
    "synchronous_commit",
    "full_page_writes",
    "shared_buffers",
    "max_wal_size",
    "checkpoint_timeout",
    "wal_level",
    "autovacuum_naptime",
)
"""Settings of a server that tell whether two documents are comparable."""

PROCESSES: Final = """
    SELECT pid FROM pg_stat_activity
     WHERE datname = current_database() AND pid <> pg_backend_pid()
        OR backend_type IN ('walwriter', 'checkpointer', 'background writer')
"""

TIMEOUT_MS: Final = 600_000
"""Time limit of statements that may take long."""
VERDICTS_BY_JOB: Final = """(
    SELECT p.job, t.committed_at, t.verdicts[coalesce(t.ends[p.n - 1], 0) + 1 : p.stop] AS verdicts
      FROM omega.transaction t, unnest(t.jobs, t.ends) WITH ORDINALITY AS p (job, stop, n)
) AS verdicts_by_job"""
"""The verdicts of each job in each transaction."""


def connect(url: str) -> Link:
    """Return a connection for statements that may take long."""
    return Link(url, application_name="omega benchmark", statement_timeout_ms=TIMEOUT_MS)


def store(url: str) -> PostgresStore:
    """Return the store, for calls that may take long."""
    return PostgresStore(url, application_name="omega benchmark", statement_timeout_ms=TIMEOUT_MS)


def server_settings(link: Link) -> Mapping[str, str]:
    """Return the server's values of SETTINGS."""
    return dict(
        link.call(
            "SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY (%s)",
            (list(SETTINGS),),
        )
    )


def count_transactions(link: Link) -> int:
    """Count the transactions on record."""
    ((count,),) = link.call("SELECT count(*) FROM omega.transaction")
    return int(count)


def count_refused(link: Link) -> int:
    """Count the refused claims of all transactions on record."""
    ((count,),) = link.call(
        "SELECT count(*) FROM omega.transaction, unnest(verdicts) AS verdict WHERE verdict <> %s",
        (int(Verdict.ACCEPTED),),
    )
    return int(count)


def count_evicted(link: Link) -> int:
    """Count the tasks that all transactions on record evicted, those of broken gangs included."""
    ((count,),) = link.call(
        "SELECT coalesce(sum(cardinality(evicted_tasks)), 0) FROM omega.transaction", ()
    )
    return int(count)


def touch(link: Link, count: int, machines: int, *, first: int) -> None:
    """Change `count` rows, spread evenly over the machines, in one transaction, as task ends do."""
    link.call(
        "WITH changed AS (UPDATE omega.machine"
        " SET revision = revision + 1, changed_by = pg_current_xact_id()"
        " WHERE id IN (SELECT 1 + (%(first)s + n * %(machines)s::bigint / %(count)s)"
        " %% %(machines)s FROM generate_series(0, %(count)s - 1) AS n) RETURNING id)"
        " INSERT INTO omega.machine_change (machines)"
        " SELECT array_agg(id) FROM changed HAVING count(*) > 0",
        {"first": first, "count": count, "machines": machines},
    )


def has_work(link: Link) -> bool:
    """Return whether any job is pending, planning or parked."""
    ((found,),) = link.call(
        "SELECT EXISTS (SELECT FROM omega.job WHERE state = 'pending')"
        " OR EXISTS (SELECT FROM omega.job WHERE state = 'planning')"
        " OR EXISTS (SELECT FROM omega.job WHERE state = 'parked')"
    )
    return bool(found)


def times_of_jobs(link: Link, *, after: int) -> list[NDArray[Any]]:
    """Return the ids above `after` of jobs that were committed, and their times, as columns.

    The columns are the id, and the times of submission, first lease, first and last commit, in
    seconds of the server's clock. A commit reads its time at its end, before the flush to disk.
    """
    rows = link.call(
        "SELECT j.id, extract(epoch FROM j.submitted_at)::float8,"
        " extract(epoch FROM j.first_leased_at)::float8,"
        " extract(epoch FROM c.first)::float8, extract(epoch FROM c.last)::float8"
        " FROM omega.job j, (SELECT job, min(committed_at) AS first, max(committed_at) AS last"
        f" FROM {VERDICTS_BY_JOB} WHERE job > %s AND 0 = ANY (verdicts) GROUP BY job) AS c"
        " WHERE c.job = j.id ORDER BY j.id",
        (after,),
    )
    return [np.array(column) for column in zip(*rows, strict=True)] or [np.zeros(0)] * 5


def count_conflicts(link: Link) -> tuple[int, int]:
    """Return (jobs with a refused claim, all jobs), summed over the transactions."""
    ((refused, all_),) = link.call(
        f"SELECT count(*) FILTER (WHERE 0 <> ANY (verdicts)), count(*) FROM {VERDICTS_BY_JOB}"
    )
    return int(refused), int(all_)


def empty(link: Link) -> None:
    """Remove all jobs and history at once; the machines stay, unused.

    Views receive the changed rows as after the end of tasks. Tables are locked in the order in
    which a lease locks them.
    """
    link.call(
        "TRUNCATE omega.job, omega.job_spec, omega.allocation, omega.ended_task,"
        " omega.transaction, omega.machine_change"
    )
    link.call("SELECT omega.forget_changes()")
    unused = ", ".join(f"{kind}_used = 0" for kind in COLUMNS)
    link.call(
        f"WITH emptied AS (UPDATE omega.machine SET {unused}, revision = revision + 1,"
        " changed_by = pg_current_xact_id() RETURNING id)"
        " INSERT INTO omega.machine_change (machines) SELECT array_agg(id) FROM emptied"
        " HAVING count(*) > 0"
    )
    link.call("VACUUM (ANALYZE) omega.machine")


def cpu_s_of_server(link: Link) -> float:
    """Return the processor time of the server's processes that work for this database.

    Raises OmegaError if they are not of this machine.
    """
    total = 0.0
    for (pid,) in link.call(PROCESSES):
        try:
            process = psutil.Process(pid)
            if "postgres" not in process.name():
                raise psutil.NoSuchProcess(pid)
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            raise OmegaError("the database's processes are not of this machine") from None
        total += times.user + times.system
    return total
