"""Retention: what is over is removed when it is old enough.

Goal     Let the tables of history stop growing, on a cell that is at work.
Promise  In small transactions, each of which reads some blocks of a table once and waits for
         nobody; interrupted, what is done is done. Live jobs and allocations are not touched, and
         every invariant holds after each step.
Source   functions/history.sql; docs/decisions/0019-history.md.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Final

from omega.store.postgres.connection import Link

TABLES: Final = ("machine_change", "transaction", "ended_task", "job")
"""In this order: a job goes once no commit on record is as old as its end."""
BLOCKS_AT_A_TIME: Final = 512
"""Four megabytes: some fifty thousand ended tasks, a fraction of a second."""

Progress = Callable[[int, int], None]
"""Told how many blocks of how many are done."""


def prune(
    url: str, *, older_than_ms: int, statement_timeout_ms: int, progress: Progress
) -> Mapping[str, int]:
    """Remove what has been over for longer than that; return how many rows of each table."""
    link = Link(url, application_name="omega prune", statement_timeout_ms=statement_timeout_ms)
    with closing(link):
        link.call("SELECT omega.forget_changes()")
        blocks = list(_blocks(link))
        pruned = dict.fromkeys(TABLES, 0)
        for done, (table, block) in enumerate(blocks, start=1):
            ((rows,),) = link.call(
                "SELECT omega.prune_history(%s, %s::bigint, %s::bigint, %s::bigint)",
                (table, older_than_ms, block, BLOCKS_AT_A_TIME),
            )
            pruned[table] += rows
            progress(done, len(blocks))
        return pruned


def _blocks(link: Link) -> Iterator[tuple[str, int]]:
    for table in TABLES:
        ((blocks,),) = link.call(
            "SELECT pg_relation_size(%s::regclass) / current_setting('block_size')::bigint",
            (f"omega.{table}",),
        )
        for block in range(0, blocks, BLOCKS_AT_A_TIME):
            yield table, block
