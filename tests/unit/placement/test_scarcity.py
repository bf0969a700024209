"""Who has a choice leaves what is scarce: prices, ranks, and the functions that go by them."""

from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omega.cell.demand import NO_DEMAND, Demand
from omega.cell.signals import NO_SIGNALS
from omega.cell.view import View
from omega.framework.scheduler import Scheduler
from omega.model.arrays import Counts
from omega.model.jobs import Constraint, LeasedJob, Operator, Preference, TaskGroup
from omega.model.machines import MachineState
from omega.placement.best_fit import best_fit, spread
from omega.placement.feasibility import Room, matching, room
from omega.placement.first_fit import first_fit
from omega.placement.gangs import on_fewest_machines
from omega.placement.scarcity import (
    cheap_first,
    cheap_if_as_few,
    cheap_part,
    dear_last,
    prices,
    ranks,
)
from omega.placement.scores import most_allocated
from omega.testing.builders import a_cell, a_group, a_job, a_view, join_cells
from omega.testing.scheduler_contract import faults
from schedulers.batch import BatchScheduler
from schedulers.ml_gpu import MlGpuScheduler
from schedulers.service import ServiceScheduler
from tests.fixtures.doses import examples

MODELS = ("A100", "T4", "V100")
schedulers = pytest.mark.parametrize(
    "scheduler", [BatchScheduler(), ServiceScheduler(), MlGpuScheduler(), MlGpuScheduler(None)]
)


def only(*models: str) -> tuple[Constraint, ...]:
    return (Constraint("gpu_model", Operator.IN, models),)


def a_mixed_cell(
    models: Sequence[str],
    *,
    demand: Iterable[TaskGroup] = (),
    used: dict[int, dict[str, int]] | None = None,
    state: dict[int, MachineState] | None = None,
) -> View:
    """Return a view of machines with two GPUs of these models, and with signals of this demand."""
    view = a_view(
        a_cell(len(models), gpus=2, attributes={"gpu_model": list(models)}), used=used, state=state
    )
    groups = list(demand)
    view.signals = NO_SIGNALS._replace(demand=Demand.of(groups) if groups else NO_DEMAND)
    return view


def price_of(view: View) -> list[float]:
    price, which = prices(view, view.signals.demand)
    found: list[float] = price[which].tolist()
    return found


ANY_AND_T4 = (a_group(6, gpus=1), a_group(1, gpus=1, constraints=only("T4")))


def test_a_machine_costs_what_is_asked_for_by_those_who_may_use_it_over_what_is_free() -> None:
    view = a_mixed_cell(["T4", "A100", "A100"], demand=ANY_AND_T4, used={2: {"gpu_0": 1_000}})

    assert [6 / 5 + 1 / 2, 6 / 5, 6 / 5] == pytest.approx(price_of(view))


def test_what_is_on_closed_machines_is_not_free() -> None:
    demand, state = ANY_AND_T4, {1: MachineState.DRAINING}
    view = a_mixed_cell(["T4", "T4", "A100"], demand=demand, state=state)

    assert [6 / 4 + 1 / 2] * 2 + [6 / 4] == pytest.approx(price_of(view))


def test_the_price_is_that_of_the_scarcest_resource() -> None:
    """All tasks ask for half of the GPUs that they may use, and for less of the CPU."""
    demand = [
        a_group(2, cpu_milli=1, gpus=1),
        a_group(1, cpu_milli=1, gpus=1, constraints=only("T4")),
    ]
    view = a_mixed_cell(["T4", "A100"], demand=demand)

    assert [2 / 4 + 1 / 2, 2 / 4] == pytest.approx(price_of(view))


def test_gpus_count_on_machines_that_have_some() -> None:
    view = a_view(
        join_cells(
            a_cell(1, cpu_milli=4_000, gpus=2, attributes={"zone": ["a"]}),
            a_cell(2, cpu_milli=4_000, first=2, attributes={"zone": ["a", "b"]}),
        )
    )
    in_a = (Constraint("zone", Operator.IN, ("a",)),)
    demand = Demand.of([a_group(1, cpu_milli=1_200), a_group(1, gpus=1, constraints=in_a)])
    price, which = prices(view, demand)

    assert [0.1 + 1 / 2, 0.1 + 1 / 8, 0.1] == pytest.approx(price[which].tolist())


def test_prices_that_differ_little_are_equal() -> None:
    """The T4 cost a twentieth more than the A100, the V100 four times as much."""
    demand = [
        a_group(60, gpus=1),
        a_group(1, gpus=1, constraints=only("T4")),
        a_group(60, gpus=1, constraints=only("V100")),
    ]
    view = a_mixed_cell(["T4", "A100", "V100"], demand=demand)

    assert [0, 0, 1] == ranks(room(view, a_job(gpus=1), 0), view.signals.demand).tolist()


def test_only_machines_with_room_are_compared() -> None:
    view = a_mixed_cell(
        ["T4", "A100", "T4"], demand=ANY_AND_T4, used={2: {"gpu_0": 1_000, "gpu_1": 1}}
    )

    assert [0, 0] == ranks(room(view, a_job(gpus=1), 0), view.signals.demand).tolist()


def test_dearer_machines_are_added_until_the_cheap_ones_suffice() -> None:
    view = a_mixed_cell(["T4", "A100", "A100"], demand=ANY_AND_T4)
    its_room, demand = room(view, a_job(9, gpus=1), 0), view.signals.demand

    assert [1, 2] == cheap_part(its_room, 1, demand).at.tolist()
    assert [1, 2] == cheap_part(its_room, 4, demand).at.tolist()
    assert cheap_part(its_room, 5, demand) is its_room


def test_where_all_tasks_may_use_the_same_machines_nothing_is_left_out() -> None:
    view = a_mixed_cell(["T4", "A100"], demand=[a_group(1, gpus=1)])
    its_room = room(view, a_job(gpus=1), 0)

    assert cheap_part(its_room, 1, view.signals.demand) is its_room
    assert most_allocated(its_room).tolist() == dear_last(most_allocated)(its_room).tolist()


def test_a_gang_takes_cheap_machines_unless_it_needs_more_of_them() -> None:
    view = a_mixed_cell(["T4", "A100", "A100"], demand=ANY_AND_T4, used={2: {"gpu_0": 1_000}})
    choose, rng = cheap_if_as_few(on_fewest_machines), np.random.default_rng(1)

    assert [0, 0, 2] == choose(room(view, a_job(2, gpus=1), 0), 2, rng).tolist()
    used = {2: {"gpu_0": 1_000}, 3: {"gpu_0": 1_000}}
    fuller = a_mixed_cell(["T4", "A100", "A100"], demand=ANY_AND_T4, used=used)
    assert [2, 0, 0] == choose(room(fuller, a_job(2, gpus=1), 0), 2, rng).tolist()


def test_domains_are_balanced_all_the_same() -> None:
    """The only machine of the second zone is dear; a service that is spread still goes there."""
    attributes = {"gpu_model": ["A100", "A100", "T4"], "zone": ["a", "a", "b"]}
    view = a_view(a_cell(3, gpus=2, attributes=attributes))
    view.signals = NO_SIGNALS._replace(demand=Demand.of(ANY_AND_T4))
    its_room = room(view, a_job(2, spread_over="zone"), 0)
    rng = np.random.default_rng(1)

    given = spread(its_room, 2, rng, prefer=dear_last(most_allocated))
    assert [1, 1] == [given[:2].sum(), given[2]]


@schedulers
def test_every_scheduler_leaves_the_scarce_machine_to_others(scheduler: Scheduler) -> None:
    """By best fit the T4, which is fuller, would be taken."""
    view = a_mixed_cell(["T4", "A100", "A100"], demand=ANY_AND_T4, used={1: {"gpu_0": 600}})
    for seed in range(20):
        rng = np.random.default_rng(seed)
        for job in (a_job(gpus=1, gpu_slices=300), a_job(gpus=1), a_job(2, gpus=1), a_job(1)):
            assert 1 not in scheduler.place(view, job, rng).machine.tolist()
        bound = a_job(gpus=1, constraints=only("T4"))
        assert [1] == scheduler.place(view, bound, rng).machine.tolist()


def a_cell_with_ssds(models: Sequence[str], ssd: Sequence[str | None]) -> View:
    """Return machines of these models, of which T4 is scarce; by best fit the first is taken."""
    view = a_view(
        a_cell(len(models), gpus=2, attributes={"gpu_model": list(models), "ssd": list(ssd)}),
        used={1: {"gpu_0": 600}},
    )
    view.signals = NO_SIGNALS._replace(demand=Demand.of(ANY_AND_T4))
    return view


def jobs_that_prefer_an_ssd() -> list[LeasedJob]:
    wanted = (Preference(Constraint("ssd", Operator.EXISTS)),)
    return [
        a_job(gpus=1, gpu_slices=300, preferences=wanted),
        a_job(gpus=1, preferences=wanted),
        a_job(2, gpus=1, gpu_slices=300, preferences=wanted),
        a_job(2, minimum=2, gpus=1, gpu_slices=300, preferences=wanted),
        a_job(1, preferences=wanted),
    ]


@schedulers
def test_of_machines_that_are_preferred_alike_the_cheap_one_is_taken(scheduler: Scheduler) -> None:
    view = a_cell_with_ssds(["T4", "A100", "A100", "A100"], ["x", "x", None, None])
    for seed in range(20):
        for job in jobs_that_prefer_an_ssd():
            claims = scheduler.place(view, job, np.random.default_rng(seed))
            assert {2} == set(claims.machine.tolist())


@schedulers
def test_a_scarce_machine_that_is_preferred_is_taken_before_a_plentiful_one_that_is_not(
    scheduler: Scheduler,
) -> None:
    view = a_cell_with_ssds(["T4", "A100", "A100"], ["x", None, None])
    for seed in range(20):
        for job in jobs_that_prefer_an_ssd():
            claims = scheduler.place(view, job, np.random.default_rng(seed))
            assert {1} == set(claims.machine.tolist())


@st.composite
def demands(draw: st.DrawFn) -> list[TaskGroup]:
    """Up to four groups, some with constraints."""
    sets = st.one_of(
        st.just(()),
        st.sets(st.sampled_from(MODELS), min_size=1).map(lambda models: only(*sorted(models))),
    )
    return [
        a_group(
            draw(st.integers(1, 9)),
            cpu_milli=draw(st.integers(0, 2_000)),
            gpus=draw(st.integers(0, 2)),
            constraints=draw(sets),
        )
        for _ in range(draw(st.integers(0, 4)))
    ]


@st.composite
def cases(draw: st.DrawFn) -> tuple[View, LeasedJob]:
    """A view of up to eight machines, partly used, with a demand; and a job of one group."""
    models = draw(st.lists(st.sampled_from(MODELS), min_size=1, max_size=8))
    used = {
        number: {
            "cpu_milli": draw(st.integers(0, 4)) * 1_000,
            "gpu_0": draw(st.sampled_from([0, 500, 1_000])),
        }
        for number in range(1, len(models) + 1)
    }
    state = {
        number: draw(st.sampled_from([MachineState.OPEN] * 5 + [MachineState.DRAINING]))
        for number in used
    }
    view = a_mixed_cell(models, demand=draw(demands()), used=used, state=state)
    (asked,) = draw(demands().filter(lambda groups: len(groups) == 1))
    tasks = draw(st.integers(1, 5))
    job = a_job(tasks, cpu_milli=asked.cpu_milli, gpus=asked.gpus, constraints=asked.constraints)
    return view, job


def slow_price(view: View, row: int) -> float:
    """The price of a machine, set by set and machine by machine."""
    demand, total = view.signals.demand, 0.0
    has_gpus = bool(view.capacity[row, 3:].any())
    for constraints, amounts in zip(demand.constraints, demand.amounts.tolist(), strict=True):
        may_use = matching(view, a_group(1, constraints=tuple(constraints)))
        if not may_use[row]:
            continue
        free = [0, 0, 0, 0]
        for other in np.flatnonzero(may_use & view.open).tolist():
            amount = view.free[other].tolist()
            free = [
                have + more for have, more in zip(free, [*amount[:3], sum(amount[3:])], strict=True)
            ]
        ratios = [wanted / max(have, 1) for wanted, have in zip(amounts, free, strict=True)]
        total += max(ratios if has_gpus else ratios[:3])
    return total


@examples(200)
@given(cases())
def test_prices_are_those_of_the_definition(case: tuple[View, LeasedJob]) -> None:
    view, _ = case

    assert [slow_price(view, row) for row in range(len(view))] == pytest.approx(price_of(view))


@examples(100)
@given(cases(), st.integers(0, 9))
@schedulers
def test_no_machine_is_claimed_that_is_not_eligible_and_none_that_is_missed(
    scheduler: Scheduler, case: tuple[View, LeasedJob], seed: int
) -> None:
    view, job = case
    claims = scheduler.place(view, job, np.random.default_rng(seed))

    assert [] == faults(view, job, claims)
    assert min(len(job.unplaced), room(view, job, 0).total) == len(claims)


@examples(100)
@given(cases(), st.integers(0, 9))
@schedulers
def test_without_different_constraints_claims_are_those_without_signals(
    scheduler: Scheduler, case: tuple[View, LeasedJob], seed: int
) -> None:
    view, job = case
    same = Demand.of(
        [a_group(3, gpus=1, constraints=only("T4")), a_group(1, constraints=only("T4"))]
    )
    view.signals = NO_SIGNALS._replace(demand=same)
    told = scheduler.place(view, job, np.random.default_rng(seed))
    view.signals = NO_SIGNALS
    untold = scheduler.place(view, job, np.random.default_rng(seed))

    assert told.machine.tolist() == untold.machine.tolist()
    assert told.demand.tolist() == untold.demand.tolist()


def dear_only_when_cheap_is_full(its_room: Room, chosen: Counts) -> bool:
    rank = ranks(its_room, its_room.view.signals.demand)
    used = rank[chosen > 0]
    return not len(used) or bool((chosen == its_room.tasks)[rank < used.max()].all())


@examples(200)
@given(cases(), st.integers(0, 9))
def test_a_dear_machine_is_taken_only_when_all_cheaper_ones_are_full(
    case: tuple[View, LeasedJob], seed: int
) -> None:
    view, job = case
    its_room = room(view, job, 0)
    wanted = min(len(job.unplaced), its_room.total)
    if not view.signals.demand.tells_apart or not wanted:
        return
    rng = np.random.default_rng(seed)

    for chosen in (
        best_fit(its_room, wanted, rng, prefer=dear_last(most_allocated)),
        cheap_first(best_fit)(its_room, wanted, rng),
        cheap_first(first_fit)(its_room, wanted, rng),
    ):
        assert wanted == chosen.sum()
        assert (chosen <= its_room.tasks).all()
        assert dear_only_when_cheap_is_full(its_room, chosen)
    claimed = BatchScheduler().place(view, job, rng)
    drawn = (view.id[its_room.at] == claimed.machine[:, np.newaxis]).sum(axis=0)
    assert wanted == drawn.sum()
    assert dear_only_when_cheap_is_full(its_room, drawn)
