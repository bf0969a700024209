"""Who gets workers, by each policy; and what operators may set."""

from fractions import Fraction

import numpy as np
import pytest

from omega.errors import BadInput
from omega.model.arrays import Amounts
from omega.model.resources import machine_capacity
from schedulers.elastic.model import PhaseLeft, predicted_s
from schedulers.elastic.policies import (
    GROWTHS_MAX,
    Candidate,
    Policy,
    PolicyName,
    grow,
    read_policy,
)

MAX = Policy()
CAP = Policy(PolicyName.CAP, Fraction(6, 10))
RELATIVE = Policy(PolicyName.RELATIVE, Fraction(4))


def cores(number: int) -> Amounts:
    return machine_capacity(number * 1_000, 0, 0, 0)


def a_candidate(
    activities: int = 1_000,
    *,
    mean_s: float | None = 10.0,
    wanted: int = 11,
    workers: int | None = None,
    at_most: int = 1_000,
) -> Candidate:
    phases = (PhaseLeft(activities, mean_s),)
    has = wanted if workers is None else workers
    return Candidate(1, phases, wanted, at_most, has, cores(1))


def test_max_gives_all_that_helps() -> None:
    job = a_candidate()
    (added,) = grow(MAX, [job], cores(10_000))

    assert 1_000 == job.workers + added
    assert 10.0 == predicted_s(job.phases, job.workers + added)


def test_relative_gives_four_times_what_was_wanted() -> None:
    job = a_candidate()
    (added,) = grow(RELATIVE, [job], cores(10_000))

    assert 44 >= job.workers + added
    assert 230.0 == predicted_s(job.phases, job.workers + added) == predicted_s(job.phases, 44)


def test_relative_counts_the_helpers_that_a_job_has() -> None:
    assert [0] == grow(RELATIVE, [a_candidate(workers=44)], cores(10_000))


@pytest.mark.parametrize("wanted", [1_000, 1_001, 5_000])
def test_a_job_with_a_worker_for_each_activity_gains_nothing(wanted: int) -> None:
    assert [0] == grow(MAX, [a_candidate(wanted=wanted, at_most=9_000)], cores(10_000))


def test_a_job_without_history_keeps_the_users_count() -> None:
    assert [0] == grow(MAX, [a_candidate(mean_s=None)], cores(10_000))


@pytest.mark.parametrize(("used", "room"), [(0, 60), (59, 1), (60, 0), (61, 0), (100, 0)])
def test_cap_leaves_room_up_to_the_target(used: int, room: int) -> None:
    assert cores(room).tolist() == CAP.room(cores(100), cores(used)).tolist()
    assert cores(100 - used).tolist() == MAX.room(cores(100), cores(used)).tolist()


def test_cap_grants_nothing_at_the_target() -> None:
    assert [0] == grow(CAP, [a_candidate()], CAP.room(cores(100), cores(60)))


def test_only_cap_gives_back() -> None:
    assert cores(5).tolist() == CAP.excess(cores(100), cores(65)).tolist()
    assert not CAP.excess(cores(100), cores(60)).any()
    assert not MAX.excess(cores(100), cores(100)).any()


def test_the_job_that_gains_most_for_each_worker_is_served_first() -> None:
    long, short = a_candidate(100, mean_s=10.0, wanted=10), a_candidate(100, wanted=10, mean_s=1.0)

    assert [2, 0] == grow(MAX, [long, short], cores(2))


def test_a_growth_that_does_not_fit_leaves_the_room_to_others() -> None:
    # The first one gains only from five more workers, the second one from each.
    waits = Candidate(1, (PhaseLeft(10, 100.0),), 5, 10, 5, cores(1))
    takes = Candidate(2, (PhaseLeft(4, 1.0),), 1, 4, 1, cores(1))

    assert [0, 3] == grow(MAX, [waits, takes], cores(4))
    assert [5, 1] == grow(MAX, [waits, takes], cores(6))


def test_the_scarcest_kind_limits() -> None:
    worker = machine_capacity(1_000, 4_096, 0, 0)
    job = Candidate(1, (PhaseLeft(100, 1.0),), 1, 100, 1, worker)
    room = machine_capacity(50_000, 3 * 4_096 + 4_095, 0, 0)

    assert [3] == grow(MAX, [job], room)


def test_the_policies_of_the_paper_have_its_targets() -> None:
    assert MAX == read_policy({}) == read_policy({"policy": "max"})
    assert CAP == read_policy({"policy": "cap"})
    assert RELATIVE == read_policy({"policy": "relative"})
    assert Policy(PolicyName.CAP, Fraction(85, 100)) == read_policy(
        {"policy": "cap", "target": "0.85"}
    )


@pytest.mark.parametrize(
    ("settings", "field", "sentence"),
    [
        ({"policy": "most"}, "policy", "no policy 'most'"),
        ({"polcy": "max"}, "--set", "did you mean 'policy'"),
        ({"helpers": "1"}, "--set", "[(]known: policy, target, helper_precedence[)]"),
        ({"target": "0.5"}, "target", "max has no target"),
        ({"policy": "cap", "target": "0"}, "target", "above 0"),
        ({"policy": "cap", "target": "1.1"}, "target", "at most 1"),
        ({"policy": "cap", "target": "nan"}, "target", "no number"),
        ({"policy": "cap", "target": "-1"}, "target", "no number"),
        ({"policy": "relative", "target": "0.9"}, "target", "at least"),
        ({"policy": "relative", "target": "1e9"}, "target", "no number"),
        ({"policy": "relative", "target": "1" * 5_000}, "target", "no number"),
        ({"policy": "cap", "target": "\u0660.\u0665"}, "target", "no number"),  # Arabic digits
    ],
)
def test_what_cannot_be_used_is_refused(
    settings: dict[str, str], field: str, sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence) as refusal:
        read_policy(settings)

    assert field == refusal.value.field


def test_a_target_counts_exactly() -> None:
    policy = read_policy({"policy": "cap", "target": "0.29"})

    assert cores(29).tolist() == policy.room(cores(100), np.zeros_like(cores(1))).tolist()


def test_what_one_tick_does_not_grow_is_left_to_the_next() -> None:
    many = [a_candidate(2, wanted=1) for _ in range(GROWTHS_MAX + 1)]

    assert GROWTHS_MAX == sum(grow(MAX, many, cores(10 * GROWTHS_MAX)))
