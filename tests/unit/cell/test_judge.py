"""The judge, example by example; tests/property/test_judge.py has the general laws."""

import pytest

from omega.cell.judge import judge
from omega.model.claims import Claims, ConflictRule
from omega.model.machines import MachineRows, MachineState
from omega.model.outcomes import Outcome, Verdict
from omega.model.resources import Kind
from omega.testing.builders import (
    JobAndClaims,
    KnownJob,
    a_cell,
    a_claim,
    a_context,
    a_job,
    a_transaction,
    claims_of_job,
    some_claims,
    some_rows,
)
from omega.testing.steps import verdicts_of
from omega.testing.twin import row_differences

ACCEPTED, OVERCOMMIT, BROKEN = Verdict.ACCEPTED, Verdict.OVERCOMMIT, Verdict.GANG_BROKEN


def judged(rows: MachineRows, *claims_by_job: JobAndClaims) -> Outcome:
    transaction = a_transaction(*claims_by_job)
    return judge(rows, transaction, a_context(transaction))


def test_a_claim_that_fits_exactly_is_granted() -> None:
    rows = some_rows(a_cell(1, cpu_milli=1_000))

    outcome = judged(rows, claims_of_job(a_job(), a_claim()))

    assert [ACCEPTED] == verdicts_of(outcome)
    assert 0 == outcome.fresh.free[0, Kind.CPU_MILLI]


def test_a_claim_that_lacks_one_unit_of_one_kind_is_refused() -> None:
    rows = some_rows(a_cell(1, cpu_milli=4_000), used={1: {"memory_mib": 1}})
    whole = {"cpu_milli": 4_000, "memory_mib": 16_384}

    assert [OVERCOMMIT] == verdicts_of(judged(rows, claims_of_job(a_job(), a_claim(**whole))))


def test_a_small_claim_may_pass_where_a_large_one_before_it_failed() -> None:
    rows = some_rows(a_cell(1, cpu_milli=2_000))
    claims = [a_claim(task, cpu_milli=cpu) for task, cpu in enumerate([1_500, 1_000, 500])]

    outcome = judged(rows, claims_of_job(a_job(3), *claims))

    assert [ACCEPTED, OVERCOMMIT, ACCEPTED] == verdicts_of(outcome)


def test_room_of_a_broken_gang_is_there_for_the_next_job() -> None:
    rows = some_rows(a_cell(1, cpu_milli=2_000))
    gang = claims_of_job(a_job(3, job=1), some_claims(range(3), [1] * 3), minimum=3)
    behind = claims_of_job(a_job(2, job=2), some_claims(range(2), [1] * 2), minimum=2)

    outcome = judged(rows, gang, behind)

    assert [BROKEN, BROKEN, OVERCOMMIT, ACCEPTED, ACCEPTED] == verdicts_of(outcome)
    assert [1] == outcome.fresh.sequence.tolist()


def test_what_a_gang_lacks_counts_though_the_stretch_asks_for_less() -> None:
    rows = some_rows(a_cell(1, cpu_milli=2_000))
    transaction = a_transaction(claims_of_job(a_job(3), some_claims(range(3), [1] * 3), minimum=1))

    verdicts = [
        verdicts_of(
            judge(rows, transaction, a_context(transaction, jobs={1: KnownJob(minimum=lacking)}))
        )
        for lacking in (2, 3)
    ]

    assert [[ACCEPTED, ACCEPTED, OVERCOMMIT], [BROKEN, BROKEN, OVERCOMMIT]] == verdicts


def test_a_lost_lease_leaves_nothing_to_break() -> None:
    rows = some_rows(a_cell(1))
    transaction = a_transaction(claims_of_job(a_job(2), some_claims([0, 0], [1, 7]), minimum=2))

    outcome = judge(
        rows, transaction, a_context(transaction, lost=[1], jobs={1: KnownJob(minimum=2)})
    )

    assert [Verdict.LEASE_LOST] * 2 == verdicts_of(outcome)
    assert [] == row_differences(rows, outcome.fresh)


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        (MachineState.OPEN, ACCEPTED),
        (MachineState.DRAINING, Verdict.CLOSED),
        (MachineState.DOWN, Verdict.CLOSED),
        (MachineState.GONE, Verdict.GONE),
    ],
)
@pytest.mark.parametrize("rule", ConflictRule)
def test_only_an_open_machine_takes_claims(
    state: MachineState, verdict: Verdict, rule: ConflictRule
) -> None:
    rows = some_rows(a_cell(1), state={1: state})
    transaction = a_transaction(claims_of_job(a_job(), a_claim()), rule=rule)

    assert [verdict] == verdicts_of(judge(rows, transaction, a_context(transaction)))


@pytest.mark.parametrize(
    ("claim", "first_reason"),
    [
        (a_claim(1, machine=9, seen=1, cpu_milli=9_999), Verdict.ALREADY_PLACED),
        (a_claim(0, machine=9, seen=1, cpu_milli=9_999), Verdict.GONE),
        (a_claim(0, machine=2, seen=1, cpu_milli=9_999), Verdict.CLOSED),
        (a_claim(0, machine=1, seen=1, cpu_milli=9_999), Verdict.STALE),
        (a_claim(0, machine=1, seen=0, cpu_milli=9_999), OVERCOMMIT),
        (a_claim(0, machine=1, seen=0), BROKEN),
    ],
)
def test_the_first_reason_of_the_rule_is_given(claim: Claims, first_reason: Verdict) -> None:
    rows = some_rows(a_cell(2), state={2: MachineState.DOWN})
    transaction = a_transaction(
        claims_of_job(a_job(2), claim, minimum=2), rule=ConflictRule.SEQUENCE
    )
    context = a_context(transaction, jobs={1: KnownJob(over=frozenset([1]))})

    assert [first_reason] == verdicts_of(judge(rows, transaction, context))


def test_a_task_claimed_twice_is_granted_where_it_first_fits() -> None:
    rows = some_rows(a_cell(3), used={1: {"cpu_milli": 4_000}})
    claims = some_claims([0, 0, 0, 1], [1, 2, 3, 3])

    outcome = judged(rows, claims_of_job(a_job(2), claims))

    assert [OVERCOMMIT, ACCEPTED, Verdict.ALREADY_PLACED, ACCEPTED] == verdicts_of(outcome)
    assert [4_000, 1_000, 1_000] == outcome.fresh.used[:, Kind.CPU_MILLI].tolist()


def test_a_task_number_is_a_jobs_own() -> None:
    rows = some_rows(a_cell(1))
    claims_by_job = [claims_of_job(a_job(job=job), a_claim(0)) for job in (1, 2)]

    assert [ACCEPTED, ACCEPTED] == verdicts_of(judged(rows, *claims_by_job))


def test_an_empty_transaction_is_judged_to_nothing() -> None:
    outcome = judged(some_rows())

    assert [] == verdicts_of(outcome)
    assert 0 == len(outcome.fresh)


def test_no_machines_at_all_means_that_all_are_gone() -> None:
    outcome = judged(MachineRows.none(), claims_of_job(a_job(2), some_claims([0, 1], [1, 2])))

    assert [Verdict.GONE] * 2 == verdicts_of(outcome)


def test_the_rows_given_are_not_changed() -> None:
    rows = some_rows(a_cell(1))

    judged(rows, claims_of_job(a_job(), a_claim()))

    assert [] == row_differences(some_rows(a_cell(1)), rows)


def test_a_standing_is_read_only() -> None:
    context = a_context(a_transaction(claims_of_job(a_job(), a_claim())))

    assert not any(
        array.flags.writeable
        for array in (context.lease_held, context.minimum, context.placed, context.unplaced)
    )
