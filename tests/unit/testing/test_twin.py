"""The slow twin by hand, and how differences are told."""

from dataclasses import replace

import numpy as np

from omega.model.claims import ConflictRule
from omega.model.outcomes import Verdict
from omega.model.resources import Kind
from omega.testing.builders import (
    a_cell,
    a_claim,
    a_job,
    a_standing,
    a_stretch,
    a_transaction,
    some_claims,
    some_rows,
)
from omega.testing.steps import verdicts_of
from omega.testing.twin import (
    differences,
    judge_slowly,
    machine_rows,
    plain_machines,
    row_differences,
)


def test_the_twin_judges_a_case_worked_out_by_hand() -> None:
    """Machine 1 has room for two cores, machine 2 was changed since it was seen."""
    rows = some_rows(a_cell(2, cpu_milli=2_000), sequence={2: 1}, revision={1: 3, 2: 5})
    gang = a_stretch(a_job(3, job=1), some_claims([0, 1, 2], [1, 1, 2]), minimum=3)
    single = a_stretch(a_job(1, job=2), a_claim(0, machine=2, seen=1))
    transaction = a_transaction(gang, single, rule=ConflictRule.SEQUENCE)

    outcome = judge_slowly(rows, transaction, a_standing(transaction))

    broken = Verdict.GANG_BROKEN
    assert [broken, broken, Verdict.STALE, Verdict.ACCEPTED] == verdicts_of(outcome)
    assert [0, 1_000] == outcome.fresh.used[:, Kind.CPU_MILLI].tolist()
    assert [0, 2] == outcome.fresh.sequence.tolist()
    assert [3, 6] == outcome.fresh.revision.tolist()


def test_rows_become_plain_and_rows_again() -> None:
    rows = some_rows(a_cell(3, gpus=2), used={2: {"gpu_1": 250}}, sequence={3: 4})

    assert [] == row_differences(rows, machine_rows(plain_machines(rows)))


def test_differences_are_told_claim_by_claim_and_machine_by_machine() -> None:
    rows = some_rows(a_cell(1))
    transaction = a_transaction(a_stretch(a_job(), a_claim()))
    outcome = judge_slowly(rows, transaction, a_standing(transaction))
    other = replace(outcome, verdicts=np.array([Verdict.STALE], dtype=np.int8), fresh=rows)

    told = differences(outcome, other)

    assert [] == differences(outcome, outcome)
    assert "claim 0: ACCEPTED expected, STALE given" == told[0]
    assert told[1].startswith("machine 1: PlainMachine(")


def test_a_row_that_is_missing_is_a_difference() -> None:
    (told,) = row_differences(some_rows(a_cell(2)), some_rows(a_cell(1)))

    assert told.startswith("machine 2: ")
    assert told.endswith("None given")
