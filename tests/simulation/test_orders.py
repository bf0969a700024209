"""A scheduler's own order of jobs, in whole processes on a virtual cell."""

from collections.abc import Sequence

import pytest

from omega.cell.view import View
from omega.errors import InvariantBroken
from omega.events import Event, JobAttempted
from omega.model.jobs import LeasedJob
from omega.sim.virtual_cell import VirtualCell
from omega.testing.builders import a_cell, a_spec
from tests.unit.framework.loops import InOrder


class YoungestFirst(InOrder):
    """Another order than that of the queue."""

    def order(self, jobs: Sequence[LeasedJob], view: View) -> Sequence[LeasedJob]:
        return sorted(jobs, key=lambda job: -job.id)


class Forgets(InOrder):
    """Loses the first job, always the same one."""

    def order(self, jobs: Sequence[LeasedJob], view: View) -> Sequence[LeasedJob]:
        return [job for job in jobs if job.id != 1]


class Repeats(InOrder):
    """Returns the first job twice."""

    def order(self, jobs: Sequence[LeasedJob], view: View) -> Sequence[LeasedJob]:
        return [jobs[0], *jobs[:-1]]


@pytest.mark.parametrize("scheduler", [Forgets(together=32), Repeats(together=32)])
def test_an_order_that_loses_or_repeats_jobs_ends_the_process(scheduler: InOrder) -> None:
    """Else a job would be under its lease, and attempted by nobody, for as long as that runs."""
    cell = VirtualCell(a_cell(4, cpu_milli=8_000), seed=1)
    cell.submit(0.0, [a_spec(1)] * 4)
    cell.schedule(scheduler, "0", sink=lambda _: None)
    with pytest.raises(InvariantBroken, match="order must return the jobs it was given"):
        cell.run(3.0)


@pytest.mark.parametrize("claims_max", [1_000, 5])
def test_jobs_are_attempted_in_the_order_of_their_scheduler(claims_max: int) -> None:
    """Also if they are divided because they have too many tasks for one transaction."""
    attempted: list[int] = []

    def note(event: Event) -> None:
        if isinstance(event, JobAttempted):
            attempted.append(event.job)

    cell = VirtualCell(a_cell(4, cpu_milli=8_000), seed=1)
    scheduler = YoungestFirst(together=32)
    scheduler.claims_per_transaction = claims_max
    cell.submit(0.0, [a_spec(3)] * 4)
    cell.schedule(scheduler, "0", sink=note)

    cell.run(3.0)
    cell.check()

    assert [4, 3, 2, 1] == attempted
