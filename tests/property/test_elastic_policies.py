"""Workers are divided within all limits, nearly as well as by an exhaustive search."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omega.model.arrays import Amounts
from omega.model.resources import machine_capacity
from schedulers.elastic.model import PhaseLeft, best_growth, falls, predicted_s
from schedulers.elastic.policies import Candidate, Policy, PolicyName, grow, read_policy
from tests.fixtures.doses import examples

PHASES = st.lists(
    st.builds(PhaseLeft, st.integers(0, 40), st.sampled_from([None, 0.0, 0.5, 1.0, 10.0, 33.0])),
    min_size=1,
    max_size=2,
).map(tuple)
POLICIES = st.sampled_from(
    [
        read_policy({}),
        read_policy({"policy": "cap"}),
        read_policy({"policy": "relative", "target": "2.5"}),
    ]
)


@st.composite
def candidates(draw: st.DrawFn, *, most: int = 30) -> Candidate:
    wanted = draw(st.integers(1, 8))
    at_most = draw(st.integers(wanted, wanted + most))
    demand = machine_capacity(draw(st.integers(1, 3)), draw(st.integers(0, 4)), 0, 0)
    return Candidate(1, draw(PHASES), wanted, at_most, draw(st.integers(wanted, at_most)), demand)


def fall_s(candidate: Candidate, added: int) -> float:
    now_s = predicted_s(candidate.phases, candidate.workers)
    return now_s - predicted_s(candidate.phases, candidate.workers + added)


@given(PHASES, st.integers(1, 50), st.integers(1, 50))
@examples(200)
def test_more_workers_never_take_longer(
    phases: tuple[PhaseLeft, ...], workers: int, more: int
) -> None:
    assert predicted_s(phases, workers + more) <= predicted_s(phases, workers)


@given(PHASES, st.integers(1, 45), st.integers(1, 45))
@examples(200)
def test_time_falls_at_the_steps_and_nowhere_else(
    phases: tuple[PhaseLeft, ...], above: int, at_most: int
) -> None:
    expected = [
        workers
        for workers in range(above + 1, at_most + 1)
        if predicted_s(phases, workers) < predicted_s(phases, workers - 1)
    ]

    assert expected == falls(phases, above, at_most).tolist()


@given(st.lists(candidates(), max_size=5), POLICIES, st.integers(0, 90), st.integers(0, 90))
@examples(200)
def test_no_limit_is_exceeded(jobs: list[Candidate], policy: Policy, cpu: int, memory: int) -> None:
    room = machine_capacity(cpu, memory, 0, 0)
    before = room.copy()
    added = grow(policy, jobs, room)

    asked = sum((n * job.demand for n, job in zip(added, jobs, strict=True)), 0 * room)
    assert (asked <= room).all()
    assert (before == room).all(), "the room is the caller's"
    for number, job in zip(added, jobs, strict=True):
        assert 0 <= number <= job.at_most - job.workers
        if policy.name is PolicyName.RELATIVE and policy.target is not None and number:
            assert job.workers + number <= policy.target * job.wanted


@given(st.lists(candidates(), min_size=1, max_size=4), st.integers(0, 60), st.integers(0, 60))
@examples(200)
def test_no_gain_that_fits_is_left(jobs: list[Candidate], cpu: int, memory: int) -> None:
    room = machine_capacity(cpu, memory, 0, 0)
    added = grow(Policy(), jobs, room)
    left = room - sum((n * job.demand for n, job in zip(added, jobs, strict=True)), 0 * room)

    for number, job in zip(added, jobs, strict=True):
        growth = best_growth(job.phases, job.workers + number, job.at_most)
        while growth is not None:  # the best one, and if that does not fit, any smaller one
            assert (growth.workers * job.demand > left).any()
            has = job.workers + number
            growth = best_growth(job.phases, has, has + growth.workers - 1)


def best_fall_s(jobs: list[Candidate], room: Amounts) -> float:
    """Return the largest fall of the sum of times, over every division of the room."""
    options = [range(job.at_most - job.workers + 1) for job in jobs]
    return max(
        sum(fall_s(job, number) for job, number in zip(jobs, chosen, strict=True))
        for chosen in product(*options)
        if (sum(n * job.demand for n, job in zip(chosen, jobs, strict=True)) <= room).all()
    )


@given(candidates(), st.integers(0, 60), st.integers(0, 60))
@examples(150)
def test_one_job_gets_the_best_there_is_with_the_fewest_workers(
    job: Candidate, cpu: int, memory: int
) -> None:
    room = machine_capacity(cpu, memory, 0, 0)
    (added,) = grow(Policy(), [job], room)

    assert best_fall_s([job], room) == pytest.approx(fall_s(job, added))
    assert not added or fall_s(job, added - 1) < fall_s(job, added)


@given(st.lists(candidates(most=7), min_size=2, max_size=3), st.integers(0, 12))
@examples(100)
def test_several_jobs_lose_less_than_one_growth_against_an_exhaustive_search(
    jobs: list[Candidate], cpu: int
) -> None:
    """With workers of one size the greedy division is the best one, but for the last growth."""
    jobs = [
        Candidate(1, it.phases, it.wanted, it.at_most, it.workers, machine_capacity(1, 0, 0, 0))
        for it in jobs
    ]
    room = machine_capacity(cpu, 0, 0, 0)
    added = grow(Policy(), jobs, room)
    fall = sum(fall_s(job, number) for job, number in zip(jobs, added, strict=True))
    best = best_fall_s(jobs, room)

    assert fall <= best * (1 + 1e-9)
    one_growth = max(fall_s(job, job.at_most - job.workers) for job in jobs)
    assert best <= fall + one_growth + 1e-9
    wanted = sum(job.at_most - job.workers for job in jobs)
    if wanted <= cpu:
        assert best == pytest.approx(fall)
    assert np.sum(added) <= cpu
