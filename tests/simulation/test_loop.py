"""The whole of a small system in one process, from one seed, with an auditor on the books."""

from dataclasses import replace

import pytest

from omega.cell.view import View
from omega.clock import ManualClock
from omega.config import Settings
from omega.events import JobsRescued, StoreCallFailed, TransactionJudged
from omega.framework.attempt import PlanningContext, attempt
from omega.framework.effects import Commit
from omega.framework.kept_leases import WAIT_S
from omega.framework.scheduler import DecisionTime
from omega.lifecycle.states import State
from omega.metrics.facts import merge
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_spec
from omega.testing.steps import add_a_cell, status_of
from tests.simulation.worlds import (
    SEEDS,
    SETTINGS,
    ByHand,
    Greedy,
    Reaper,
    World,
    a_process,
    one_of_each,
    random_specs,
    rivals,
)
from tests.unit.framework.loops import Anywhere, InOrder, numbered_ids


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("unreliable", [False, True])
def test_processes_drain_the_queue_whatever_gets_lost(seed: int, *, unreliable: bool) -> None:
    world = World(seed, unreliable=unreliable)
    specs = random_specs(world.rng, jobs=30)
    world.audited.submit(specs)
    processes = one_of_each(world)
    world.begin(*processes)

    world.run()

    world.audited.audit()
    facts = merge(*(process.fold.facts() for process in processes))
    assert unreliable == any(isinstance(event, StoreCallFailed) for event in world.events)
    # The replies of some commits were lost, and those that were sent again are told once.
    assert sum(spec.tasks for spec in specs) == facts["totals"]["tasks_placed"]
    assert [{}, {}, {}] == [process.leases.held() for process in processes]


@pytest.mark.parametrize("seed", SEEDS)
def test_overlapping_attempts_conflict_and_every_task_is_placed_once(seed: int) -> None:
    world = World(seed)
    specs = random_specs(world.rng, jobs=40)
    world.audited.submit(specs)
    world.begin(*rivals(world))

    world.run()

    world.audited.audit()
    accepted = [e.accepted for e in world.events if isinstance(e, TransactionJudged)]
    assert sum(spec.tasks for spec in specs) == sum(accepted)
    assert world.conflicts() > 0


@pytest.mark.parametrize("seed", SEEDS)
def test_jobs_of_killed_schedulers_are_rescued_and_placed_once(seed: int) -> None:
    world = World(seed)
    specs = random_specs(world.rng, jobs=40)
    world.audited.submit(specs)
    reaper = Reaper(world, world.begin(*rivals(world)), dies=0.02)
    world.every(0.1, reaper.visit)

    world.run()

    world.audited.audit()
    assert reaper.deaths > 0
    assert any(isinstance(event, JobsRescued) for event in world.events)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_job_larger_than_its_cell_runs_in_waves(seed: int) -> None:
    """Its tasks take all room and free it again, mostly between two looks at parked jobs."""
    world = World(seed, settings=Settings(lease_ms=20_000, rescue_interval_ms=20_000))
    (job,) = world.audited.submit([a_spec(400, cpu_milli=1_000, duration_ms=2_000)])
    process = a_process(world, Anywhere())
    world.begin(process)

    world.run()

    assert 400 == process.fold.facts()["totals"]["tasks_placed"]
    assert State.SUCCEEDED is status_of(world.audited, job).state
    waves, free_cores = 10, 40
    assert 400 == waves * free_cores
    assert world.engine.now_s < 1.6 * waves * 2.0  # a job that is parked is looked at soon


def test_a_lease_is_renewed_as_long_as_its_holder_thinks() -> None:
    world = World(seed=1)
    (job,) = world.audited.submit([a_spec(scheduler="greedy")])
    thinks = DecisionTime(job_s=3 * SETTINGS.lease_ms / 1_000)
    slow = replace(a_process(world, Greedy()), decision_time=thinks)
    world.begin(slow)
    world.pass_time(1.0)
    world.begin(a_process(world, Greedy(), "rescuer"))

    world.pass_time(2 * SETTINGS.lease_ms / 1_000)
    status = status_of(world.audited, job)

    assert State.PLANNING is status.state
    assert 1 == status.attempts


@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_is_a_function_of_its_seed(seed: int) -> None:
    stories = []
    for _ in range(2):
        world = World(seed)
        world.audited.submit(random_specs(world.rng, jobs=20))
        world.begin(*rivals(world))
        world.run()
        stories.append((world.clock.now(), world.events))

    assert stories[0] == stories[1]


@pytest.mark.parametrize("dies_at", ["refresh", "think", "commit", "hand_back"])
def test_a_scheduler_that_dies_at_any_effect_loses_nothing(dies_at: str) -> None:
    """What it asked for is done, and it never hears of it."""
    world = World(seed=1)
    (job,) = world.audited.submit([a_spec(45, scheduler="greedy", duration_ms=100)])
    dead = ByHand(world, Greedy())
    dead.until("lease")
    dead.answer()
    if dies_at == "hand_back":  # until then the job keeps its lease
        dead.until("wait")
        world.engine.now_s += WAIT_S
    dead.until(dies_at)
    dead.answer()
    dead.leave()
    before = status_of(world.audited, job)

    world.begin(a_process(world, Greedy()))
    world.run()

    assert (State.PENDING if dies_at == "hand_back" else State.PLANNING) is before.state
    assert (40 if dies_at in {"commit", "hand_back"} else 0) == before.placed
    assert 45 == status_of(world.audited, job).ended
    world.audited.audit()


def test_the_slot_that_two_thought_of_goes_to_the_first_and_the_other_learns_why() -> None:
    store = MemoryStore(ManualClock())
    add_a_cell(store, 1, cpu_milli=1_000)
    store.submit([a_spec(name="first"), a_spec(name="second")])
    both = store.lease("batch", holder="0", jobs_max=2, lease_ms=60_000)
    views = [View(store.snapshot()) for _ in both]
    new_id = numbered_ids()
    steps = []
    for number, (job, view) in enumerate(zip(both, views, strict=True)):
        replica = PlanningContext(scheduler=InOrder(), name=f"{number}", run_seed=1, new_id=new_id)
        steps.append(attempt(replica, [job]))
        next(steps[-1])
        steps[-1].send(view)

    commits = [one.send(None) for one in steps]
    outcomes = [
        store.commit(commit.transaction) for commit in commits if isinstance(commit, Commit)
    ]
    with pytest.raises(StopIteration) as won:
        steps[0].send(outcomes[0])
    steps[1].send(outcomes[1])  # it looks again ...
    steps[1].send(views[1])  # ... and thinks
    with pytest.raises(StopIteration) as lost:
        steps[1].send(None)

    assert [1, 0] == [won.value.value[0].placed, lost.value.value[0].placed]
    assert [0, 0] == [int(view.free[0, 0]) for view in views]
    assert 2 == lost.value.value[0].tries
