"""What jobs have been through: preemptions that were and were not, and time without a step."""

import numpy as np
import pytest

from schedulers.ml_gpu.history import HistoryMemo, JobHistory, stalled


def test_a_preemption_that_was_refused_is_taken_back() -> None:
    planned = JobHistory.new(3, 1).preempting(np.array([0, 1]), 12)
    known = planned.spared(np.array([True, False, True]), 12)

    assert [1, 1, 0] == planned.preempted.tolist()
    assert [0, 1, 0] == known.preempted.tolist()
    assert [0, 12, 0] == known.preempted_in.tolist()


def test_a_preemption_of_an_earlier_round_stands() -> None:
    known = JobHistory.new(1, 1).preempting(np.array([0]), 11).spared(np.array([True]), 12)

    assert [1] == known.preempted.tolist()
    assert [11] == known.preempted_in.tolist()


def test_a_step_ends_the_time_without_one_on_its_type_alone() -> None:
    one, on = np.array([0]), np.array([1])
    idle = JobHistory.new(1, 2)
    for type_ in (0, 1, 1):
        idle = idle.observed(one, np.array([type_]), np.zeros(1), np.array([100.0]))
    after = idle.observed(one, on, np.array([5.0]), np.array([100.0]))

    assert [[100.0, 200.0]] == idle.idle_s.tolist()
    assert [[100.0, 0.0]] == after.idle_s.tolist()


def test_what_one_job_has_found_out_holds_for_all_of_its_kind() -> None:
    idle = JobHistory.new(3, 2).observed(
        np.array([0]), np.array([1]), np.zeros(1), np.array([300.0])
    )

    assert [[False, True], [False, False]] == stalled(idle, np.array([0, 0, 1]), 2, 300.0).tolist()


def test_a_memo_of_an_earlier_version_is_that_of_new_jobs() -> None:
    found = JobHistory.of(HistoryMemo(), 2, 3, np.array)

    assert (2, 3) == found.idle_s.shape
    assert not found.preempted.any()


def test_a_memo_of_other_jobs_is_refused() -> None:
    memo = JobHistory.new(2, 1).memo()

    with pytest.raises(ValueError, match="length"):
        JobHistory.of(memo, 3, 1, np.array)
