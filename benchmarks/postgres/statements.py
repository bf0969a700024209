"""Statements of the benchmarks: what the server says of itself, and the tables made empty again."""

from collections.abc import Mapping
from typing import Final

from omega.model.outcomes import Verdict
from omega.model.resources import COLUMNS
from omega.store.postgres.connection import Link

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
"""What one has to know of a server to compare two documents."""


def connect(url: str) -> Link:
    """Return a connection for statements that take as long as they take."""
    return Link(url, application_name="omega benchmark", statement_timeout_ms=600_000)


def server_settings(link: Link) -> Mapping[str, str]:
    """Return what the server is set to."""
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


def touch(link: Link, count: int, machines: int, *, first: int) -> None:
    """Change so many rows, evenly over the machines, in one transaction, as ends of tasks do."""
    link.call(
        "UPDATE omega.machine SET revision = revision + 1, changed_by = pg_current_xact_id()"
        " WHERE id IN (SELECT 1 + (%(first)s + n * %(machines)s::bigint / %(count)s)"
        " %% %(machines)s FROM generate_series(0, %(count)s - 1) AS n)",
        {"first": first, "count": count, "machines": machines},
    )


def empty(link: Link) -> None:
    """End all work at once: an unused cell of the same machines, without jobs or history."""
    link.call(
        "TRUNCATE omega.allocation, omega.transaction, omega.ended_task, omega.job, omega.job_spec"
    )
    link.call("UPDATE omega.machine SET " + ", ".join(f"{kind}_used = 0" for kind in COLUMNS))
    link.call("VACUUM (ANALYZE) omega.machine")
