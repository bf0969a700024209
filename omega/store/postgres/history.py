"""Retention: records of the past are removed when they are old enough.

Goal     Keep the history tables from growing, while the cell is at work.
Promise  Each transaction is small: it reads some blocks of a table once and waits for no lock. An
         interrupted run keeps what it has done. Unfinished jobs and allocations are not touched.
         Every invariant holds after each step.
Source   functions/history.sql; docs/decisions/0019-history.md.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Final

from omega.store.postgres.connection import Link

TABLES: Final = (
    "machine_change",
    "transaction",
    "ended_task",
    "task_exit",
    "job",
    "task_output",
    "pipeline",
    "stage_cost",
    "pipeline_tokens",
)
"""In this order: a job is removed once every recorded commit is newer than its end, and what was
learnt of a template once its last pipeline is."""
BLOCKS_AT_A_TIME: Final = 512
"""Four megabytes: some fifty thousand ended tasks, which take a fraction of a second."""

Progress = Callable[[int, int], None]
"""Is called with the number of blocks done, and of all blocks."""


def prune(
    url: str, *, older_than_ms: int, statement_timeout_ms: int, progress: Progress
) -> Mapping[str, int]:
    """Remove records older than that; return the number of removed rows by table."""
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
