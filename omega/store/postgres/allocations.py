"""Allocations as Postgres returns them: arrays, and the mark of the statement that read them.

Goal     Unpack the result of every function that reads allocations.
Promise  One call is one statement on one snapshot; nothing is decided here.
Source   docs/decisions/0008-packed-rows.md.
"""

from typing import Final

from omega.model.allocations import Allocations
from omega.model.arrays import Amounts, Ids, Index
from omega.model.resources import KINDS
from omega.store.postgres.connection import Link
from omega.store.postgres.incarnations import divided, joined

_COLUMNS: Final = "mark, jobs, tasks, machines, started_ms, durations_ms, amounts"


def read_allocations(link: Link, call: str, *parameters: object) -> tuple[Allocations, int]:
    """Call a function that reads allocations, given as SQL text; return them and the next mark."""
    ((next_mark, *columns),) = link.call(f"SELECT {_COLUMNS} FROM omega.{call}", parameters)
    return _allocations(*columns), int(next_mark)


def read_own_allocations(link: Link, mark: int) -> tuple[Allocations, int]:
    """Read what was granted on own machines since a mark; return it and the next mark."""
    incarnation, since = divided(mark)
    ((next_mark, *columns, now),) = link.call(
        f"SELECT {_COLUMNS}, incarnation FROM omega.own_allocations(%s::bigint, %s::bigint)",
        (since, incarnation),
    )
    return _allocations(*columns), joined(now, next_mark)


def _allocations(
    job: Ids, task: Index, machine: Index, started_ms: Ids, duration_ms: Ids, amounts: Amounts
) -> Allocations:
    shaped = amounts.reshape(len(job), KINDS)
    return Allocations(job, task, machine, shaped, started_ms, duration_ms)
