"""Highest precedence first."""

from omega.ordering.precedence import precedence
from omega.testing.builders import a_job, a_spec


def test_higher_precedence_is_first_and_equals_by_age() -> None:
    jobs = [
        a_job(job=number, spec=a_spec(precedence=level))
        for number, level in ((4, 0), (3, 9), (2, -1), (1, 0), (5, 9))
    ]

    assert [3, 5, 1, 4, 2] == [job.id for job in precedence(jobs)]
