"""Rounds that make way: tasks of other kinds leave the CPU beside GPUs that nobody else needs."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from omega.lifecycle.states import ParkReason, State
from omega.model.arrays import Ids
from omega.model.claims import Transaction
from omega.model.jobs import Constraint, JobSpec, LeasedJob, Operator
from omega.model.occupants import Occupants
from omega.model.outcomes import Outcome
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_group, a_spec
from omega.testing.pass_through import PassThrough
from omega.testing.steps import grant, lease_all, places, status_of
from tests.unit.schedulers.ml_gpu.rounds_at_work import RunningSchedulers, machines, training

K80, V100 = "k80", "v100"
CORES = 32


def urgent(tasks: int = 4, *, precedence: int = 100, cores: int = 1) -> JobSpec:
    """Return a gang that trains on a GPU a task."""
    return replace(training(tasks, cpu_milli=1_000 * cores), precedence=precedence)


def occupy(
    at_work: RunningSchedulers, machine: int, *cores: int, spec: JobSpec | None = None
) -> LeasedJob:
    """Run tasks of another kind on a machine, each with so many cores; return their job."""
    groups = [a_group(1, cpu_milli=1_000 * number) for number in cores]
    asked = spec or a_spec()
    at_work.store.submit([replace(asked, groups=tuple(groups))])
    (job,) = lease_all(at_work.store, scheduler=asked.scheduler)
    for task, number in enumerate(cores):
        grant(at_work.store, job, [task], [machine], cpu_milli=1_000 * number)
    return job


def left_of(at_work: RunningSchedulers, *jobs: LeasedJob) -> list[int]:
    """Return how many tasks of each job still run."""
    running = Counter(job for job, _ in places(at_work.store))
    return [running[job.id] for job in jobs]


class Watched(PassThrough):
    """Counts how often, and of which machines, the occupants are read."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.read: list[list[int]] = []

    def occupants(self, machine: Ids) -> Occupants:
        self.read.append(machine.tolist())
        return super().occupants(machine)


def watched(at_work: RunningSchedulers) -> Watched:
    store = Watched(at_work.store)
    at_work.process = at_work.a_process(lambda _: store)
    return store


def test_a_gang_takes_the_cores_beside_free_gpus_in_one_round_and_no_more_than_it_needs() -> None:
    at_work = RunningSchedulers(machines(K80, 2), jobs=[urgent(8)])
    batch = [occupy(at_work, machine, *[1] * CORES) for machine in (1, 2)]

    at_work.play()

    (gang,) = at_work.jobs
    assert [1] * 4 + [2] * 4 == sorted(at_work.machines_of(gang))
    assert [CORES - 4] * 2 == left_of(at_work, *batch)
    assert [(gang, State.PENDING)] * 2 == [
        (status.evicted_by, status.state) for status in (status_of(at_work.store, j) for j in batch)
    ]
    assert [8] == [commit.evicted for commit in at_work.commits]


def test_of_tasks_of_several_sizes_the_fewest_make_way() -> None:
    at_work = RunningSchedulers(machines(K80, 1), jobs=[urgent(2, cores=4)])
    small = occupy(at_work, 1, *[1] * 14)
    large = occupy(at_work, 1, 9, 9)

    at_work.play()

    assert 2 == len(at_work.machines_of(at_work.jobs[0]))
    assert [14, 1] == left_of(at_work, small, large)


def test_the_lowest_precedence_makes_way_first() -> None:
    at_work = RunningSchedulers(machines(K80, 1), jobs=[urgent(4)])
    higher = occupy(at_work, 1, *[1] * 16, spec=a_spec(precedence=50))
    lower = occupy(at_work, 1, *[1] * 16)

    at_work.play()

    assert [16, 12] == left_of(at_work, higher, lower)


@pytest.mark.parametrize(
    "spec", [a_spec(precedence=91), a_spec(precedence=100), replace(a_spec(), preemptible=False)]
)
def test_who_does_not_yield_stays_and_the_reason_says_so(spec: JobSpec) -> None:
    at_work = RunningSchedulers(machines(K80, 1), jobs=[urgent(4)])
    batch = occupy(at_work, 1, *[1] * CORES, spec=spec)

    at_work.play()

    status = status_of(at_work.store, at_work.jobs[0])
    assert [CORES] == left_of(at_work, batch)
    assert (State.PARKED, ParkReason.NO_ROOM) == (status.state, status.park_reason)
    assert (
        "the gang needs 4 tasks at once; there is room for 0 now; and of what runs on the 1 machine"
        " looked at, not enough yields to precedence 100"
    ) == status.park_detail


def test_who_found_nobody_is_planned_again_in_each_round() -> None:
    at_work = RunningSchedulers(machines(K80, 1), jobs=[urgent(4)])
    batch = occupy(at_work, 1, *[1] * CORES, spec=a_spec(precedence=91))
    at_work.play(3)
    parked = status_of(at_work.store, at_work.jobs[0])

    at_work.store.set_precedence_gap(9)
    at_work.play()

    assert (State.PARKED, 3) == (parked.state, parked.attempts)
    assert (4, [CORES - 4]) == (len(at_work.machines_of(at_work.jobs[0])), left_of(at_work, batch))


def test_where_there_is_room_nobody_is_evicted_and_nobody_asked() -> None:
    at_work = RunningSchedulers(machines(K80, 2), jobs=[urgent(4), urgent(3)])
    batch = occupy(at_work, 1, *[1] * (CORES - 3))
    store = watched(at_work)

    at_work.play(5)

    assert 7 == len(at_work.machines_of(at_work.jobs[0]) + at_work.machines_of(at_work.jobs[1]))
    assert ([CORES - 3], []) == (left_of(at_work, batch), store.read)


def test_for_a_gang_whose_gpus_others_hold_nobody_is_asked() -> None:
    at_work = RunningSchedulers(machines(K80, 1), jobs=[urgent(4), urgent(4)])
    occupy(at_work, 1, *[1] * (CORES - 4))
    store = watched(at_work)

    at_work.play(6)

    assert [] == store.read
    assert 4 == len([job for job, _ in places(at_work.store) if job in at_work.jobs])


def test_tasks_that_hold_gpus_stay() -> None:
    at_work = RunningSchedulers(machines(K80, 1), jobs=[urgent(2)])
    at_work.store.submit([a_spec(groups=(a_group(2, gpus=1, cpu_milli=16_000),))])
    (holder,) = lease_all(at_work.store)
    for task in (0, 1):
        slot = {f"gpu_{task}": 1_000}
        grant(at_work.store, holder, [task], [1], cpu_milli=16_000, **slot)

    at_work.play(2)

    assert [2] == left_of(at_work, holder)
    assert State.PARKED is status_of(at_work.store, at_work.jobs[0]).state


def test_tasks_of_the_same_kind_stay_whatever_their_precedence() -> None:
    at_work = RunningSchedulers(machines(K80, 1), jobs=[urgent(2)])
    at_work.store.cancel(at_work.jobs[0])
    beside = occupy(at_work, 1, *[1] * CORES, spec=a_spec(scheduler="ml-gpu"))
    at_work.jobs = at_work.store.submit([urgent(2)])

    at_work.play(2)

    assert [CORES] == left_of(at_work, beside)


def test_a_gang_stays_on_one_type() -> None:
    at_work = RunningSchedulers(machines(K80, 1), machines(V100, 1, first=2), jobs=[urgent(4)])
    batch = [occupy(at_work, machine, *[1] * CORES) for machine in (1, 2)]

    at_work.play()

    assert 1 == len(at_work.running()[at_work.jobs[0]])
    assert [CORES - 4, CORES] == sorted(left_of(at_work, *batch))


def test_where_one_type_does_not_yield_the_other_does() -> None:
    at_work = RunningSchedulers(machines(K80, 1), machines(V100, 1, first=2), jobs=[urgent(4)])
    first = occupy(at_work, 1, *[1] * CORES, spec=replace(a_spec(), preemptible=False))
    second = occupy(at_work, 2, *[1] * CORES)

    at_work.play()

    assert [2] * 4 == at_work.machines_of(at_work.jobs[0])
    assert [CORES, CORES - 4] == left_of(at_work, first, second)


def test_gangs_of_one_round_name_each_victim_once() -> None:
    at_work = RunningSchedulers(machines(K80, 1), jobs=[urgent(2), urgent(2)])
    batch = occupy(at_work, 1, *[1] * CORES)
    store = watched(at_work)

    at_work.play()

    assert ([1], [CORES - 4]) == (store.read[0], left_of(at_work, batch))
    assert [(4, {})] == [(commit.accepted, commit.refused) for commit in at_work.commits]


def test_gangs_that_break_make_way_whole_and_not_for_the_next_one() -> None:
    at_work = RunningSchedulers(machines(K80, 2), jobs=[urgent(1, cores=CORES)] * 2)
    gang = a_spec(groups=(a_group(2, cpu_milli=CORES * 1_000),), minimum=2)
    at_work.store.submit([gang])
    (falls,) = lease_all(at_work.store)
    grant(at_work.store, falls, [0, 1], [1, 2], cpu_milli=CORES * 1_000)

    at_work.play()

    assert [0] == left_of(at_work, falls)
    assert [1, 1] == [len(at_work.machines_of(job)) for job in at_work.jobs]
    assert [{}] == [commit.refused for commit in at_work.commits]


class EndsFirst(PassThrough):
    """The victims of the first commit end just before it."""

    ended: Sequence[int] = ()

    def commit(self, transaction: Transaction) -> Outcome:
        evictions = transaction.claims.evictions
        if len(evictions) and not self.ended:
            self.ended = evictions.task.tolist()
            self._store.end_tasks(evictions.job, evictions.task)
        return super().commit(transaction)


def test_where_the_victims_have_ended_meanwhile_the_gang_is_placed_in_the_same_round() -> None:
    at_work = RunningSchedulers(machines(K80, 1), jobs=[urgent(4)])
    batch = occupy(at_work, 1, *[1] * CORES)
    store = EndsFirst(at_work.store)
    at_work.process = at_work.a_process(lambda _: store)

    at_work.play()

    assert [4, 0] == [len(store.ended), at_work.commits[-1].evicted]
    assert ["precedence" in commit.refused for commit in at_work.commits] == [True, False]
    assert (4, [CORES - 4]) == (len(at_work.machines_of(at_work.jobs[0])), left_of(at_work, batch))


def test_a_job_beside_the_rounds_has_way_made_for_it_too() -> None:
    beside = replace(a_spec(2, scheduler="ml-gpu", gpus=1), precedence=100)
    at_work = RunningSchedulers(machines(K80, 1), jobs=[beside, urgent(2)])
    batch = occupy(at_work, 1, *[1] * CORES)

    at_work.play()

    assert [2, 2] == [len(at_work.machines_of(job)) for job in at_work.jobs]
    assert [CORES - 4] == left_of(at_work, batch)


def test_what_is_evicted_for_a_gang_leaves_those_of_its_kind_alone() -> None:
    """A gang that trains at precedence 0 keeps its GPUs beside the one for which others go."""
    at_work = RunningSchedulers(machines(K80, 1), jobs=[training(2)])
    batch = occupy(at_work, 1, *[1] * (CORES - 2))
    at_work.play()
    started = at_work.store.allocations_of(at_work.jobs).started_ms.tolist()

    at_work.jobs += at_work.store.submit([urgent(2)])
    at_work.play()

    assert started == at_work.store.allocations_of(at_work.jobs[:1]).started_ms.tolist()
    assert [CORES - 4] == left_of(at_work, batch)
    assert 2 == len(at_work.machines_of(at_work.jobs[1]))


@pytest.mark.parametrize("cores", [9, 40])
def test_a_gang_that_could_not_even_run_alone_evicts_nobody(cores: int) -> None:
    at_work = RunningSchedulers(machines(K80, 1), jobs=[urgent(4, cores=cores)])
    batch = occupy(at_work, 1, *[1] * CORES)

    at_work.play(2)

    assert [CORES] == left_of(at_work, batch)


@pytest.mark.slow
def test_of_very_many_gangs_some_are_served_in_each_round_and_all_in_the_end() -> None:
    at_work = RunningSchedulers(machines(K80, 20), jobs=[urgent(1) for _ in range(80)])
    for machine in range(1, 21):
        occupy(at_work, machine, *[1] * CORES)

    at_work.play(3)

    assert 80 == len(at_work.store.allocations_of(at_work.jobs))
    assert np.bincount(list(places(at_work.store).values()))[1:].tolist() == [CORES] * 20


def test_constraints_of_the_gang_hold_for_where_others_make_way() -> None:
    only = (Constraint("gpu_model", Operator.IN, (V100,)),)
    gang = replace(urgent(2), groups=(a_group(2, gpus=1, constraints=only),))
    at_work = RunningSchedulers(machines(K80, 1), machines(V100, 1, first=2), jobs=[gang])
    for machine in (1, 2):
        occupy(at_work, machine, *[1] * CORES)

    at_work.play()

    assert [2, 2] == at_work.machines_of(at_work.jobs[0])
