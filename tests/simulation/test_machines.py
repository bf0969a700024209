"""Machines that fail, drain, shrink and come back, while schedulers place what they lose."""

from collections.abc import Callable

import pytest

from omega.framework.machine_clearing import FAILED, SHRANK
from omega.lifecycle.states import State
from omega.metrics.facts import merge
from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.model.resources import machine_capacity
from omega.store.leases import HandBack
from omega.store.protocols import Store
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job, evicting
from omega.testing.steps import a_leased_job, grant, lease_all, status_of
from tests.simulation.worlds import (
    HOUR_MS,
    SEEDS,
    SETTINGS,
    ByHand,
    Greedy,
    World,
    a_process,
    one_of_each,
    random_specs,
    rivals,
)

DEEDS = 100


class Wrecker:
    """Takes machines down, has them drain, opens them again, or makes them smaller and larger.

    In the end all are open and as large as ever: even a large gang is over some time.
    """

    def __init__(self, world: World, *, clears: bool) -> None:
        self.world = world
        self.clears = clears
        """Whether it takes the second step itself, or leaves that to whoever looks next."""
        self.deeds = 0
        self.lost = 0

    def turn(self) -> None:
        rng = self.world.rng
        if self.deeds < DEEDS and rng.random() < 0.1:
            machine = int(rng.integers(1, 11))
            if rng.random() < 0.5:
                states = [MachineState.OPEN, MachineState.DRAINING, MachineState.DOWN]
                self.put(machine, states[int(rng.integers(3))])
            else:
                cores, notice_ms = int(rng.choice([1, 4])), int(rng.choice([0, 500]))
                self.resize(machine, cores, notice_ms)
            self.deeds += 1
            if self.deeds == DEEDS:
                for machine in range(1, 11):
                    self.put(machine, MachineState.OPEN)
                    self.resize(machine, 4, 0)

    def put(self, machine: int, state: MachineState) -> None:
        self.world.audited.set_state(integers([machine]), state)
        if self.clears:
            self.lost += self.world.audited.lose_tasks(integers([machine]))

    def resize(self, machine: int, cores: int, notice_ms: int) -> None:
        capacity = machine_capacity(cores * 1_000, 16_384)
        self.world.audited.resize(machine, capacity, notice_ms=notice_ms)
        if self.clears:
            self.lost += self.world.audited.enforce_notices()


@pytest.mark.parametrize("seed", SEEDS)
def test_jobs_that_lose_tasks_while_they_are_planned_are_not_left_to_their_leases(
    seed: int,
) -> None:
    """A job whose lease nobody gives back would not be over before it runs out."""
    world = World(seed, settings=SETTINGS.model_copy(update={"lease_ms": HOUR_MS}))
    wrecker = Wrecker(world, clears=True)
    world.audited.submit(random_specs(world.rng, jobs=40))

    world.begin(*rivals(world))
    world.every(0.02, wrecker.turn)
    world.run()

    world.audited.audit()
    assert wrecker.lost > 0
    assert world.clock.now() < HOUR_MS / 1_000


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("unreliable", [False, True])
def test_schedulers_clear_machines_of_what_they_cannot_keep(seed: int, *, unreliable: bool) -> None:
    world = World(seed, unreliable=unreliable)
    wrecker = Wrecker(world, clears=False)
    world.audited.submit(random_specs(world.rng, jobs=30))
    processes = one_of_each(world)
    world.begin(*processes)
    world.every(0.02, wrecker.turn)

    world.run()
    world.pass_time(5.0)  # the machine that failed last is cleared

    world.audited.audit()
    facts = merge(*(process.fold.facts() for process in processes))
    assert facts["totals"]["lost"].keys() == {FAILED, SHRANK}
    assert 0 == world.audited.use().stranded
    assert [] == world.audited.notices()


def lose_with_its_machine(store: Store, job: int) -> None:
    """Let machine 1 fail, with what runs on it."""
    store.set_state(integers([1]), MachineState.DOWN)
    assert 1 == store.lose_tasks(integers([1]))


def lose_to_a_rival(store: Store, job: int) -> None:
    """Let a job that matters more take the place of task 0, on machine 1."""
    rival = a_leased_job(store, a_spec(precedence=10))
    claims = evicting(a_claim(0, machine=1, cpu_milli=4_000), (0, job, 0))
    assert store.commit(a_transaction(claims_of_job(rival, claims))).accepted.all()


@pytest.mark.parametrize("lose", [lose_with_its_machine, lose_to_a_rival])
@pytest.mark.parametrize("loses_at", ["refresh", "think"])
def test_a_job_that_loses_a_task_while_it_is_planned_is_given_back_at_once(
    lose: Callable[[Store, int], None], loses_at: str
) -> None:
    """It loses the task before the view is refreshed, or after; the holder cannot know either."""
    world = World(seed=1)
    (job,) = world.audited.submit([a_spec(2, scheduler="greedy")])
    (first,) = lease_all(world.audited, scheduler="greedy")
    grant(world.audited, first, [0], [1], cpu_milli=4_000)
    world.audited.hand_back([HandBack(job, first.token, delay_ms=0, progressed=True)])
    holder = ByHand(world, Greedy())
    holder.until("lease")
    holder.answer()
    holder.until(loses_at)
    before = status_of(world.audited, job)
    lose(world.audited, job)

    holder.until("commit")
    holder.until("lease", "wait")
    after = status_of(world.audited, job)
    holder.leave()
    world.begin(a_process(world, Greedy()))
    world.pass_time(10.0)

    assert (State.PLANNING, 1) == (before.state, before.placed)
    assert (State.PENDING, 1) == (after.state, after.placed)
    again = status_of(world.audited, job)
    assert (State.RUNNING, 2) == (again.state, again.placed)
    world.audited.audit()
