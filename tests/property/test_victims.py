"""Victims are the fewest possible: compared with a search through all choices, on small cells."""

from dataclasses import dataclass, replace
from itertools import chain, combinations

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from omega.cell.view import View
from omega.clock import ManualClock
from omega.model.jobs import LeasedJob
from omega.model.outcomes import Verdict
from omega.placement.looks import machines_to_look_at
from omega.placement.victims import place_with_evictions
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_group, a_spec, a_transaction, claims_of_job, some_claims
from omega.testing.steps import LONG_MS, add_a_cell
from tests.fixtures.doses import examples

CORES = 4
TaskName = tuple[int, int]


@dataclass(frozen=True)
class Cell:
    """A small full cell and a job that has no room, as plain numbers."""

    machines: int
    runs: list[tuple[int, int, int, int, bool]]
    """Of each job that runs: cores of a task, tasks, minimum, precedence, preemptible."""
    wanted: int
    cores: int
    minimum: int


@st.composite
def cells(draw: st.DrawFn, *, gangs: int, whole: bool = False) -> Cell:
    machines = draw(st.integers(1, 3))
    runs = []
    for _ in range(draw(st.integers(1, 4))):
        tasks = draw(st.integers(1, 3))
        is_gang = gangs > 0 and draw(st.booleans())
        gangs -= is_gang
        minimum = draw(st.integers(tasks if whole else 1, tasks)) if is_gang else 0
        precedence = draw(st.sampled_from([0, 0, 5, 10, 11]))
        stays = draw(st.sampled_from([False, False, False, True]))
        runs.append((draw(st.integers(1, 3)), tasks, minimum, precedence, not stays))
    wanted = draw(st.integers(1, 3))
    minimum = draw(st.sampled_from([0, 0, wanted]))
    return Cell(machines, runs, wanted, draw(st.integers(1, CORES)), minimum)


class Played:
    """The cell in a store; each task runs where it first found room."""

    def __init__(self, cell: Cell) -> None:
        self.cell = cell
        self.store = MemoryStore(ManualClock())
        self.machines = add_a_cell(self.store, cell.machines, cpu_milli=CORES * 1_000)
        self.free = dict.fromkeys(self.machines, CORES)
        self.held: dict[TaskName, tuple[int, int]] = {}
        """By task, its machine and cores."""
        self.yields: dict[int, bool] = {}
        self.minimum: dict[int, int] = {}
        for run in cell.runs:
            self.run(*run)
        spec = a_spec(groups=(a_group(cell.wanted, cpu_milli=cell.cores * 1_000),))
        self.job = self.lease(replace(spec, precedence=20, minimum=cell.minimum))

    def lease(self, spec: object) -> LeasedJob:
        self.store.submit([spec])  # type: ignore[list-item]
        (job,) = self.store.lease("batch", holder="0", jobs_max=1, lease_ms=LONG_MS)
        return job

    def run(self, cores: int, tasks: int, minimum: int, precedence: int, preemptible: bool) -> None:  # noqa: FBT001
        places = []
        free = dict(self.free)
        for _ in range(tasks):
            machine = next((m for m, left in free.items() if left >= cores), None)
            if machine is None:
                break
            free[machine] -= cores
            places.append(machine)
        if len(places) < tasks:
            return
        spec = a_spec(groups=(a_group(tasks, cpu_milli=cores * 1_000),))
        job = self.lease(
            replace(spec, precedence=precedence, minimum=minimum, preemptible=preemptible)
        )
        claims = some_claims(range(tasks), places, cpu_milli=cores * 1_000)
        outcome = self.store.commit(a_transaction(claims_of_job(job, claims)))
        assert outcome.accepted.all()
        self.free = free
        self.held |= {(job.id, task): (machine, cores) for task, machine in enumerate(places)}
        self.yields[job.id] = preemptible and precedence + 10 <= 20
        self.minimum[job.id] = minimum

    def best(self, *, gangs: bool = True) -> tuple[int, int]:
        """Return the most tasks that can be placed and the fewest victims for them, of all ways.

        Without `gangs`, tasks of gangs stay.
        """
        may_go = [
            name
            for name in self.held
            if self.yields[name[0]] and (gangs or not self.minimum[name[0]])
        ]
        ways = chain.from_iterable(combinations(may_go, n) for n in range(len(may_go) + 1))
        found = [(-self.placed_without(gone), len(gone)) for gone in map(self.whole, ways)]
        placed, victims = min(found)
        return -placed, victims

    def whole(self, gone: tuple[TaskName, ...]) -> set[TaskName]:
        """Return these tasks and the rest of gangs that break without them."""
        falls = set(gone)
        for job, minimum in self.minimum.items():
            live = {name for name in self.held if name[0] == job}
            if falls & live and len(live - falls) < minimum:
                falls |= live
        return falls

    def placed_without(self, gone: set[TaskName]) -> int:
        free = dict(self.free)
        for name in gone:
            machine, cores = self.held[name]
            free[machine] += cores
        room = sum(left // self.cell.cores for left in free.values())
        placed = min(room, self.cell.wanted)
        return placed if placed >= self.cell.minimum else 0


def judged(played: Played) -> tuple[int, set[TaskName]]:
    """Let the store judge what placement proposes; return the grants and who was evicted."""
    store, job = played.store, played.job
    view = View(store.snapshot())
    before = view.rows()
    rng = np.random.default_rng(1)
    machines = machines_to_look_at(view, job, rng)
    claims = place_with_evictions(view, job, machines, store.occupants(machines), rng)
    assert (before.used == view.rows().used).all(), "the view is as it was"
    outcome = store.commit(a_transaction(claims_of_job(job, claims)))
    assert [int(Verdict.ACCEPTED)] * len(claims) == outcome.verdicts.tolist()
    pairs = zip(outcome.evicted_job.tolist(), outcome.evicted_task.tolist(), strict=True)
    return len(claims), set(pairs)


@examples(600)
@given(cells(gangs=0))
def test_as_many_as_possible_are_placed_and_the_fewest_evicted(cell: Cell) -> None:
    played = Played(cell)
    best = played.best()

    placed, evicted = judged(played)

    assert best == (placed, len(evicted))
    assert all(played.yields[job] for job, _ in evicted)


@examples(600)
@given(cells(gangs=1, whole=True))
def test_a_gang_counts_as_a_whole(cell: Cell) -> None:
    played = Played(cell)
    best = played.best()

    placed, evicted = judged(played)

    assert best == (placed, len(evicted))
    assert played.whole(tuple(evicted)) == evicted


@examples(300)
@given(cells(gangs=3, whole=True))
def test_if_gangs_that_fall_together_make_room_some_is_found(cell: Cell) -> None:
    played = Played(cell)
    possible, _ = played.best()
    assume(not cell.minimum)

    placed, _ = judged(played)

    assert (placed > 0) == (possible > 0)


@examples(300)
@given(cells(gangs=3))
def test_of_several_gangs_none_falls_by_halves_nor_against_its_precedence(cell: Cell) -> None:
    played = Played(cell)

    _, evicted = judged(played)

    assert played.whole(tuple(evicted)) == evicted
    assert all(played.yields[job] for job, _ in evicted)


@examples(300)
@given(cells(gangs=3, whole=True))
def test_with_several_gangs_it_is_never_worse_than_to_spare_them_all(cell: Cell) -> None:
    """The least is not promised where several gangs would have to fall together."""
    played = Played(cell)
    spared, lost = played.best(gangs=False)

    placed, evicted = judged(played)

    assert (-placed, len(evicted)) <= (-spared, lost)
