"""Gangs of a model that no table has and that make no step: their GPUs are there for others."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from omega.lifecycle.states import State
from omega.model.arrays import integers
from omega.model.jobs import JobSpec
from omega.testing.builders import a_spec
from omega.testing.steps import status_of
from tests.unit.schedulers.ml_gpu.rounds_at_work import RunningSchedulers, machines, training

K80, V100 = "k80", "v100"
UNKNOWN = training(4, model="unheard of")


def beside(tasks: int = 1, *, minimum: int = 0) -> JobSpec:
    """Return a job of the kind that is placed once and runs to its end."""
    return a_spec(tasks, scheduler="ml-gpu", gpus=1, minimum=minimum)


def stalled(number: int = 1, *, jobs: Sequence[JobSpec] = (UNKNOWN,)) -> RunningSchedulers:
    """Return a cell in which gangs have held GPUs for some rounds without a step."""
    at_work = RunningSchedulers(machines(K80, number), jobs=jobs)
    for _ in range(8):
        at_work.play()
        ran_for(at_work, 1_000)
    return at_work


def ran_for(at_work: RunningSchedulers, milliseconds: int, *, steps: int = 0) -> None:
    """Report that what trains has run for so long, and made so many steps."""
    jobs = integers(sorted(at_work.running().keys() & set(at_work.jobs)))
    before = at_work.store.progress(jobs)
    at_work.store.report_progress(jobs, before.done + steps, before.run_ms + milliseconds)


def test_a_gang_without_a_rate_keeps_gpus_that_nobody_wants() -> None:
    at_work = stalled()

    assert 4 == len(at_work.machines_of(at_work.jobs[0]))


@pytest.mark.parametrize("spec", [beside(), beside(2), beside(4, minimum=4)])
def test_a_job_beside_the_rounds_takes_the_gpus_of_a_gang_without_a_rate(spec: JobSpec) -> None:
    at_work = stalled()
    (idle,) = at_work.jobs
    (new,) = at_work.store.submit([spec])

    at_work.play(3)

    assert spec.tasks == len(at_work.machines_of(new))
    assert ([], State.PENDING) == (at_work.machines_of(idle), status_of(at_work.store, idle).state)
    (last,) = at_work.store.last_rounds()
    assert last.summary is not None
    (told,) = last.summary.jobs
    assert (1, None, True) == (told.preempted, told.type, told.is_stalled)


def test_where_there_is_room_a_gang_without_a_rate_stays() -> None:
    at_work = stalled(2)
    (new,) = at_work.store.submit([beside(4)])

    at_work.play(3)

    assert [4, 4] == [len(at_work.machines_of(job)) for job in (new, *at_work.jobs)]


def test_no_more_gangs_fall_than_are_needed() -> None:
    at_work = stalled(2, jobs=(UNKNOWN, UNKNOWN))
    (new,) = at_work.store.submit([beside(2)])

    at_work.play(3)

    assert 2 == len(at_work.machines_of(new))
    assert [0, 4] == sorted(len(at_work.machines_of(job)) for job in at_work.jobs)


def test_a_gang_that_makes_steps_keeps_its_gpus_from_jobs_beside_the_rounds() -> None:
    at_work = RunningSchedulers(machines(K80, 1), jobs=(UNKNOWN,))
    for _ in range(8):
        at_work.play()
        ran_for(at_work, 1_000, steps=5)
    (new,) = at_work.store.submit([beside()])

    at_work.play(3)

    assert [0, 4] == [len(at_work.machines_of(job)) for job in (new, *at_work.jobs)]


def test_gangs_that_train_and_jobs_beside_them_share_what_a_gang_without_a_rate_leaves() -> None:
    at_work = stalled(2, jobs=(replace(UNKNOWN, precedence=1), replace(UNKNOWN, precedence=1)))
    trains, runs = at_work.store.submit([training(4), beside(4)])

    for _ in range(4):
        at_work.play()
        jobs = integers([trains])
        before = at_work.store.progress(jobs)
        if at_work.machines_of(trains):
            at_work.store.report_progress(jobs, before.done + 9, before.run_ms + 1_000)

    assert [4, 4, 0, 0] == [len(at_work.machines_of(job)) for job in (trains, runs, *at_work.jobs)]


def test_gpus_that_a_gang_has_just_been_given_are_not_given_again() -> None:
    at_work = stalled()
    before = len(at_work.commits)
    trains, runs = at_work.store.submit([training(4), beside(4, minimum=4)])

    at_work.play()

    assert [4, 0, 0] == [len(at_work.machines_of(job)) for job in (trains, runs, *at_work.jobs)]
    assert [{}] == [commit.refused for commit in at_work.commits[before:]]
