"""Rounds of training jobs on a cell: who gets what, and who is left alone."""

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from omega.cell.view import View
from omega.framework.rounds import RoundPlan, RoundState
from omega.model.arrays import integers
from omega.model.claims import Transaction
from omega.model.jobs import Constraint, Operator
from omega.model.machines import MachineState
from omega.model.outcomes import Outcome
from omega.store.protocols import Store
from omega.testing.builders import a_spec
from omega.testing.pass_through import PassThrough
from omega.testing.steps import LONG_MS, claim, lease_all, places, recall, status_of
from tests.unit.schedulers.ml_gpu.rounds_at_work import (
    MODELS,
    RunningSchedulers,
    machines,
    training,
)

K80, V100 = "k80", "v100"
NOT_ON_V100 = (Constraint("gpu_model", Operator.NOT_IN, (V100,)),)


def a_table(tmp_path: Path) -> Path:
    """Write rates down: v100s are faster, for some models much faster."""
    gain = dict(zip(MODELS, (1.2, 2.0, 4.0, 8.0), strict=True))
    kinds = [(model, gpus) for model in MODELS for gpus in (1, 2, 4)]
    slow = {str(kind): {"null": 1.0 * kind[1]} for kind in kinds}
    fast = {str(kind): {"null": gain[kind[0]] * kind[1]} for kind in kinds}
    path = tmp_path / "rates.json"
    path.write_text(json.dumps({K80: slow, V100: fast}))
    return path


def fractions(at_work: RunningSchedulers, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Play rounds; return which part of them each job had on each type, and what was promised."""
    had = np.zeros((len(at_work.jobs), 2))
    for _ in range(rounds):
        at_work.play()
        for job, types in at_work.running().items():
            (type_,) = types
            had[at_work.jobs.index(job), (K80, V100).index(type_)] += 1
    plan = at_work.record()
    assert at_work.jobs == plan["jobs"]
    return had / rounds, np.array(plan["share"])


@pytest.mark.slow
def test_over_time_all_get_what_was_promised(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    jobs = [training(int(rng.choice([1, 1, 1, 2, 4])), model=MODELS[at % 4]) for at in range(64)]
    at_work = RunningSchedulers(
        machines(K80, 8), machines(V100, 4, first=9), jobs=jobs, throughputs=a_table(tmp_path)
    )

    had, promised = fractions(at_work, rounds=50)

    assert np.abs(had - promised).max() <= 0.05
    sizes = np.array([job.tasks for job in jobs])
    assert (sizes @ had >= 0.97 * np.array([32, 16])).all()


@pytest.mark.parametrize(
    "policy",
    [
        "max_min_fairness",
        "finish_time_fairness_perf",
        "min_total_duration_perf",
        "fifo",
        "fifo_perf",
        "shortest_job_first_perf",
        "isolated",
        "max_sum_throughput_perf",
        "hier_max_min_fairness_water_filling_perf",
    ],
)
def test_every_policy_keeps_the_gpus_at_work(policy: str) -> None:
    jobs = [training(size) for size in (1, 2, 4, 1, 1, 2, 1, 1, 1, 2)]
    at_work = RunningSchedulers(
        machines(K80, 2), machines(V100, 1, first=3), jobs=jobs, policy=policy
    )

    at_work.play(4)

    assert 12 == len(places(at_work.store))


def test_who_keeps_its_type_makes_no_claim() -> None:
    at_work = RunningSchedulers(machines(K80, 2), jobs=[training(2), training(4), training(1)])
    at_work.play()
    before = places(at_work.store)

    at_work.play(20)

    assert 1 == len(at_work.commits)
    assert before == places(at_work.store)


def test_the_first_to_come_to_an_idle_cell_do_not_wait_for_shares() -> None:
    at_work = RunningSchedulers(machines(K80, 1), policy="fifo_perf")
    at_work.play(2)
    at_work.jobs = at_work.store.submit([training(2), training(2)])

    at_work.play()

    assert 4 == len(places(at_work.store))


def test_gangs_of_a_machine_that_is_drained_move() -> None:
    at_work = RunningSchedulers(machines(K80, 3), jobs=[training(4), training(2), training(2)])
    at_work.play()
    (drained,) = set(at_work.machines_of(at_work.jobs[0]))
    others = {job: at_work.machines_of(job) for job in at_work.jobs[1:]}
    at_work.drain(drained)

    at_work.play()

    assert drained not in places(at_work.store).values()
    assert 8 == len(places(at_work.store))
    assert others == {job: at_work.machines_of(job) for job in at_work.jobs[1:]}


def test_what_was_had_on_a_machine_that_is_drained_counts() -> None:
    at_work = RunningSchedulers(machines(K80, 1), jobs=[training(4)], resets_after=100)
    at_work.play(3)
    at_work.drain(1)
    at_work.play(3)

    plan = at_work.record()

    ((received,),) = np.array(plan["received_s"]) - float(str(plan["credit_s"]))
    assert 5 * 1.001 == pytest.approx(received)
    assert 4 == len(places(at_work.store))


def test_jobs_that_do_not_train_are_placed_beside_and_never_evicted() -> None:
    beside = a_spec(2, scheduler="ml-gpu", gpus=1)
    at_work = RunningSchedulers(
        machines(K80, 2), jobs=[training(2), beside, training(4), training(4)]
    )
    seen = []
    for _ in range(12):
        at_work.play()
        seen.append(at_work.machines_of(at_work.jobs[1]))

    assert 2 == len(seen[0])
    assert [seen[0]] * 12 == seen
    assert {job for job, _ in places(at_work.store)} <= set(at_work.jobs)
    assert Counter() == Counter(why for commit in at_work.commits for why in commit.refused)


def test_a_round_does_not_conflict_with_itself() -> None:
    """Who is placed beside and who trains do not count on the same GPUs."""
    beside = [a_spec(1, scheduler="ml-gpu", gpus=1) for _ in range(4)]
    at_work = RunningSchedulers(machines(K80, 2), jobs=[*beside, training(4), training(4)])

    at_work.play()

    (commit,) = at_work.commits
    assert {} == commit.refused
    assert 8 == len(places(at_work.store))


def test_who_must_not_run_on_a_type_never_does() -> None:
    jobs = [training(2, constraints=NOT_ON_V100), *[training(2) for _ in range(3)]]
    at_work = RunningSchedulers(machines(K80, 1), machines(V100, 1, first=2), jobs=jobs)
    types: Counter[str] = Counter()
    for _ in range(20):
        at_work.play()
        types.update(at_work.running().get(at_work.jobs[0], ()))

    assert {K80} == set(types)
    assert types[K80] >= 18


def test_a_gang_too_large_for_every_type_waits_and_harms_nobody() -> None:
    at_work = RunningSchedulers(
        machines(K80, 1), machines(V100, 1, first=2), jobs=[training(5), training(4), training(4)]
    )

    for _ in range(12):
        at_work.play()
        assert set(at_work.jobs[1:]) == set(at_work.running())

    assert [{}] * len(at_work.commits) == [commit.refused for commit in at_work.commits]
    assert 0 == status_of(at_work.store, at_work.jobs[0]).placed


def test_a_type_whose_machines_are_too_small_is_not_promised() -> None:
    """Eight GPUs of a type are there, but no task finds the two it needs on one machine."""
    jobs = [training(1, gpus=2), *[training(1) for _ in range(7)]]
    at_work = RunningSchedulers(machines(K80, 2), machines(V100, 8, first=3, gpus=1), jobs=jobs)

    at_work.play(6)

    share = np.array(at_work.record()["share"])
    assert 0.0 == share[0, 1]
    assert 1.0 == pytest.approx(share[0, 0])
    assert set(at_work.jobs) == set(at_work.running())


def test_machines_of_a_new_type_are_used_at_once_and_promised_later() -> None:
    at_work = RunningSchedulers(machines(K80, 1), jobs=[training(4), training(4)], resets_after=3)
    at_work.play(2)
    at_work.add(machines(V100, 1, first=2))

    at_work.play(2)

    assert 8 == len(places(at_work.store))
    at_work.play(4)
    plan = at_work.record()
    assert [K80, V100] == plan["types"]
    assert np.array([1.0, 1.0]) == pytest.approx(np.array(plan["share"]).sum(axis=0))


def test_machines_that_do_not_say_what_they_have_are_a_type_of_their_own() -> None:
    at_work = RunningSchedulers(
        machines(K80, 1), jobs=[training(4), training(4)], gpu_attribute="nothing"
    )

    at_work.play(3)

    assert [""] == at_work.record()["types"]
    assert 4 == len(places(at_work.store))


def full_of_cpu_work(store: Store, *on: int) -> None:
    """Let another scheduler take the cores of these machines."""
    store.submit([a_spec(len(on), cpu_milli=30_000)])
    (job,) = lease_all(store)
    outcome = claim(store, job, range(len(on)), on, cpu_milli=30_000)
    assert outcome.accepted.all()


def test_where_there_are_no_cores_a_gang_goes_elsewhere() -> None:
    at_work = RunningSchedulers(machines(K80, 2), jobs=[training(4)])
    full_of_cpu_work(at_work.store, 1)

    at_work.play()

    assert [2] * 4 == at_work.machines_of(at_work.jobs[0])


def test_gpus_that_a_gang_finds_no_cores_for_go_to_others() -> None:
    hungry, modest = training(4, cpu_milli=4_000), training(4, cpu_milli=100)
    at_work = RunningSchedulers(machines(K80, 1), jobs=[hungry, modest])
    full_of_cpu_work(at_work.store, 1)

    at_work.play(8)

    assert [1] * 4 == at_work.machines_of(at_work.jobs[1])
    assert [] == at_work.machines_of(at_work.jobs[0])
    assert 1 == len(at_work.commits)


def test_a_gang_that_finds_no_room_on_its_better_type_is_not_interrupted(tmp_path: Path) -> None:
    at_work = RunningSchedulers(
        machines(K80, 1),
        machines(V100, 1, first=2),
        jobs=[training(4, model=MODELS[3])],
        throughputs=a_table(tmp_path),
    )
    full_of_cpu_work(at_work.store, 2)
    at_work.play()
    started = at_work.store.allocations().started_ms.tolist()

    at_work.play(10)

    assert {K80} == at_work.running()[at_work.jobs[0]]
    assert started == at_work.store.allocations().started_ms.tolist()
    assert 1 == len(at_work.commits)


class Rival(PassThrough):
    """Somebody takes the cores that the first commit is after, just before it."""

    taken = 0

    def commit(self, transaction: Transaction) -> Outcome:
        if not self.taken:
            self.taken = int(transaction.claims.machine[0])
            full_of_cpu_work(self._store, self.taken)
        return super().commit(transaction)


def test_a_gang_that_met_a_rival_is_placed_elsewhere_on_its_type() -> None:
    at_work = RunningSchedulers(machines(K80, 2), jobs=[training(4)])
    rival = Rival(at_work.store)
    at_work.process = at_work.a_process(lambda _: rival)

    at_work.play()

    assert [True, False] == [len(commit.refused) > 0 for commit in at_work.commits]
    assert [3 - rival.taken] * 4 == at_work.machines_of(at_work.jobs[0])


def planned(
    at_work: RunningSchedulers, *, seed: int, memo: Mapping[str, object] | None = None
) -> RoundPlan:
    """Plan one more round, of what is running and waiting, and commit nothing."""
    store, rounds = at_work.store, at_work.process.scheduler.rounds
    assert rounds is not None
    running = recall(store, at_work.jobs, scheduler="ml-gpu", holder="x")
    waiting = store.lease("ml-gpu", holder="x", jobs_max=1_000, lease_ms=LONG_MS)
    state = RoundState(
        number=2,
        began_ms=store.now_ms(),
        memo=at_work.record() if memo is None else memo,
        waiting=waiting,
        running=running,
        allocations=store.allocations_of(at_work.jobs),
        progress=store.progress(integers(at_work.jobs)),
    )
    view = View(store.snapshot())
    free = view.free.copy()
    plan = rounds.plan(view, state, np.random.default_rng(seed))
    assert (free == view.free).all()
    return plan


def claims_of(plan: RoundPlan) -> list[object]:
    return [
        (
            one.job.id,
            one.grants_min,
            one.claims.machine.tolist(),
            one.claims.demand.tolist(),
            one.claims.evictions.job.tolist(),
        )
        for one in plan.claims
    ]


def test_the_same_seed_gives_the_same_plan() -> None:
    def once(seed: int) -> tuple[list[object], Mapping[str, object]]:
        jobs = [training(1 + at % 4) for at in range(12)]
        at_work = RunningSchedulers(machines(K80, 4), machines(V100, 2, first=5), jobs=jobs)
        at_work.play()
        plan = planned(at_work, seed=seed)
        return claims_of(plan), plan.memo

    first, again = once(1), once(1)

    assert first == again
    assert len(first[0]) > 0


@pytest.mark.parametrize("state", [MachineState.DOWN, MachineState.DRAINING])
def test_a_cell_without_open_machines_gives_nobody_anything(state: MachineState) -> None:
    at_work = RunningSchedulers(machines(K80, 2), jobs=[training(2)])
    at_work.store.set_state(integers([1, 2]), state)

    at_work.play(2)

    assert {} == places(at_work.store)
