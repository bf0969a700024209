"""Victims on machines with GPUs, on different machines, and of a commit's size."""

from dataclasses import replace

import numpy as np

from omega.cell.view import View
from omega.clock import ManualClock
from omega.limits import LIMITS
from omega.model.jobs import JobSpec, LeasedJob
from omega.placement.victims import place_with_evictions
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_cell, a_group, a_spec, a_transaction, claims_of_job
from omega.testing.steps import a_leased_job, a_running_job
from schedulers.batch import BatchScheduler

RNG = np.random.default_rng(0)


def run(store: MemoryStore, spec: JobSpec) -> LeasedJob:
    """Place a job's tasks wherever they find room."""
    job = a_leased_job(store, spec)
    claims = BatchScheduler().place(View(store.snapshot()), job, RNG)
    assert store.commit(a_transaction(claims_of_job(job, claims))).accepted.all()
    return job


def evicted_for(store: MemoryStore, job: LeasedJob) -> tuple[int, list[int]]:
    """Return how many claims are granted, and the jobs that lose a task, one entry per task."""
    view = View(store.snapshot())
    claims = place_with_evictions(view, job, view.id, store.occupants(view.id), RNG)
    outcome = store.commit(a_transaction(claims_of_job(job, claims)))
    assert outcome.accepted.all()
    return len(claims), sorted(outcome.evicted_job.tolist())


def gpu_job(tasks: int, gpus: int, precedence: int, **fields: int) -> JobSpec:
    group = a_group(tasks, cpu_milli=100, gpus=gpus, **fields)  # type: ignore[arg-type]
    return replace(a_spec(groups=(group,)), precedence=precedence)


def test_whole_gpus_are_freed_and_no_more_of_them_than_are_wanted() -> None:
    store = MemoryStore(ManualClock())
    store.add_machines(a_cell(1, cpu_milli=8_000, gpus=4))
    low = run(store, gpu_job(3, 1, 0))
    fractions = run(store, gpu_job(2, 1, 5, gpu_slices=500))

    placed, evicted = evicted_for(store, a_leased_job(store, gpu_job(1, 2, 50)))

    assert (1, [low.id] * 2) == (placed, evicted)
    assert fractions.id not in evicted


def test_two_halves_of_one_gpu_make_way_for_a_task_that_wants_it_whole() -> None:
    store = MemoryStore(ManualClock())
    store.add_machines(a_cell(1, cpu_milli=8_000, gpus=1))
    halves = run(store, gpu_job(2, 1, 0, gpu_slices=500))

    assert (1, [halves.id] * 2) == evicted_for(store, a_leased_job(store, gpu_job(1, 1, 50)))


def test_the_youngest_of_equals_make_way() -> None:
    clock = ManualClock()
    store = MemoryStore(clock)
    store.add_machines(a_cell(1, cpu_milli=3_000))
    run(store, a_spec(1))
    clock.sleep(5.0)
    youngest = run(store, a_spec(1))
    run(store, a_spec(1, precedence=5))

    assert (1, [youngest.id]) == evicted_for(store, a_leased_job(store, a_spec(precedence=50)))


def test_tasks_on_different_machines_make_way_on_different_machines() -> None:
    store = MemoryStore(ManualClock())
    store.add_machines(a_cell(3, cpu_milli=2_000))
    run(store, a_spec(6))
    apart = a_spec(groups=(a_group(3, different_machines=True),), precedence=50)

    placed, evicted = evicted_for(store, a_leased_job(store, apart))

    assert (3, 3) == (placed, len(evicted))


def test_a_commit_evicts_no_more_than_one_may_and_empties_whole_machines() -> None:
    """A job whose claims were refused for their number would end each scheduler that leases it."""
    most = LIMITS.claims_per_transaction_max
    store = MemoryStore(ManualClock())
    store.add_machines(a_cell(102, cpu_milli=most * 10))
    for _ in range(2):
        run(store, a_spec(most // 100 * 51))
    whole = a_spec(groups=(a_group(102, cpu_milli=most * 10),), precedence=50)

    placed, evicted = evicted_for(store, a_leased_job(store, whole))

    assert (100, most) == (placed, len(evicted))


def test_gangs_of_one_machine_fall_together_where_no_single_one_is_enough() -> None:
    store = MemoryStore(ManualClock())
    one, two, three = store.add_machines(a_cell(3, cpu_milli=2_000)).tolist()
    first = a_running_job(store, a_spec(2, minimum=2), [one, two])
    second = a_running_job(store, a_spec(2, minimum=2), [one, three])
    a_running_job(store, replace(a_spec(2), preemptible=False), [two, three])

    placed, evicted = evicted_for(
        store, a_leased_job(store, a_spec(precedence=50, cpu_milli=2_000))
    )

    assert (1, [first.id] * 2 + [second.id] * 2) == (placed, evicted)
