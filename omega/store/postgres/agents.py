"""What agents ask and report, in Postgres.

Goal     Pass calls to `exits.sql` and `machine_leases.sql`, and return the answers; nothing is
         decided here.
Promise  A job whose row this program cannot read is left out.
Source   docs/decisions/0044-programs-and-agents.md.
"""

from collections.abc import Mapping, Sequence
from uuid import UUID

import numpy as np

from omega.errors import BadInput
from omega.model.arrays import Ids, Index, Mask
from omega.model.exits import Exit, ExitCause, PastExit, TaskExit, TaskOutput
from omega.model.jobs import JobSpec
from omega.model.wire import spec_from_wire
from omega.store.postgres.connection import Link
from omega.store.postgres.incarnations import joined
from omega.store.postgres.json_text import decoded
from omega.store.postgres.packing import Big, Int
from omega.store.readable import readable_sentence

_NO_CODE = -1
_NO_SIGNAL = 0
_EXITS = """
    SELECT e.task, p.name, (extract(epoch FROM e.started_at) * 1000)::bigint,
           (extract(epoch FROM e.ended_at) * 1000)::bigint,
           e.cause, e.code, e.signal, e.restarts, e.detail
      FROM omega.task_exit e JOIN omega.machine_profile p ON p.id = e.machine_id
     WHERE e.job_id = %s
     ORDER BY e.code IS NOT DISTINCT FROM 0, e.ended_at DESC, e.task DESC LIMIT %s
"""
_OUTPUT = """
    SELECT (extract(epoch FROM started_at) * 1000)::bigint, bytes_total, tail
      FROM omega.task_output WHERE job_id = %s AND task = %s AND stream = %s
"""
_SIZES = """
    SELECT task, (extract(epoch FROM started_at) * 1000)::bigint, stream, bytes_total
      FROM omega.task_output WHERE job_id = %s ORDER BY task, stream
"""


class PostgresAgents:
    """What runs on an agent's machines, and what became of it."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def machine_revision(self, machine: int) -> tuple[int, int]:
        """Return the revision of an own machine's row, and the mark of the read."""
        ((revision, mark, incarnation),) = self._link.call(
            "SELECT revision, mark, incarnation FROM omega.machine_revision(%s)", (machine,)
        )
        return joined(incarnation, revision), joined(incarnation, mark)

    def running(self, job: Ids, task: Index, started_ms: Ids) -> Mask:
        """Return which of these tasks have the allocation that began then, on own machines."""
        ((are_running,),) = self._link.call(
            "SELECT omega.are_running(%s, %s, %s)", (Big(job), Int(task), Big(started_ms))
        )
        return np.array(are_running, dtype=np.bool_)

    def programs(self, jobs: Ids) -> Mapping[int, JobSpec]:
        """Return those of these jobs that have a task on an own machine, ascending by id."""
        rows = self._link.call("SELECT id, wire FROM omega.read_programs(%s)", (Big(jobs),))
        readable: dict[int, JobSpec] = {}
        for job, wire in rows:
            try:
                readable[int(job)] = spec_from_wire(decoded(wire))
            except BadInput:
                continue
        return readable

    def addresses(self, jobs: Ids) -> Mapping[int, Mapping[int, str]]:
        """Return where the tasks of those of these gangs run, by job and task."""
        found: dict[int, dict[int, str]] = {}
        for job, task, address in self._link.call(
            "SELECT job_id, task, address FROM omega.read_addresses(%s)", (Big(jobs),)
        ):
            found.setdefault(int(job), {})[int(task)] = str(address)
        return found

    def report_exits(self, exits: Sequence[TaskExit]) -> int:
        """End those of these tasks whose allocation began then; return how many there were.

        Raises StoreBusy at the first lock that it does not get, so that callers try jobs alone.
        """
        how = [it.exit for it in exits]
        ((recorded,),) = self._link.call(
            "SELECT omega.report_exits(%s, %s, %s, %s::text[], %s, %s, %s, %s::text[])",
            (
                *_named(exits),
                [it.cause.value for it in how],
                Int([_NO_CODE if it.code is None else it.code for it in how]),
                Int([it.signal or _NO_SIGNAL for it in how]),
                Int([it.restarts for it in how]),
                [readable_sentence(it.detail) for it in how],
            ),
            repeats_lock_timeouts=False,
        )
        return int(recorded)

    def report_outputs(self, outputs: Sequence[TaskOutput]) -> None:
        """Keep the ends of outputs of tasks that run on own machines, or exited there."""
        self._link.call(
            "SELECT omega.report_outputs(%s, %s, %s, %s::text[], %s, %s::bytea[])",
            (
                *_named(outputs),
                [it.stream for it in outputs],
                Big([it.bytes_total for it in outputs]),
                [it.tail for it in outputs],
            ),
        )

    def hold_machine(self, machine: int, holder: UUID, *, lease_ms: int) -> bool:
        """Prolong this agent's lease of an own machine, or take it; False if another has it."""
        ((is_held,),) = self._link.call(
            "SELECT omega.hold_machine(%s, %s, %s)", (machine, holder, lease_ms)
        )
        return bool(is_held)

    def leave_machine(self, machine: int, holder: UUID) -> int:
        """End this agent's lease, take the machine down, and evict its tasks; return how many."""
        # Two transactions, because an eviction locks jobs before machines.
        ((has_left,),) = self._link.call("SELECT omega.leave_machine(%s, %s)", (machine, holder))
        if not has_left:
            return 0
        ((lost,),) = self._link.call("SELECT omega.lose_own_tasks(%s)", (machine,))
        return int(lost)

    def free_machine(self, machine: int, holder: UUID) -> bool:
        """Remove the lease of an own machine; False if another agent has it."""
        ((is_free,),) = self._link.call("SELECT omega.free_machine(%s, %s)", (machine, holder))
        return bool(is_free)

    def exits(self, job: int, *, exits_max: int = 100) -> list[PastExit]:
        """Return how tasks of a job ended: those that failed first, and the newest first."""
        return [
            PastExit(
                job=job,
                task=task,
                machine=machine,
                started_ms=started_ms,
                ended_ms=ended_ms,
                exit=Exit(
                    cause=ExitCause(cause),
                    code=code,
                    signal=signal,
                    restarts=restarts,
                    detail=detail,
                ),
            )
            for task, machine, started_ms, ended_ms, cause, code, signal, restarts, detail in (
                self._link.call(_EXITS, (job, exits_max))
            )
        ]

    def output(self, job: int, task: int, stream: str) -> TaskOutput | None:
        """Return the end of an output of a task, as far as it was reported."""
        rows = self._link.call(_OUTPUT, (job, task, stream))
        return TaskOutput(job, task, rows[0][0], stream, *rows[0][1:]) if rows else None

    def output_sizes(self, job: int) -> list[TaskOutput]:
        """Return all outputs of a job without their tails, by task and stream."""
        return [
            TaskOutput(job, task, started_ms, stream, bytes_total, b"")
            for task, started_ms, stream, bytes_total in self._link.call(_SIZES, (job,))
        ]


def _named(tasks: Sequence[TaskExit] | Sequence[TaskOutput]) -> tuple[Big, Int, Big]:
    return (
        Big([it.job for it in tasks]),
        Int([it.task for it in tasks]),
        Big([it.started_ms for it in tasks]),
    )
