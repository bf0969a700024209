"""The tasks that run, and when each will be over."""

import numpy as np
import pytest

from omega.model.allocations import Allocations
from omega.model.arrays import integers
from omega.model.resources import KINDS
from omega.nodes.running import RunningTasks
from omega.testing.builders import no_allocations


def some(*rows: tuple[int, int, int, int]) -> Allocations:
    """Return allocations from (job, task, started_ms, duration_ms)."""
    job, task, started, duration = (integers(list(column)) for column in zip(*rows, strict=True))
    return Allocations(
        job,
        task.astype(np.intp),
        np.ones(len(rows), dtype=np.int64),
        np.zeros((len(rows), KINDS), dtype=np.int64),
        started,
        duration,
    )


def due(running: RunningTasks, now_ms: int, tasks_max: int = 100) -> list[tuple[int, int]]:
    job, task, _ = running.named(running.due(now_ms, tasks_max))
    return list(zip(job.tolist(), task.tolist(), strict=True))


def test_a_task_is_due_when_its_duration_is_over_and_not_before() -> None:
    running = RunningTasks(speedup=1.0)
    running.hear(some((1, 0, 1_000, 500), (1, 1, 1_000, 600)))

    assert [] == due(running, 1_499)
    assert [(1, 0)] == due(running, 1_500)
    assert [(1, 0), (1, 1)] == due(running, 1_600)


@pytest.mark.parametrize(("speedup", "end_ms"), [(0.5, 3_000), (2.0, 1_500), (3.0, 1_334)])
def test_a_speedup_shortens_lives_and_never_by_more_than_it_says(
    speedup: float, end_ms: int
) -> None:
    running = RunningTasks(speedup)
    running.hear(some((1, 0, 1_000, 1_000)))

    assert ([], [(1, 0)]) == (due(running, end_ms - 1), due(running, end_ms))


def test_tasks_without_a_duration_never_end() -> None:
    running = RunningTasks(speedup=1.0)
    running.hear(some((1, 0, 0, -1), (1, 1, 0, 0)))

    assert [(1, 1)] == due(running, 2**60)


def test_hearing_twice_changes_nothing_but_a_later_start_counts() -> None:
    running = RunningTasks(speedup=1.0)
    running.hear(some((7, 3, 0, 100), (7, 4, 0, 100)))

    running.hear(some((7, 4, 0, 100), (8, 0, 0, 100), (7, 3, 50, 100)))

    assert 3 == len(running)
    assert [(7, 4), (8, 0)] == due(running, 100)
    assert [(7, 3), (7, 4), (8, 0)] == due(running, 150)


def test_a_task_is_named_with_the_start_that_was_heard_last() -> None:
    running = RunningTasks(speedup=1.0)
    running.hear(some((7, 3, 5, 100), (7, 4, 6, 100), (7, 5, 6, 500)))
    running.hear(some((7, 3, 50, 100), (6, 0, 7, 0)))
    running.forget(running.due(7, 1))

    _, _, started_ms = running.named(running.due(150, 10))

    assert [50, 6] == started_ms.tolist()


def test_when_many_are_due_those_come_first_that_were_over_first() -> None:
    running = RunningTasks(speedup=1.0)
    running.hear(some(*((1, task, 0, 100 - task) for task in range(50))))

    assert [(1, task) for task in range(40, 50)] == due(running, 1_000, tasks_max=10)


def test_what_is_forgotten_is_gone() -> None:
    running = RunningTasks(speedup=1.0)
    running.hear(some((1, 0, 0, 10), (2, 0, 0, 20)))

    running.forget(running.due(10, 100))

    assert [(2, 0)] == due(running, 1_000)


def test_no_news_is_no_change() -> None:
    running = RunningTasks(speedup=1.0)

    running.hear(no_allocations())

    assert 0 == len(running)
    assert [] == due(running, 1_000)


def test_it_agrees_with_a_dictionary_over_a_long_life() -> None:
    rng = np.random.default_rng(11)
    running, twin = RunningTasks(speedup=1.0), dict[tuple[int, int], int]()
    for now_ms in range(0, 2_000, 20):
        rows = [
            (int(job), int(task), now_ms, int(duration))
            for job, task, duration in rng.integers([1, 0, 0], [9, 50, 400], size=(8, 3))
        ]
        rows = list({row[:2]: row for row in rows}.values())
        running.hear(some(*rows))
        twin.update({(job, task): now_ms + lasts for job, task, _, lasts in rows})

        over = sorted(task for task, end_ms in twin.items() if end_ms <= now_ms)
        assert over == due(running, now_ms, tasks_max=10_000)
        running.forget(running.due(now_ms, 10_000))
        for task in over:
            del twin[task]

        assert len(twin) == len(running)
