"""A simulated cell beside plain copies: every look, verdict and row is that of the slow way."""

from contextlib import nullcontext
from dataclasses import dataclass, field
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omega.framework.rng import rng_for, seed_of
from omega.model.claims import ConflictRule, Transaction
from omega.model.jobs import LeasedJob
from omega.model.machines import MachineRows, MachineState
from omega.model.resources import KINDS, Kind, machine_capacity
from omega.placement.groups import draw_groups
from omega.sim.cell import SimulatedCell
from omega.sim.rows import CHANGES_MAX, Look
from omega.testing.builders import (
    KnownJob,
    a_cell,
    a_context,
    a_spec,
    a_transaction,
    claims_of_job,
    some_claims,
)
from omega.testing.twin import judge_slowly
from tests.fixtures.doses import examples

COMPILED = pytest.mark.slow
"""Loops are compiled first, which takes seconds."""
MACHINES = 4
CORES = 4
TASKS = 12
TOKEN = UUID(int=0)

MACHINE = st.integers(1, MACHINES)
STATES = st.sampled_from([MachineState.OPEN, MachineState.DOWN])
CLAIMS = st.lists(MACHINE, min_size=1, max_size=6)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("look")),
        st.tuples(st.just("forget"), st.integers(0, 9)),
        st.tuples(st.just("look again"), st.integers(0, 9), st.lists(MACHINE, min_size=1)),
        st.tuples(
            st.just("claim"),
            CLAIMS,
            st.sampled_from(ConflictRule),
            st.integers(0, 9),  # whose look the sequences are from
            st.integers(0, 3),  # the gang's minimum
            st.integers(0, 3),  # the minimum sent
            st.booleans(),  # whether there are two shapes
        ),
        st.tuples(
            st.just("draw"),
            st.integers(1, 6),  # tasks
            st.sampled_from(ConflictRule),
            st.integers(-1, 9),  # on whose look; -1: on the cell as it is
        ),
        st.tuples(st.just("release"), st.integers(0, 9)),
        st.tuples(st.just("state"), MACHINE, STATES),
        st.tuples(st.just("resize"), MACHINE, st.integers(0, 2 * CORES)),
    ),
    max_size=25,
)
Seen = dict[int, tuple[list[int], int, bool]]
"""By machine: what is free, the sequence, and whether it takes claims."""


def seen_of(rows: MachineRows) -> Seen:
    """Return what a view of these rows shows, machine by machine."""
    return {
        int(rows.id[n]): (
            rows.free[n].tolist(),
            int(rows.sequence[n]),
            rows.state[n] == MachineState.OPEN and bool((rows.free[n] >= 0).all()),
        )
        for n in range(len(rows))
    }


@dataclass
class Model:
    """The cell, and plain copies of what each look saw."""

    changing: bool
    compiled: bool = False
    looks: list[tuple[Look, Seen]] = field(default_factory=list)
    running: list[tuple[list[int], np.ndarray]] = field(default_factory=list)
    commits: int = 0

    def __post_init__(self) -> None:
        machines = a_cell(MACHINES, cpu_milli=CORES, memory_mib=9)
        nothing = np.zeros((MACHINES, KINDS), np.int64)
        self.cell = SimulatedCell(
            machines, nothing, machines_change=self.changing, compiled=self.compiled
        )

    @property
    def rows(self) -> MachineRows:
        return self.cell.rows(np.arange(1, MACHINES + 1))

    def shown(self) -> Seen:
        """Return what the view shows at this moment."""
        view = self.cell.view
        return {
            int(machine): (view.free[n].tolist(), int(view.sequence[n]), bool(view.open[n]))
            for n, machine in enumerate(view.id.tolist())
        }

    def do(self, step: tuple[object, ...]) -> None:
        """Take one step, on the cell and on the copies."""
        match step:
            case ("look",):
                self.looks.append((self.cell.view.look(), seen_of(self.rows)))
            case ("forget", int(nth)) if self.looks:
                look, _ = self.looks.pop(nth % len(self.looks))
                self.cell.view.forget(look)
            case ("look again", int(nth), list(machines)) if self.looks:
                look, seen = self.looks[nth % len(self.looks)]
                self.cell.view.look_again(look, np.array(machines))
                now = seen_of(self.rows)
                seen.update({machine: now[machine] for machine in machines})
            case ("claim", *how):
                self.claim(*how)  # type: ignore[arg-type]
            case ("draw", int(tasks), ConflictRule() as rule, int(nth)):
                looks = [None, *(look for look, _ in self.looks)]
                self.draw(tasks, rule, looks[(nth + 1) % len(looks)])
            case ("release", int(nth)) if self.running:
                machine, amounts = self.running.pop(nth % len(self.running))
                self.cell.release(np.array(machine), amounts)
            case ("state", int(machine), MachineState() as state) if self.changing:
                self.cell.set_state(machine, state)
            case ("resize", int(machine), int(cores)) if self.changing:
                self.cell.resize(machine, machine_capacity(cores, 9, 0, 0))

    def claim(
        self,
        machines: list[int],
        rule: ConflictRule,
        nth: int,
        gang: int,
        minimum: int,
        two_shapes: bool,  # noqa: FBT001 - drawn with the rest
    ) -> None:
        """Commit claims, and compare all that comes of it with the slow judge."""
        seen = self.looks[nth % len(self.looks)][1] if self.looks else self.shown()
        claims = some_claims(
            range(len(machines)),
            machines,
            seen=[seen[machine][1] for machine in machines],
            cpu_milli=2,
            memory_mib=1,
        )
        job = LeasedJob(self.commits, TOKEN, a_spec(TASKS, minimum=gang), np.arange(TASKS))
        parts = [claims]
        if two_shapes:
            parts = [some_claims([TASKS - 1], [1], seen=seen[1][1], cpu_milli=1)]
            parts.insert(0, claims)
        transaction = a_transaction(claims_of_job(job, *parts, minimum=minimum), rule=rule)
        self.commits += 1
        before = self.rows
        outcome = self.cell.commit(transaction, job)

        known = {job.id: KnownJob(minimum=gang)}
        expected = judge_slowly(before, transaction, a_context(transaction, jobs=known))
        assert expected.verdicts.tolist() == outcome.verdicts.tolist()
        assert expected.machine.tolist() == outcome.machine.tolist()
        after = seen_of(before) | seen_of(expected.fresh)
        assert after == seen_of(self.rows)
        self.run(transaction, outcome.accepted)

    def draw(self, tasks: int, rule: ConflictRule, look: Look | None) -> None:
        """Have a job drawn and claimed, and compare with drawing and committing one by one."""
        spec = a_spec(tasks, cpu_milli=2, memory_mib=1)
        job = LeasedJob(self.commits, TOKEN, spec, np.arange(tasks))
        before, seed = self.rows, seed_of(self.commits)
        self.commits += 1
        with nullcontext() if look is None else self.cell.view.as_of(look):
            claims = draw_groups(self.cell.view, job, rng_for(self.commits - 1))
        transaction = a_transaction(claims_of_job(job, claims), rule=rule)
        known = {job.id: KnownJob()}
        expected = judge_slowly(before, transaction, a_context(transaction, jobs=known))

        by_sequence = rule is ConflictRule.SEQUENCE
        machine = self.cell.draw_and_claim(job, seed, look, by_sequence=by_sequence)

        if machine is None:
            assert seen_of(before) == seen_of(self.rows)
            return
        assert self.compiled
        assert claims.machine.tolist() == machine.tolist()
        assert expected.accepted.all()
        assert seen_of(before) | seen_of(expected.fresh) == seen_of(self.rows)
        self.running.append((machine.tolist(), spec.groups[0].demand))

    def run(self, transaction: Transaction, granted: np.ndarray) -> None:
        if granted.any():
            claims = transaction.claims
            self.running.append((claims.machine[granted].tolist(), claims.demand[granted]))


@pytest.mark.parametrize(
    ("changing", "compiled"),
    [
        (False, False),
        (True, False),
        pytest.param(False, True, marks=COMPILED),
        pytest.param(True, True, marks=COMPILED),
    ],
)
@examples(1_600)
@given(steps=STEPS)
def test_each_look_shows_the_cell_as_it_was_then(
    steps: list[tuple[object, ...]],
    changing: bool,  # noqa: FBT001 - a parameter of the test
    compiled: bool,  # noqa: FBT001 - likewise
) -> None:
    model = Model(changing, compiled)
    for step in steps:
        model.do(step)
        now = seen_of(model.rows)
        assert now == model.shown()
        for look, seen in model.looks:
            with model.cell.view.as_of(look):
                assert seen == model.shown()
            assert now == model.shown()
        used = sum(CORES - free[Kind.CPU_MILLI] for free, _, _ in now.values())
        if not changing:
            assert used == model.cell.cpu_used


def test_what_everybody_has_seen_is_forgotten() -> None:
    view = Model(changing=False).cell.view
    log = view._log  # noqa: SLF001 - nothing else tells
    seen_by_all, seen_by_one = 3 * CHANGES_MAX // 4, CHANGES_MAX // 2
    demand = np.zeros(KINDS, np.int64)

    first = view.look()
    for _ in range(seen_by_all):
        view.claim(np.array([1]), None, demand)
    second = view.look()
    for _ in range(seen_by_one):
        view.claim(np.array([1]), None, demand)
    view.forget(first)

    assert seen_by_one == log.kept
    with view.as_of(second):
        assert [seen_by_all, 0] == view.sequence[:2].tolist()
    third = view.look()
    view.forget(second)
    view.claim(np.array([2]), None, demand)
    assert seen_by_one + 1 == log.kept  # few enough to be left
    with view.as_of(third):
        assert [seen_by_all + seen_by_one, 0] == view.sequence[:2].tolist()
    view.forget(third)
    assert 0 == log.kept


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=COMPILED)])
@examples(200)
@given(
    used=st.lists(st.integers(0, CORES), min_size=MACHINES, max_size=MACHINES),
    others=st.lists(st.integers(0, CORES), min_size=MACHINES, max_size=MACHINES),
    machines=st.lists(MACHINE, max_size=6),
)
def test_what_is_handed_over_is_free_elsewhere_and_no_longer_here(
    used: list[int],
    others: list[int],
    machines: list[int],
    compiled: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    cells = []
    for cpu_milli in (used, others):
        amounts = np.zeros((MACHINES, KINDS), np.int64)
        amounts[:, Kind.CPU_MILLI] = cpu_milli
        cell = a_cell(MACHINES, cpu_milli=CORES, memory_mib=9)
        cells.append(SimulatedCell(cell, amounts, compiled=compiled))
    mine, its = cells
    moved = [CORES - used[at] if at + 1 in machines else 0 for at in range(MACHINES)]

    mine.move_free(np.array(machines, np.int64), its)

    free = [cell.free[:, Kind.CPU_MILLI].tolist() for cell in cells]
    assert [CORES - one - gone for one, gone in zip(used, moved, strict=True)] == free[0]
    assert [CORES - one + got for one, got in zip(others, moved, strict=True)] == free[1]
    assert [sum(used) + sum(moved), sum(others) - sum(moved)] == [one.cpu_used for one in cells]
