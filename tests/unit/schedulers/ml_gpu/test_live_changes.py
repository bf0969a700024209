"""Rounds on a cell that changes: who is there when they begin, and what comes and goes between."""

import numpy as np
import pytest

from omega.lifecycle.states import State
from omega.model.arrays import integers
from omega.model.jobs import Constraint, Operator
from omega.model.machines import MachineState
from omega.testing.builders import a_spec, a_transaction, claims_of_job, some_claims
from omega.testing.steps import lease_all, status_of
from tests.unit.schedulers.ml_gpu.rounds_at_work import (
    AtWork,
    machines,
    training,
)

K80, V100 = "k80", "v100"
NOT_ON_V100 = (Constraint("gpu_model", Operator.NOT_IN, (V100,)),)


def test_training_jobs_that_ran_before_there_were_rounds_are_taken_in() -> None:
    at_work = AtWork(machines("k80", 1), jobs=[training()] * 4)
    leased = lease_all(at_work.store, scheduler="ml-gpu")
    for slot, job in enumerate(leased):
        claims = some_claims([0], [1], **{"cpu_milli": 1_000, f"gpu_{slot}": 1_000})
        at_work.store.commit(a_transaction(claims_of_job(job, claims)))
    late = at_work.store.submit([training()] * 4)
    ran: set[int] = set()
    for _ in range(4):
        at_work.play()
        ran |= set(at_work.running())

    assert {*at_work.jobs, *late} == ran, "those who ran first make way"


def test_gpus_of_jobs_that_do_not_train_are_not_shared_out() -> None:
    at_work = AtWork(machines("k80", 1), jobs=[a_spec(1, scheduler="ml-gpu", gpus=1)])
    (leased,) = lease_all(at_work.store, scheduler="ml-gpu")
    claims = some_claims([0], [1], cpu_milli=1_000, gpu_0=1_000)
    at_work.store.commit(a_transaction(claims_of_job(leased, claims)))
    at_work.store.submit([training()])
    at_work.play()

    assert [3] == at_work.record()["gpus"]


def test_a_gang_of_which_a_task_is_over_goes_on_with_the_others() -> None:
    at_work = AtWork(machines("k80", 1), machines("v100", 1, first=2), jobs=[training(2)])
    at_work.play()
    (job,) = at_work.jobs
    at_work.store.end_tasks(integers([job]), np.array([0]))
    (where,) = at_work.machines_of(job)
    at_work.store.set_state(integers([where]), MachineState.DOWN)
    at_work.store.lose_tasks(integers([where]))
    at_work.play(2)

    (again,) = at_work.machines_of(job)
    assert again != where


@pytest.mark.parametrize("number", [0, 2])
def test_jobs_come_before_there_is_any_gpu_and_are_parked_until_there_is(number: int) -> None:
    at_work = AtWork(machines("none", number, gpus=0), jobs=[training()])
    at_work.play(2)
    assert State.PARKED is status_of(at_work.store, at_work.jobs[0]).state

    at_work.add(machines("k80", 1, first=9))
    at_work.clock.advance(60)
    at_work.play(2)

    assert set(at_work.jobs) == set(at_work.running())


def test_another_policy_promises_anew_at_once() -> None:
    at_work = AtWork(machines("k80", 1), jobs=[training(gpus) for gpus in (1, 1, 4)])
    at_work.play(2)
    before = at_work.record()["share"]
    at_work.told["policy"] = "fifo"
    at_work.process = at_work.a_process()
    at_work.clock.advance(1.001)
    at_work.play()

    assert before != at_work.record()["share"]
