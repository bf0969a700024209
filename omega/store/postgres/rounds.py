"""Rounds in Postgres, and the running jobs that they plan.

Goal     Pass rounds to their functions and return the answers; nothing is decided here.
Promise  All times that are compared are of the server's clock.
Source   docs/decisions/0028-rounds-on-the-shared-cell.md.
"""

from collections.abc import Mapping, Sequence

from psycopg.types.json import Jsonb

from omega.model.allocations import Allocations
from omega.model.jobs import LeasedJob
from omega.model.round_summary import RoundSummary
from omega.store.postgres.allocations import read_allocations
from omega.store.postgres.connection import Link
from omega.store.postgres.jobs import leased_jobs
from omega.store.postgres.json_text import an_object
from omega.store.postgres.packing import Big
from omega.store.rounds import LastRound, NotYet, Round


class PostgresRounds:
    """Rounds of schedulers, and the allocations of jobs."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def begin_round(self, scheduler: str, *, holder: str, length_ms: int) -> Round | NotYet:
        """Begin the next round of a kind of scheduler if the last one is over; otherwise NotYet."""
        ((number, began_ms, memo, due_in_ms),) = self._link.call(
            "SELECT number, began_ms, memo, due_in_ms FROM omega.begin_round(%s, %s, %s)",
            (scheduler, holder, length_ms),
        )
        if number is None:
            return NotYet(due_in_ms)
        return Round(number, began_ms, an_object(memo))

    def last_rounds(self) -> list[LastRound]:
        """Return the last round of each kind of scheduler that has had one, by kind."""
        rows = self._link.call(
            "SELECT scheduler, number, began_ms, length_ms, told FROM omega.read_rounds()"
        )
        return [
            LastRound(kind, number, began_ms, length_ms, RoundSummary.of(an_object(told)))
            for kind, number, began_ms, length_ms, told in rows
        ]

    def note_round(self, scheduler: str, number: int, memo: Mapping[str, object]) -> bool:
        """Keep the memo for the next round; return False if that has begun already."""
        ((kept,),) = self._link.call(
            "SELECT omega.note_round(%s, %s, %s)", (scheduler, number, Jsonb(memo))
        )
        return bool(kept)

    def recall(
        self, scheduler: str, number: int, jobs: Sequence[int] | None, *, lease_ms: int
    ) -> list[LeasedJob]:
        """Lease to a round's holder those of the jobs that run, ascending by id; tasks go on.

        A job whose row this program cannot read is left out, and goes on.
        """
        rows = self._link.call(
            "SELECT id, token, wire, starts, stops, placed, fruitless, waited_ms, age_ms,"
            " sibling_tasks, sibling_machines FROM omega.recall_jobs(%s, %s, %s, %s)",
            (scheduler, number, None if jobs is None else Big(jobs), lease_ms),
        )
        jobs_read, _ = leased_jobs(rows)
        return jobs_read

    def unfinished(self, jobs: Sequence[int]) -> set[int]:
        """Return those of the jobs that exist and have not ended, in any state."""
        ((found,),) = self._link.call("SELECT omega.unfinished_jobs(%s)", (Big(jobs),))
        return {int(job) for job in found}

    def allocations_of(self, jobs: Sequence[int]) -> Allocations:
        """Read the live allocations of these jobs."""
        return read_allocations(self._link, "read_allocations_of(%s)", Big(jobs))[0]
