"""One job's record."""

import numpy as np
import pytest

from omega.lifecycle.states import MOVES, State, Trigger
from omega.store.memory.job_records import JobRecord
from omega.testing.builders import a_group, a_spec


def a_record(
    tasks: int = 3, *, number: int = 1, minimum: int = 0, precedence: int = 0
) -> JobRecord:
    spec = a_spec(tasks, minimum=minimum, precedence=precedence)
    return JobRecord.submitted(number, spec, now_s=0.0)


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("trigger", Trigger)
def test_a_job_moves_by_the_table_or_not_at_all(state: State, trigger: Trigger) -> None:
    job = a_record()
    job.state = state

    if (state, trigger) in MOVES:
        job.move(trigger)
        assert MOVES[state, trigger] is job.state
    else:
        with pytest.raises(AssertionError, match="job 1"):
            job.move(trigger)
        assert state is job.state


def test_tasks_are_unplaced_until_placed_and_never_again() -> None:
    job = a_record(3)
    job.move(Trigger.TAKE)
    job.place(np.array([0, 2]), np.array([10, 11]))
    slot = job.end(2, now_s=1.0)

    asked = np.array([0, 1, 2, 3, -1])
    assert [False, True, False, False, False] == job.unplaced(asked).tolist()
    assert 11 == slot
    assert (2, 1, [0]) == (job.placed, job.ended, job.running.tolist())


def test_what_a_gang_lacks_counts_what_is_over() -> None:
    job = a_record(4, minimum=3)
    job.move(Trigger.TAKE)
    job.place(np.array([0, 1]), np.array([10, 11]))
    job.end(0, now_s=1.0)

    assert 1 == job.lacking


def test_a_job_runs_with_its_last_task_placed_and_succeeds_with_its_last_task_over() -> None:
    job = a_record(2)
    job.move(Trigger.TAKE)
    job.place(np.array([1]), np.array([5]))
    job.end(1, now_s=1.0)
    states = [job.state]
    job.place(np.array([0]), np.array([5]))
    states.append(job.state)
    job.end(0, now_s=2.0)
    states.append(job.state)

    assert [State.PLANNING, State.RUNNING, State.SUCCEEDED] == states
    assert 2.0 == job.finished_s


@pytest.mark.parametrize("task", [0, 1, 7, -1])
def test_the_end_of_what_does_not_run_is_no_end(task: int) -> None:
    job = a_record(2)
    job.move(Trigger.TAKE)
    job.place(np.array([0]), np.array([5]))
    job.end(0, now_s=1.0)

    assert job.end(task, now_s=2.0) is None
    assert 1 == job.ended


def test_durations_follow_the_groups() -> None:
    groups = [a_group(2, duration_ms=50), a_group(1), a_group(2, duration_ms=0)]
    job = JobRecord.submitted(1, a_spec(groups=groups), now_s=0.0)

    assert [50, 0, -1, 50, 0] == job.durations_ms(np.array([1, 3, 2, 0, 4])).tolist()
