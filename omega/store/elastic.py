"""The operations of a store for schedulers of elastic jobs: helpers, and who may have them.

Goal     Give a job more workers than were wanted, for as long as nobody else needs the room.
Promise  A job never has more workers than its `at_most`, whoever asks. Helpers are tasks of a job
         of their own, which ends with its parent. A helper that loses its place, or is handed back
         without one, is over: it is never pending and never parked.
Source   Omega (EuroSys 2013), section 6; docs/decisions/0043-elastic-jobs.md.
"""

from typing import Protocol

from omega.model.arrays import Ids, Index
from omega.model.elastic_jobs import ElasticJob
from omega.model.jobs import LeasedJob


class HelperStore(Protocol):
    """The calls of a scheduler for elastic jobs."""

    def add_helpers(
        self,
        scheduler: str,
        parent: int,
        tasks: int,
        *,
        precedence: int,
        holder: str,
        lease_ms: int,
    ) -> LeasedJob | None:
        """Make a job of up to so many helpers, of the shape of the parent's tasks, and lease it.

        The parent is of this kind of scheduler and runs, or the holder has its lease. None if it is
        not so, or if the parent may have no more workers. Raises BadInput unless the precedence is
        below the parent's. Called again after a lost answer, it makes another job; the lease of the
        first one runs out, and its helpers are over.
        """
        ...

    def end_helpers(self, scheduler: str, job: Ids, task: Index) -> int:
        """End those of these tasks that run and help jobs of this kind; return how many."""
        ...

    def elastic_jobs(self, scheduler: str, *, jobs_max: int) -> list[ElasticJob]:
        """Return the elastic jobs of a kind that go on, oldest first."""
        ...
