"""First in, first out."""

from omega.ordering.fifo import fifo
from omega.testing.builders import a_job


def test_the_oldest_job_is_first() -> None:
    jobs = [a_job(job=number) for number in (3, 1, 2)]

    assert [1, 2, 3] == [job.id for job in fifo(jobs)]
