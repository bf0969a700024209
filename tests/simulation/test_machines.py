"""Machines that fail, drain, shrink and come back, while schedulers place what they lose."""

from collections.abc import Callable

import pytest

from omega.lifecycle.states import State
from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.model.resources import machine_capacity
from omega.store.base import HandBack, Store
from omega.testing.builders import a_claim, a_spec, a_stretch, a_transaction, evicting
from omega.testing.steps import a_leased_job, grant, lease_all, status_of
from tests.simulation.worlds import SEEDS, Greedy, Lane, World, lanes, random_specs


class Wrecker:
    """Takes machines down, has them drain, opens them again, or makes them smaller and larger."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.lost = 0

    def turn(self) -> None:
        chance, store = self.world.chance, self.world.audited
        if chance.random() > 0.03:
            return
        machine = int(chance.integers(1, 11))
        if chance.random() < 0.5:
            states = [MachineState.OPEN, MachineState.DRAINING, MachineState.DOWN]
            store.set_state(integers([machine]), states[int(chance.integers(3))])
            self.lost += store.lose_tasks(integers([machine]))
        else:
            capacity = machine_capacity(1_000 * int(chance.choice([1, 4])), 16_384)
            store.resize(machine, capacity, notice_ms=int(chance.choice([0, 500])))
            self.lost += store.enforce_notices()


@pytest.mark.parametrize("seed", SEEDS)
def test_jobs_that_lose_tasks_while_they_are_planned_are_not_left_to_their_leases(
    seed: int,
) -> None:
    """Nobody rescues here: a job whose lease nobody gives back would never be over."""
    world = World(seed)
    wrecker = Wrecker(world)
    world.audited.submit(random_specs(world.chance, jobs=80))

    world.run(*(lane.turn for lane in lanes(world)), wrecker.turn)

    world.audited.audit()
    assert wrecker.lost > 0


def lose_with_its_machine(store: Store, job: int) -> None:
    """Let machine 1 fail, with what runs on it."""
    store.set_state(integers([1]), MachineState.DOWN)
    assert 1 == store.lose_tasks(integers([1]))


def lose_to_a_rival(store: Store, job: int) -> None:
    """Let a job that matters more take the place of task 0, on machine 1."""
    rival = a_leased_job(store, a_spec(precedence=9))
    claims = evicting(a_claim(0, machine=1, cpu_milli=4_000), (0, job, 0))
    assert store.commit(a_transaction(a_stretch(rival, claims))).accepted.all()


@pytest.mark.parametrize("lose", [lose_with_its_machine, lose_to_a_rival])
@pytest.mark.parametrize("answers", [0, 1])
def test_a_job_that_loses_a_task_while_it_is_planned_is_given_back_at_once(
    lose: Callable[[Store, int], None], answers: int
) -> None:
    """It loses the task before the view is refreshed, or after; the holder cannot know either."""
    world = World(seed=1)
    (job,) = world.audited.submit([a_spec(2, scheduler="greedy")])
    (first,) = lease_all(world.audited, scheduler="greedy")
    grant(world.audited, first, [0], [1], cpu_milli=4_000)
    world.audited.hand_back([HandBack(job, first.token, delay_ms=0, progressed=True)])
    holder = Lane(world, Greedy(), "holder", dies=0.0)
    for _ in range(2 + answers):
        next(holder.turns)
    before = status_of(world.audited, job)
    lose(world.audited, job)

    for _ in range(3 - answers):
        next(holder.turns)
    after = status_of(world.audited, job)
    for _ in range(5):
        next(holder.turns)

    assert (State.PLANNING, 1) == (before.state, before.placed)
    assert (State.PENDING, 1) == (after.state, after.placed)
    again = status_of(world.audited, job)
    assert (State.RUNNING, 2) == (again.state, again.placed)
    world.audited.audit()
