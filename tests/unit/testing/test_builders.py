"""Builders say what they were told, and something plain for the rest."""

from uuid import UUID

import numpy as np

from omega.model.machines import MachineState
from omega.model.resources import DEVICES, Kind
from omega.testing.builders import (
    KnownJob,
    a_cell,
    a_claim,
    a_context,
    a_group,
    a_job,
    a_snapshot,
    a_spec,
    a_transaction,
    a_view,
    claims_in,
    claims_of_job,
    join_cells,
    some_claims,
    some_rows,
)


def test_a_cell_has_the_machines_asked_for() -> None:
    cell = a_cell(2, cpu_milli=7, gpus=1, first=5)

    assert ("machine-5", "machine-6") == cell.names
    assert [7, 7] == cell.capacity[:, Kind.CPU_MILLI].tolist()
    assert [1_000, 1_000] == cell.capacity[:, DEVICES].sum(axis=1).tolist()


def test_joined_cells_keep_their_attributes_apart() -> None:
    joined = join_cells(
        a_cell(1, attributes={"zone": ["east"]}),
        a_cell(2, first=2, attributes={"rack": ["r1", None]}),
    )

    assert ("machine-1", "machine-2", "machine-3") == joined.names
    assert {"zone": ["east", None, None], "rack": [None, "r1", None]} == dict(joined.attributes)


def test_rows_and_snapshots_hold_what_was_told() -> None:
    told = {2: {"cpu_milli": 5}}
    rows = some_rows(a_cell(2), used=told, state={1: MachineState.DOWN}, revision={2: 9})
    snapshot = a_snapshot(a_cell(2), used=told, mark=3, generation=4)

    assert [0, 5] == rows.used[:, Kind.CPU_MILLI].tolist()
    assert [MachineState.DOWN, MachineState.OPEN] == rows.state.tolist()
    assert [0, 9] == rows.revision.tolist()
    assert (3, 4) == (snapshot.mark, snapshot.generation)
    assert [0, 5] == snapshot.rows.used[:, Kind.CPU_MILLI].tolist()


def test_a_job_has_its_fields_or_its_groups() -> None:
    plain = a_spec(3, cpu_milli=2)
    grouped = a_spec(groups=[a_group(1), a_group(2, gpus=1)], scheduler="ml-gpu")

    assert (3, 2) == (plain.tasks, plain.groups[0].cpu_milli)
    assert (3, "ml-gpu") == (grouped.tasks, grouped.scheduler)


def test_a_leased_job_knows_what_runs() -> None:
    job = a_job(4, job=8, runs_on={3: 70, 1: 71}, minimum=3)

    assert (8, UUID(int=8), 2, 1) == (job.id, job.token, job.placed, job.lacking)
    assert [0, 2] == job.unplaced.tolist()
    assert [1, 3] == job.placed_task.tolist()
    assert [71, 70] == job.placed_machine.tolist()


def test_claims_ask_for_a_core_unless_told() -> None:
    assert 1_000 == a_claim().demand[0, Kind.CPU_MILLI]
    assert 0 == a_claim(cpu_milli=0).demand.sum()
    assert [3, 4] == some_claims([0, 1], [1, 1], seen=[3, 4]).seen.tolist()


def test_claims_in_a_view_carry_the_sequences_seen() -> None:
    view = a_view(a_cell(3), sequence={1: 4, 3: 6})

    assert [6, 4, 6] == claims_in(view, [0, 1, 2], [3, 1, 3]).seen.tolist()


def test_transactions_differ_in_their_id_alone() -> None:
    one, two = (a_transaction(claims_of_job(a_job(), a_claim())) for _ in range(2))

    assert one.id != two.id
    assert one.jobs == two.jobs


def test_a_standing_is_sound_but_for_what_is_told() -> None:
    transaction = a_transaction(
        claims_of_job(a_job(job=1), some_claims([0, 1], [1, 1])),
        claims_of_job(a_job(job=2), a_claim()),
    )

    context = a_context(transaction, lost=[2], jobs={1: KnownJob(minimum=3, over=frozenset([1]))})

    assert [True, False] == context.lease_held.tolist()
    assert [2, 0] == context.lacking.tolist()
    assert np.array_equal([True, False, True], context.unplaced)
