"""The batch scheduler."""

import threading

import numpy as np
import pytest

from omega.clock import ManualClock
from omega.config import Settings
from omega.errors import BadInput
from omega.events import Event, TransactionJudged
from omega.framework.runner import SchedulerProcess
from omega.store.memory.store import MemoryStore
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


def test_jobs_that_wait_together_are_committed_together() -> None:
    clock, stop = ManualClock(), threading.Event()
    store = MemoryStore(clock)
    store.add_machines(a_cell(3))
    store.submit([a_spec(1) for _ in range(5)])
    events: list[Event] = []
    SchedulerProcess(
        scheduler=BatchScheduler(),
        store=store,
        open_store=lambda: store,
        clock=clock,
        settings=Settings(),
        sink=events.append,
        replica="0",
        run_seed=0,
        stop=stop,
    ).step()

    assert [5] == [event.jobs for event in events if isinstance(event, TransactionJudged)]
    assert 5 == len(store.allocations())


def test_it_evicts_for_no_job_unless_it_is_told_to() -> None:
    assert not BatchScheduler().preempts
    assert not BatchScheduler.configured({}).preempts
    assert BatchScheduler.configured({"preempts": "true"}).preempts


def test_its_claims_name_as_many_alternates_as_it_is_told_to() -> None:
    view = a_view(a_cell(50))
    for number in (0, 2):
        scheduler = BatchScheduler.configured({"alternates": str(number)})
        claims = scheduler.place(view, a_job(4), np.random.default_rng(1))

        assert 4 * number == len(claims.alternates)


def test_claims_with_alternates_are_not_drawn_by_compiled_loops() -> None:
    assert [True, False] == [
        BatchScheduler.configured({"alternates": number}).places_at_random(a_job())
        for number in "01"
    ]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            {"preempt": "true"},
            "no setting 'preempt'; did you mean 'preempts'[?] [(]known: alternates, preempts[)]",
        ),
        ({"preempts": "yes"}, "'yes' will not do: Value error, it is true or false"),
        ({"alternates": "9"}, "'9' will not do: .* less than or equal to 8"),
        ({"alternates": "-1"}, "'-1' will not do"),
        ({"alternates": "some"}, "'some' will not do"),
    ],
)
def test_a_setting_that_it_does_not_have_is_refused(settings: dict[str, str], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        BatchScheduler.configured(settings)
