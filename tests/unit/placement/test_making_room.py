"""Making room: which running gangs fall to which claims of a plan."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from omega.cell.view import View
from omega.clock import ManualClock
from omega.model.claims import Claims, Evictions, Transaction
from omega.model.jobs import LeasedJob
from omega.model.outcomes import Outcome, Verdict
from omega.placement.making_room import make_room
from omega.store.memory.store import MemoryStore
from omega.testing.builders import (
    a_cell,
    a_claim,
    a_spec,
    a_transaction,
    claims_of_job,
    some_claims,
)
from omega.testing.steps import lease_all, places, recall, verdicts_of
from tests.fixtures.doses import examples

Task = tuple[int, dict[str, int]]
"""Machine and amounts."""
Gang = tuple[Task, ...]
ONE_GPU = {"cpu_milli": 1_000, "gpu_0": 1_000}
OTHER_GPU = {"cpu_milli": 1_000, "gpu_1": 1_000}
BOTH_GPUS = {"cpu_milli": 2_000, "gpu_0": 1_000, "gpu_1": 1_000}
CPU = {"cpu_milli": 2_000}
THREE_CORES = {"cpu_milli": 3_000, "gpu_0": 1_000}


def claims_of(gang: Gang) -> Claims:
    return Claims.of([a_claim(at, machine=m, **named) for at, (m, named) in enumerate(gang)])


class Cell:
    """Gangs that run on machines of four cores and two GPUs, recalled, and others that wait.

    The same gangs make the same cell, tokens too.
    """

    def __init__(self, running: Sequence[Gang], waiting: Sequence[Gang] = ()) -> None:
        numbers = count(1)
        self.store = MemoryStore(ManualClock(), new_token=lambda: UUID(int=next(numbers)))
        self.store.add_machines(a_cell(3, gpus=2))
        ids = self.store.submit([a_spec(len(gang), minimum=len(gang)) for gang in running])
        parts = [
            claims_of_job(job, claims_of(gang), minimum=len(gang))
            for job, gang in zip(lease_all(self.store), running, strict=True)
        ]
        if parts:
            assert self.store.commit(a_transaction(*parts)).accepted.all()
        self.running = recall(self.store, ids)
        self.store.submit([a_spec(len(gang), minimum=len(gang)) for gang in waiting])
        self.waiting = lease_all(self.store)
        self.jobs = {job.id: job for job in (*self.running, *self.waiting)}

    def room_for(
        self, parts: Sequence[tuple[LeasedJob, Claims]], may_go: Sequence[LeasedJob]
    ) -> list[Claims]:
        view = View(self.store.snapshot())
        return make_room(view, parts, self.store.allocations(), [job.id for job in may_go])

    def transaction(
        self, parts: Sequence[tuple[LeasedJob, Claims]], claims: Sequence[Claims]
    ) -> Transaction:
        """Put claims together, with the leases of those that they evict."""
        claimants = {job.id for job, _ in parts}
        named = {job for its in claims for job in its.evictions.job.tolist()} - claimants
        claims_by_job = [
            claims_of_job(job, its, minimum=job.spec.tasks)
            for (job, _), its in zip(parts, claims, strict=True)
        ]
        leases = [claims_of_job(self.jobs[job], Claims.none()) for job in sorted(named)]
        return a_transaction(*claims_by_job, *leases)

    def commit(
        self, parts: Sequence[tuple[LeasedJob, Claims]], may_go: Sequence[LeasedJob]
    ) -> Outcome:
        return self.store.commit(self.transaction(parts, self.room_for(parts, may_go)))


def fallen(outcome: Outcome) -> list[int]:
    return sorted(set(outcome.evicted_job.tolist()))


def named_by(claims: Claims) -> list[tuple[int, int, int]]:
    columns = claims.evictions.claim, claims.evictions.job, claims.evictions.task
    return [(int(claim), int(job), int(task)) for claim, job, task in zip(*columns, strict=True)]


def test_where_there_is_room_nobody_falls() -> None:
    cell = Cell([((1, ONE_GPU),)], [((1, OTHER_GPU), (2, ONE_GPU))])
    claims = claims_of(((1, OTHER_GPU), (2, ONE_GPU)))

    (same,) = cell.room_for([(cell.waiting[0], claims)], cell.running)

    assert same is claims


def test_a_gang_falls_whole_to_the_claim_that_needs_its_room() -> None:
    cell = Cell([((1, BOTH_GPUS), (2, BOTH_GPUS)), ((3, BOTH_GPUS),)], [((1, ONE_GPU),)])
    gang, other = cell.running

    outcome = cell.commit([(cell.waiting[0], claims_of(((1, ONE_GPU),)))], cell.running)

    assert [Verdict.ACCEPTED] == verdicts_of(outcome)
    assert [gang.id] == fallen(outcome)
    assert {(other.id, 0): 3, (cell.waiting[0].id, 0): 1} == places(cell.store)


def test_a_gang_whose_room_became_free_by_anothers_fall_runs_on() -> None:
    two = ((1, ONE_GPU), (2, ONE_GPU))
    cell = Cell([two, ((2, OTHER_GPU),)], [((1, ONE_GPU), (2, ONE_GPU))])

    outcome = cell.commit([(cell.waiting[0], claims_of(two))], cell.running)

    assert outcome.accepted.all()
    assert [cell.running[0].id] == fallen(outcome)


def test_a_gang_that_moves_names_itself_once_and_may_land_where_it_was() -> None:
    cell = Cell([((1, ONE_GPU), (2, ONE_GPU))])
    (gang,) = cell.running
    parts = [(gang, claims_of(((2, ONE_GPU), (3, ONE_GPU))))]

    (claims,) = cell.room_for(parts, [gang])
    outcome = cell.store.commit(cell.transaction(parts, [claims]))

    assert [(0, gang.id, 0)] == named_by(claims)
    assert outcome.accepted.all()
    assert {(gang.id, 0): 2, (gang.id, 1): 3} == places(cell.store)


def test_a_gang_can_move_whatever_task_its_claims_begin_with() -> None:
    cell = Cell([((1, ONE_GPU), (2, ONE_GPU))])
    (gang,) = cell.running
    backwards = some_claims([1, 0], [3, 3], cpu_milli=1_000)

    outcome = cell.commit([(gang, backwards)], [gang])

    assert outcome.accepted.all()
    assert {(gang.id, 0): 3, (gang.id, 1): 3} == places(cell.store)


def test_two_gangs_change_places() -> None:
    cell = Cell([((1, BOTH_GPUS),), ((2, BOTH_GPUS),)])
    first, second = cell.running
    there, here = claims_of(((2, BOTH_GPUS),)), claims_of(((1, BOTH_GPUS),))

    outcome = cell.commit([(first, there), (second, here)], cell.running)

    assert outcome.accepted.all()
    assert {(first.id, 0): 2, (second.id, 0): 1} == places(cell.store)


def test_those_that_may_not_go_are_never_named() -> None:
    cell = Cell([((1, BOTH_GPUS),), ((1, CPU),)], [((1, ONE_GPU),)])
    parts = [(cell.waiting[0], claims_of(((1, ONE_GPU),)))]

    (claims,) = cell.room_for(parts, [])
    outcome = cell.store.commit(cell.transaction(parts, [claims]))

    assert 0 == len(claims.evictions)
    assert [Verdict.OVERCOMMIT] == verdicts_of(outcome)
    assert 2 == len(places(cell.store))


def test_who_falls_for_its_gpu_spares_who_would_have_fallen_for_its_cores() -> None:
    """The first of them has cores alone of what is short; the second has all of it."""
    cell = Cell([((1, OTHER_GPU),), ((1, THREE_CORES),)], [((1, THREE_CORES),)])

    outcome = cell.commit([(cell.waiting[0], claims_of(((1, THREE_CORES),)))], cell.running)

    assert outcome.accepted.all()
    assert [cell.running[1].id] == fallen(outcome)


def test_for_a_claim_that_cannot_be_met_nobody_falls() -> None:
    """Else those who come later would count on room that they do not get."""
    cell = Cell([((1, ONE_GPU),)], [((1, ONE_GPU),), ((1, ONE_GPU),)])
    hopeless, later = cell.waiting
    parts = [
        (hopeless, claims_of(((1, {"cpu_milli": 5_000, "gpu_0": 1_000}),))),
        (later, claims_of(((1, ONE_GPU),))),
    ]

    claims = cell.room_for(parts, cell.running)

    assert [] == named_by(claims[0])


def test_a_claim_on_a_machine_that_is_not_known_takes_and_evicts_nothing() -> None:
    cell = Cell([((1, BOTH_GPUS),)], [((9, BOTH_GPUS), (1, BOTH_GPUS))])
    parts = [(cell.waiting[0], claims_of(((9, BOTH_GPUS), (1, BOTH_GPUS))))]

    (claims,) = cell.room_for(parts, cell.running)

    assert [(1, cell.running[0].id, 0)] == named_by(claims)


@dataclass(frozen=True)
class Drawn:
    """A cell, and a plan that fits once those that may go are gone."""

    running: list[Gang]
    may_go: list[int]
    """Which of those that run."""
    moving: dict[int, Gang]
    """Of those that may go, where they are to run."""
    coming: list[Gang]
    order: list[int]
    """Of the movers, then of those that come."""

    def parts(self, cell: Cell) -> list[tuple[LeasedJob, Claims]]:
        parts = [(cell.running[at], claims_of(gang)) for at, gang in self.moving.items()]
        new = zip(cell.waiting, self.coming, strict=True)
        parts += [(job, claims_of(gang)) for job, gang in new]
        return [parts[at] for at in self.order]


TASKS = st.tuples(
    st.integers(1, 3), st.sampled_from([ONE_GPU, ONE_GPU, OTHER_GPU, OTHER_GPU, BOTH_GPUS, CPU])
)
GANGS = st.lists(TASKS, min_size=1, max_size=3).map(tuple)


def gangs_of(tasks: int) -> st.SearchStrategy[Gang]:
    return st.tuples(*[TASKS] * tasks)


KINDS = ("cpu_milli", "gpu_0", "gpu_1")


class Left:
    """What is left of the machines."""

    def __init__(self) -> None:
        self._left = {machine: [4_000, 1_000, 1_000] for machine in (1, 2, 3)}

    def takes(self, gang: Gang) -> bool:
        """Take what a gang needs, if it is there."""
        before = {machine: list(left) for machine, left in self._left.items()}
        for machine, named in gang:
            row = [self._left[machine][at] - named.get(kind, 0) for at, kind in enumerate(KINDS)]
            self._left[machine] = row
        if min(map(min, self._left.values())) < 0:
            self._left = before
            return False
        return True


@st.composite
def plans(draw: st.DrawFn) -> Drawn:
    full, after = Left(), Left()
    running = [gang for gang in draw(st.lists(GANGS, max_size=6)) if full.takes(gang)]
    may_go = [at for at in range(len(running)) if draw(st.sampled_from([True, True, False]))]
    for at, gang in enumerate(running):
        assert at in may_go or after.takes(gang)
    wanted = {at: draw(gangs_of(len(running[at]))) for at in may_go if draw(st.booleans())}
    moving = {at: gang for at, gang in wanted.items() if after.takes(gang)}
    coming = [gang for gang in draw(st.lists(GANGS, max_size=4)) if after.takes(gang)]
    order = draw(st.permutations(range(len(moving) + len(coming))))
    return Drawn(running, may_go, moving, coming, order)


@given(plans())
@examples(600)
def test_a_plan_that_fits_is_granted_whole_and_nobody_falls_for_nothing(drawn: Drawn) -> None:
    cell, claims = planned(drawn)
    named = {victim for its in claims for _, victim, _ in named_by(its)}
    others = {
        victim
        for (job, _), its in zip(drawn.parts(cell), claims, strict=True)
        for _, victim, _ in named_by(its)
        if victim != job.id
    }

    outcome = cell.store.commit(cell.transaction(drawn.parts(cell), claims))

    assert outcome.accepted.all()
    assert [] == cell.store.verify()
    assert sorted(named) == fallen(outcome)
    assert named <= {cell.running[at].id for at in drawn.may_go}
    for victim in others:
        assert not granted_without(drawn, victim)


def planned(drawn: Drawn) -> tuple[Cell, list[Claims]]:
    cell = Cell(drawn.running, drawn.coming)
    may_go = [cell.running[at] for at in drawn.may_go]
    return cell, cell.room_for(drawn.parts(cell), may_go)


def granted_without(drawn: Drawn, victim: int) -> bool:
    """Say whether all of the plan would have been granted without this gang's fall."""
    cell, claims = planned(drawn)
    spared = [spare(its, victim) for its in claims]
    outcome = cell.store.commit(cell.transaction(drawn.parts(cell), spared))
    return bool(outcome.accepted.all())


def spare(claims: Claims, victim: int) -> Claims:
    named = claims.evictions
    others = named.job != victim
    kept = Evictions(named.claim[others], named.job[others], named.task[others])
    return replace(claims, evictions=kept)
