"""Where a task costs least future room, against fragments counted slot by slot."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omega.cell.demand import NO_DEMAND
from omega.cell.signals import NO_SIGNALS
from omega.cell.view import View
from omega.model.arrays import Amounts
from omega.model.claims import Claims
from omega.model.jobs import Constraint, LeasedJob, Operator, TaskGroup
from omega.model.machines import Catalogue, Machines, Snapshot
from omega.model.resources import DEVICES, GPU_SLICES, Kind
from omega.placement.feasibility import matching, room
from omega.placement.fragmentation import TypicalTasks, lost, place_alone, usable
from omega.testing.builders import a_cell, a_group, a_job, a_spec, a_view
from omega.testing.scheduler_contract import faults
from tests.fixtures.doses import examples

SIZES = (1, 100, 250, 500, 600, 1_000)


def fragments(free: Amounts, shapes: list[tuple[TaskGroup, float]]) -> float:
    """The paper's definition: what of a machine's free GPUs a task cannot use, on average."""
    slots = free[DEVICES].tolist()
    expected = 0.0
    for shape, share in shapes:
        enough = [slot for slot in slots if slot >= shape.gpu_slices]
        plain = free[Kind.CPU_MILLI] >= shape.cpu_milli and free[Kind.MEMORY_MIB] >= (
            shape.memory_mib
        )
        fits = plain and len(enough) >= shape.gpus
        expected += share * sum(slot for slot in slots if not fits or slot < shape.gpu_slices)
    return expected


@st.composite
def groups(draw: st.DrawFn) -> TaskGroup:
    """A task with GPUs."""
    gpus = draw(st.sampled_from([1, 1, 1, 2, 3]))
    return a_group(
        draw(st.integers(1, 4)),
        gpus=gpus,
        gpu_slices=draw(st.sampled_from(SIZES)) if gpus == 1 else GPU_SLICES,
        cpu_milli=draw(st.integers(0, 4)),
        memory_mib=draw(st.integers(0, 2)),
    )


@st.composite
def views(draw: st.DrawFn) -> View:
    """Up to four machines with three GPUs, partly used."""
    machines = draw(st.integers(1, 4))
    used = {
        machine: {
            "cpu_milli": draw(st.integers(0, 6)),
            "memory_mib": draw(st.integers(0, 3)),
            **{f"gpu_{slot}": draw(st.sampled_from([0, *SIZES, 777])) for slot in range(3)},
        }
        for machine in range(1, machines + 1)
    }
    return a_view(a_cell(machines, cpu_milli=6, memory_mib=3, gpus=3), used=used)


def shares(typical: list[TaskGroup]) -> list[tuple[TaskGroup, float]]:
    total = sum(group.tasks for group in typical)
    return [(group, group.tasks / total) for group in typical]


typical_groups = st.lists(groups(), min_size=1, max_size=4)


@examples(200)
@given(views(), typical_groups)
def test_what_is_usable_is_all_but_the_fragments(view: View, typical: list[TaskGroup]) -> None:
    expected = [row[DEVICES].sum() - fragments(row, shares(typical)) for row in view.free]

    assert expected == pytest.approx(
        usable(view.free, TypicalTasks.of(typical, popular=1)).tolist()
    )


@examples(200)
@given(views(), typical_groups, groups())
def test_a_task_costs_what_it_takes_and_the_fragments_that_it_leaves(
    view: View, typical: list[TaskGroup], asked: TaskGroup
) -> None:
    its_room = room(view, a_job(spec=a_spec(groups=[asked])), 0)
    found = lost(its_room, TypicalTasks.of(typical, popular=1))
    taken = asked.gpus * asked.gpu_slices

    for row, losses in zip(its_room.at.tolist(), found.tolist(), strict=True):
        before = fragments(view.free[row], shares(typical))
        for slot, loss in enumerate(losses):
            after = view.free[row] - asked.demand
            fits = after[DEVICES] >= asked.gpu_slices
            if not fits[slot]:
                assert np.inf == loss
                continue
            others = [other for other in np.flatnonzero(fits).tolist() if other != slot]
            for chosen in [slot, *others][: asked.gpus]:
                after[Kind.GPU_0 + chosen] -= asked.gpu_slices
            gradient = fragments(after, shares(typical)) - before
            assert taken + gradient == pytest.approx(loss, abs=1e-6)


@st.composite
def bound(draw: st.DrawFn, asked: st.SearchStrategy[TaskGroup]) -> TaskGroup:
    """A group that some models, or all, may run."""
    models = draw(st.sampled_from([(), ("T4",), ("A100",), ("A100", "T4")]))
    constraints = (Constraint("gpu_model", Operator.IN, models),) if models else ()
    return replace(draw(asked), constraints=constraints)


@examples(200)
@given(views(), st.lists(bound(groups()), min_size=1, max_size=4), bound(groups()), st.data())
def test_a_task_costs_what_those_lose_who_may_use_the_machine(
    view: View, typical: list[TaskGroup], asked: TaskGroup, data: st.DataObject
) -> None:
    models = data.draw(st.lists(st.sampled_from(["T4", "A100", None]), min_size=4, max_size=4))
    view = with_models(view, models[: len(view)])
    its_room = room(view, a_job(spec=a_spec(groups=[asked])), 0)
    found = lost(its_room, TypicalTasks.of(typical, popular=1))

    for row, losses in zip(its_room.at.tolist(), found.tolist(), strict=True):
        theirs = [
            (group, share if matching(view, group)[row] else 0.0)
            for group, share in shares(typical)
        ]
        best = min(losses)
        slot = losses.index(best)
        after = view.free[row] - asked.demand
        fits = np.flatnonzero(after[DEVICES] >= asked.gpu_slices).tolist()
        for chosen in [slot, *(other for other in fits if other != slot)][: asked.gpus]:
            after[Kind.GPU_0 + chosen] -= asked.gpu_slices
        before = usable_by(view.free[row], theirs)
        assert before - usable_by(after, theirs) == pytest.approx(best, abs=1e-6)


def usable_by(free: Amounts, shapes: list[tuple[TaskGroup, float]]) -> float:
    """What of a machine's free GPUs tasks of these shapes can use, weighted by their shares."""
    total = sum(share for _, share in shapes)
    return float(total * free[DEVICES].sum() - fragments(free, shapes))


def with_models(view: View, models: list[str | None]) -> View:
    """Return the same view, of machines that have these GPU models."""
    cell = Machines(view.names, view.capacity, {"gpu_model": models})
    catalogue, codes = Catalogue().encode(cell)
    return View(Snapshot(view.rows(), view.names, catalogue, codes, mark=0, generation=1))


@examples(200)
@given(views(), typical_groups, groups(), st.integers(0, 9))
def test_a_task_goes_where_the_loss_is_nearly_the_least(
    view: View, typical: list[TaskGroup], asked: TaskGroup, seed: int
) -> None:
    job, usual = a_job(spec=a_spec(groups=[replace(asked, tasks=1)])), TypicalTasks.of(typical)
    claims = place_alone(view, job, usual, np.random.default_rng(seed), nearly=0.0)
    its_room = room(view, job, 0)

    assert [] == faults(view, job, claims)
    assert min(its_room.total, 1) == len(claims)
    if len(claims):
        row = its_room.at.tolist().index(int(view.where(claims.machine)[0]))
        slots = np.flatnonzero(claims.shapes[0][DEVICES])
        found = lost(its_room, usual)
        assert found.min() == found[row, slots].max()


def placed(view: View, job: LeasedJob, typical: TypicalTasks, nearly: float = 0.0) -> Claims:
    return place_alone(view, job, typical, np.random.default_rng(1), nearly=nearly, among=1)


def a_typical(*groups: TaskGroup) -> TypicalTasks:
    return TypicalTasks.of(groups, popular=1)


def test_a_slot_is_broken_where_what_is_left_has_a_use() -> None:
    """Of 500 slices, 100 taken leave 400, which nobody asks for; of 600 they leave 500."""
    view = a_view(a_cell(1, gpus=2), used={1: {"gpu_0": 500, "gpu_1": 400}})
    job = a_job(1, gpus=1, gpu_slices=100)

    claims = placed(view, job, a_typical(a_group(1, gpus=1, gpu_slices=500)))

    assert [0, 100] == claims.shapes[0, [Kind.GPU_0, Kind.GPU_1]].tolist()


def test_gpus_are_left_to_machines_whose_processors_can_feed_them() -> None:
    """A GPU of the second machine is no use to tasks that need two cores beside it."""
    view = a_view(a_cell(2, gpus=1), used={2: {"cpu_milli": 3_000}})
    typical = a_typical(a_group(1, gpus=1, cpu_milli=2_000))

    assert [2] == placed(view, a_job(1, gpus=1), typical).machine.tolist()


def test_pairs_of_whole_gpus_are_kept_for_those_who_ask_for_pairs() -> None:
    view = a_view(a_cell(2, gpus=3, cpu_milli=64_000), used={2: {"gpu_0": 1_000}})
    typical = a_typical(a_group(1, gpus=2))

    assert [1] == placed(view, a_job(1, gpus=1), typical).machine.tolist()


def test_where_losses_are_nearly_equal_the_fullest_is_filled() -> None:
    """On the first machine the task costs 495 slices, on the second, which is fuller, 505."""
    view = a_view(a_cell(2, gpus=2), used={1: {"gpu_0": 500}, 2: {"gpu_0": 1_000}})
    typical = a_typical(a_group(99, gpus=1, gpu_slices=500), a_group(1, gpus=1))
    job = a_job(1, gpus=1, gpu_slices=500)

    assert [1] == placed(view, job, typical, nearly=9.0).machine.tolist()
    assert [2] == placed(view, job, typical, nearly=11.0).machine.tolist()


def test_chance_decides_between_equal_machines() -> None:
    view, job = a_view(a_cell(4, gpus=1)), a_job(1, gpus=1)
    typical = a_typical(a_group(1, gpus=1))
    chosen = {
        int(place_alone(view, job, typical, np.random.default_rng(seed)).machine[0])
        for seed in range(60)
    }

    assert {1, 2, 3, 4} == chosen


def test_who_may_run_anywhere_leaves_a_model_to_those_who_may_not() -> None:
    """The T4 is fuller, and loses no more than the A100: by its price it is left alone."""
    t4 = (Constraint("gpu_model", Operator.IN, ("T4",)),)
    cell = a_cell(2, gpus=1, attributes={"gpu_model": ["T4", "A100"]})
    view = a_view(cell, used={1: {"cpu_milli": 1_000, "gpu_0": 500}})
    typical = a_typical(
        a_group(4, gpus=1, gpu_slices=250), a_group(1, gpus=1, gpu_slices=250, constraints=t4)
    )
    job = a_job(1, gpus=1, gpu_slices=250)

    assert [2] == placed(view, job, typical, nearly=1_000.0).machine.tolist()
    untold = replace(typical, wanted=NO_DEMAND)
    assert [1] == placed(view, job, untold, nearly=1_000.0).machine.tolist()
    view.signals = NO_SIGNALS._replace(demand=typical.wanted)
    assert [2] == placed(view, job, untold, nearly=1_000.0).machine.tolist()


def test_a_shape_is_divided_among_those_who_ask_for_it() -> None:
    t4 = (Constraint("gpu_model", Operator.IN, ("T4",)),)
    typical = a_typical(a_group(2, gpus=1), a_group(1, gpus=1, constraints=t4), a_group(1, gpus=2))

    assert [0.75, 0.25] == typical.share.tolist()
    assert (frozenset(), frozenset(t4)) == typical.constraints
    assert [[0.5, 0.25], [0.25, 0.0]] == typical.share_of.tolist()


def test_without_room_there_are_no_claims() -> None:
    typical = a_typical(a_group(1, gpus=1))

    assert 0 == len(placed(a_view(a_cell(2)), a_job(1, gpus=1), typical))


def test_the_most_popular_shapes_are_typical() -> None:
    popular, rare = a_group(95, gpus=1, gpu_slices=500), a_group(5, gpus=8)
    typical = TypicalTasks.of([popular, a_group(500), rare])

    assert [1] == typical.gpus.tolist()
    assert [500] == typical.slices.tolist()
    assert [1.0] == typical.share.tolist()
    assert [0.95, 0.05] == TypicalTasks.of([popular, rare], popular=1).share.tolist()
