"""Allocations as Postgres returns them: arrays, and the mark of the statement that read them.

Goal     Unpack the result of every function that reads allocations.
Promise  One call is one statement on one snapshot; nothing is decided here.
Source   docs/decisions/0008-packed-rows.md.
"""

from omega.model.allocations import Allocations
from omega.model.resources import KINDS
from omega.store.postgres.connection import Link


def read_allocations(link: Link, call: str, *parameters: object) -> tuple[Allocations, int]:
    """Call a function that reads allocations, given as SQL text; return them and the next mark."""
    ((next_mark, job, task, machine, started, duration, amounts),) = link.call(
        f"SELECT mark, jobs, tasks, machines, started_ms, durations_ms, amounts FROM omega.{call}",
        parameters,
    )
    shaped = amounts.reshape(len(job), KINDS)
    return Allocations(job, task, machine, shaped, started, duration), int(next_mark)
