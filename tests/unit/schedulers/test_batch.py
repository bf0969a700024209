"""The batch scheduler."""

import numpy as np

from omega.testing.builders import a_cell, a_job, a_spec, a_view
from schedulers.batch import BatchScheduler


def test_tasks_go_to_random_machines() -> None:
    view = a_view(a_cell(200))
    first, second = (
        set(BatchScheduler().place(view, a_job(20), np.random.default_rng(seed)).machine.tolist())
        for seed in (1, 2)
    )

    assert len(first) > 10
    assert first != second


def test_higher_precedence_is_placed_first() -> None:
    jobs = [a_job(job=n, spec=a_spec(precedence=n % 2)) for n in (1, 2, 3, 4)]

    assert [1, 3, 2, 4] == [job.id for job in BatchScheduler().order(jobs, a_view())]


def test_many_jobs_are_committed_together() -> None:
    assert BatchScheduler.jobs_per_transaction > 1
