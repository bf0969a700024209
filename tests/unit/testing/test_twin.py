"""The slow twin by hand, and how differences are told."""

from dataclasses import replace

import numpy as np

from omega.model.arrays import integers
from omega.model.claims import ConflictRule
from omega.model.outcomes import Verdict
from omega.model.resources import Kind, amounts
from omega.testing.builders import (
    KnownJob,
    a_cell,
    a_claim,
    a_context,
    a_job,
    a_transaction,
    claims_of_job,
    evicting,
    or_on,
    some_claims,
    some_rows,
)
from omega.testing.steps import verdicts_of
from omega.testing.twin import (
    differences,
    evicted_by,
    judge_slowly,
    machine_rows,
    plain_machines,
    row_differences,
)


def test_the_twin_judges_a_case_worked_out_by_hand() -> None:
    """Machine 1 has room for two cores, machine 2 was changed since it was seen."""
    rows = some_rows(a_cell(2, cpu_milli=2_000), sequence={2: 1}, revision={1: 3, 2: 5})
    gang = claims_of_job(a_job(3, job=1), some_claims([0, 1, 2], [1, 1, 2]), minimum=3)
    single = claims_of_job(a_job(1, job=2), a_claim(0, machine=2, seen=1))
    transaction = a_transaction(gang, single, rule=ConflictRule.SEQUENCE)

    outcome = judge_slowly(rows, transaction, a_context(transaction))

    broken = Verdict.GANG_BROKEN
    assert [broken, broken, Verdict.STALE, Verdict.ACCEPTED] == verdicts_of(outcome)
    assert [0, 1_000] == outcome.fresh.used[:, Kind.CPU_MILLI].tolist()
    assert [0, 2] == outcome.fresh.sequence.tolist()
    assert [3, 6] == outcome.fresh.revision.tolist()


def test_the_twin_judges_an_exchange_worked_out_by_hand() -> None:
    """Job 9 is a gang of two, a core each: job 1 takes one place, and finds the other free.

    Job 2 may not evict what is as high as itself, and takes its alternate.
    """
    rows = some_rows(
        a_cell(3, cpu_milli=1_000), used={machine: {"cpu_milli": 1_000} for machine in (1, 2)}
    )
    core = amounts(cpu_milli=1_000).tolist()
    jobs = {
        1: KnownJob(precedence=20),
        2: KnownJob(precedence=10),
        9: KnownJob(precedence=10, minimum=2, runs={0: (1, core), 4: (2, core)}),
    }
    transaction = a_transaction(
        claims_of_job(a_job(job=2), or_on(evicting(a_claim(), (0, 9, 0)), (0, 3))),
        claims_of_job(a_job(2, job=1), evicting(some_claims([0, 1], [2, 1]), (0, 9, 4))),
    )

    outcome = judge_slowly(rows, transaction, a_context(transaction, jobs=jobs))

    assert [Verdict.ACCEPTED] * 3 == verdicts_of(outcome)
    assert [3, 2, 1] == outcome.machine.tolist()
    assert [(9, 4), (9, 0)] == evicted_by(outcome)
    assert [1_000] * 3 == outcome.fresh.used[:, Kind.CPU_MILLI].tolist()
    assert [1] * 3 == outcome.fresh.sequence.tolist()


def test_rows_become_plain_and_rows_again() -> None:
    rows = some_rows(a_cell(3, gpus=2), used={2: {"gpu_1": 250}}, sequence={3: 4})

    assert [] == row_differences(rows, machine_rows(plain_machines(rows)))


def test_differences_are_told_claim_by_claim_and_machine_by_machine() -> None:
    rows = some_rows(a_cell(1))
    transaction = a_transaction(claims_of_job(a_job(), a_claim()))
    outcome = judge_slowly(rows, transaction, a_context(transaction))
    other = replace(
        outcome,
        verdicts=np.array([Verdict.STALE], dtype=np.int8),
        machine=integers([2]),
        evicted_job=integers([3]),
        evicted_task=np.zeros(1, dtype=np.intp),
        fresh=rows,
    )

    told = differences(outcome, other)

    assert [] == differences(outcome, outcome)
    assert "claim 0: ACCEPTED expected, STALE given" == told[0]
    assert "claim 0: on machine 1 expected, on 2 told" == told[1]
    assert "evicted [] expected, [(3, 0)] told" == told[2]
    assert told[3].startswith("machine 1: PlainMachine(")


def test_a_row_that_is_missing_is_a_difference() -> None:
    (told,) = row_differences(some_rows(a_cell(2)), some_rows(a_cell(1)))

    assert told.startswith("machine 2: ")
    assert told.endswith("None given")
