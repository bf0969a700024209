"""On which machines victims are looked for: some that are drawn, and those known to suffice."""

from dataclasses import replace

import numpy as np

from omega.cell.view import View
from omega.clock import ManualClock
from omega.limits import LIMITS
from omega.model.jobs import LeasedJob
from omega.model.machines import MachineState
from omega.placement.looks import machines_that_yield, machines_to_look_at
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_cell, a_group, a_job, a_spec
from omega.testing.steps import a_leased_job, a_running_job, add_a_cell

RNG = np.random.default_rng(0)


def test_machines_that_no_task_would_fit_on_are_not_looked_at() -> None:
    store = MemoryStore(ManualClock())
    store.add_machines(a_cell(1, cpu_milli=500))
    closed, large = store.add_machines(a_cell(2, cpu_milli=2_000, first=2)).tolist()
    store.set_state(np.array([closed]), MachineState.DRAINING)
    view = View(store.snapshot())

    assert [large] == machines_to_look_at(view, a_job(1), RNG).tolist()


def test_for_a_job_with_gpus_only_machines_with_gpus_are_looked_at() -> None:
    store = MemoryStore(ManualClock())
    store.add_machines(a_cell(5, cpu_milli=8_000))
    with_gpus = store.add_machines(a_cell(2, cpu_milli=8_000, gpus=2, first=6)).tolist()
    a_running_job(store, a_spec(2), with_gpus, gpu_0=1_000)

    job = a_leased_job(store, a_spec(gpus=2))

    assert with_gpus == machines_to_look_at(View(store.snapshot()), job, RNG).tolist()


def test_at_most_a_thousand_machines_are_looked_at_those_with_room_first() -> None:
    store = MemoryStore(ManualClock())
    store.add_machines(a_cell(1_500, cpu_milli=1_000))
    a_running_job(store, a_spec(1_400), range(1, 1_401))
    view = View(store.snapshot())

    few = machines_to_look_at(view, a_job(10), RNG)
    many = machines_to_look_at(view, a_job(900), RNG)

    assert len(few) < len(many) == LIMITS.occupied_machines_max == len(np.unique(many))
    assert 100 == (view.free[view.where(many), 0] > 0).sum()


def known_for(store: MemoryStore, job: LeasedJob) -> list[int]:
    """Return the machines that are known to yield to the job."""
    view = View(store.snapshot())
    before = view.free.copy()
    known = machines_that_yield(view, job, store.yielding(job.spec.precedence), RNG)
    assert (before == view.free).all(), "the view is as it was"
    return list(map(int, known))


def test_a_machine_yields_if_what_is_free_and_what_yields_there_suffices_together() -> None:
    store = MemoryStore(ManualClock())
    one, two, three, closed = add_a_cell(store, 4, cpu_milli=4_000)
    a_running_job(store, replace(a_spec(3), preemptible=False), [one, two, three], cpu_milli=1_000)
    a_running_job(store, a_spec(4), [one, two, two, closed])
    store.set_state(np.array([closed]), MachineState.DRAINING)
    a_running_job(store, replace(a_spec(2), preemptible=False), [one, three])

    assert [two] == known_for(store, a_leased_job(store, a_spec(precedence=50, cpu_milli=3_000)))
    assert [one, two, three] == known_for(store, a_leased_job(store, a_spec(precedence=50)))
    assert [] == known_for(store, a_leased_job(store, a_spec(precedence=50, cpu_milli=4_000)))
    assert [] == known_for(store, a_leased_job(store, a_spec(cpu_milli=3_000)))


def test_for_a_gang_the_machines_suffice_together_or_none_is_named() -> None:
    store = MemoryStore(ManualClock())
    one, two, three = add_a_cell(store, 3, cpu_milli=1_000)
    a_running_job(store, a_spec(2), [one, three])
    a_running_job(store, replace(a_spec(), preemptible=False), [two])

    assert [one, three] == known_for(
        store, a_leased_job(store, a_spec(2, precedence=50, minimum=2))
    )
    assert [] == known_for(store, a_leased_job(store, a_spec(3, precedence=50, minimum=3)))
    apart = a_spec(groups=(a_group(2, different_machines=True),), precedence=50, minimum=2)
    assert [one, three] == known_for(store, a_leased_job(store, apart))


def test_of_very_many_machines_those_that_hold_most_of_the_tasks_are_named() -> None:
    store = MemoryStore(ManualClock())
    small = store.add_machines(a_cell(1_500, cpu_milli=1_000)).tolist()
    large = store.add_machines(a_cell(10, cpu_milli=8_000, first=1_501)).tolist()
    a_running_job(store, a_spec(len(small)), small)
    a_running_job(store, a_spec(len(large)), large, cpu_milli=8_000)

    known = known_for(store, a_leased_job(store, a_spec(4, precedence=50)))

    assert LIMITS.occupied_machines_max == len(set(known))
    assert set(large) < set(known)
