"""The judge against its slow twin, and what it promises in its own words."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from omega.cell.judge import judge
from omega.model.claims import Claims, ConflictRule, JobPart
from omega.model.machines import MachineRows, within_capacity
from omega.model.outcomes import Outcome, Verdict
from omega.testing.strategies import Case, cases, single_claims
from omega.testing.twin import differences, judge_slowly, row_differences


def judged(case: Case) -> Outcome:
    return judge(case.rows, case.transaction, case.standing)


@settings(max_examples=2_000)
@given(cases())
def test_the_judge_agrees_with_its_slow_twin(case: Case) -> None:
    slow = judge_slowly(case.rows, case.transaction, case.standing)

    assert [] == differences(slow, judged(case))


@given(cases())
def test_nothing_is_oversold(case: Case) -> None:
    assert within_capacity(judged(case).fresh)


@given(cases())
def test_what_was_granted_is_used_and_nothing_else(case: Case) -> None:
    outcome = judged(case)
    taken = outcome.accepted
    expected = case.rows.used.copy()
    at = case.rows.where(case.transaction.claims.machine[taken])
    np.add.at(expected, at, case.transaction.claims.demand[taken])

    assert expected.tolist() == outcome.fresh.used.tolist()


@given(cases())
def test_a_transaction_that_is_refused_changes_nothing(case: Case) -> None:
    outcome = judged(case)
    if not outcome.accepted.any():
        assert [] == row_differences(case.rows, outcome.fresh)


@given(cases())
def test_each_machine_granted_on_rises_by_one_however_many_claims(case: Case) -> None:
    outcome = judged(case)
    granted_on = np.isin(case.rows.id, case.transaction.claims.machine[outcome.accepted])

    assert granted_on.astype(int).tolist() == (outcome.fresh.sequence - case.rows.sequence).tolist()
    assert granted_on.astype(int).tolist() == (outcome.fresh.revision - case.rows.revision).tolist()


@given(cases())
def test_a_gang_is_there_in_full_or_not_at_all(case: Case) -> None:
    outcome = judged(case)
    for part, lacking in zip(case.transaction.jobs, case.standing.lacking, strict=True):
        granted = np.count_nonzero(outcome.accepted[part.claims])

        assert granted == 0 or granted >= max(part.minimum, lacking)


@given(cases())
def test_no_task_is_granted_twice(case: Case) -> None:
    outcome = judged(case)
    for part in case.transaction.jobs:
        tasks = case.transaction.claims.task[part.claims][outcome.accepted[part.claims]]

        assert len(tasks) == len(set(tasks.tolist()))


@settings(max_examples=500)
@given(cases(rule=ConflictRule.FIT))
def test_under_fit_want_of_room_is_real(case: Case) -> None:
    outcome = judged(case)
    for part in case.transaction.jobs:
        for claim in range(part.claims.start, part.claims.stop):
            if outcome.verdicts[claim] == Verdict.OVERCOMMIT:
                assert not fits(case, outcome, part, claim)
            if outcome.verdicts[claim] in (Verdict.ACCEPTED, Verdict.GANG_BROKEN):
                assert fits(case, outcome, part, claim)


def fits(case: Case, outcome: Outcome, part: JobPart, claim: int) -> bool:
    """Say whether the machine had the room that a claim asked for when its turn came.

    Before it were the claims granted earlier, and those of its own job that fitted.
    """
    claims = case.transaction.claims
    before = np.arange(claim)
    own_job = before >= part.claims.start
    stood = outcome.accepted[:claim] | (own_job & (outcome.verdicts[:claim] == Verdict.GANG_BROKEN))
    ahead = before[stood & (claims.machine[:claim] == claims.machine[claim])]
    free = case.rows.free[case.rows.where(claims.machine[[claim]])[0]]
    return bool((claims.demand[ahead].sum(axis=0) + claims.demand[claim] <= free).all())


@given(cases(rule=ConflictRule.FIT))
def test_under_fit_nothing_is_stale(case: Case) -> None:
    assert Verdict.STALE not in judged(case).verdicts


@settings(max_examples=500)
@given(single_claims())
def test_fit_grants_what_the_sequence_rule_grants(case: Case) -> None:
    by_fit = replace(case.transaction, rule=ConflictRule.FIT)
    under_fit = judge(case.rows, by_fit, case.standing)

    assert not judged(case).accepted[0] or under_fit.accepted[0]


@given(cases(rule=ConflictRule.SEQUENCE))
def test_a_fresh_view_makes_the_rules_equal(case: Case) -> None:
    fresh = seeing(case.rows, case.transaction.claims)
    by_sequence = replace(case.transaction, claims=fresh)
    by_fit = replace(by_sequence, rule=ConflictRule.FIT)

    assert [] == differences(
        judge(case.rows, by_sequence, case.standing), judge(case.rows, by_fit, case.standing)
    )


def seeing(rows: MachineRows, claims: Claims) -> Claims:
    """Return the claims as a scheduler with a fresh view would have made them."""
    at = rows.where(claims.machine)
    seen = claims.seen.copy()
    seen[at >= 0] = rows.sequence[at[at >= 0]]
    return replace(claims, seen=seen)


@given(cases(), st.data())
def test_jobs_are_served_in_the_order_given(case: Case, data: st.DataObject) -> None:
    """What comes later in a transaction does not change what came before."""
    jobs = data.draw(st.integers(0, len(case.transaction.jobs)))
    parts = case.transaction.jobs[:jobs]
    last = parts[-1].claims.stop if parts else 0
    claims = case.transaction.claims
    shorter = replace(
        case.transaction,
        jobs=parts,
        claims=Claims(
            claims.task[:last],
            claims.machine[:last],
            claims.seen[:last],
            claims.shape[:last],
            claims.shapes,
        ),
    )
    standing = replace(
        case.standing,
        lease_held=case.standing.lease_held[:jobs],
        lacking=case.standing.lacking[:jobs],
        unplaced=case.standing.unplaced[:last],
    )
    alone = judge(case.rows, shorter, standing)

    assert alone.verdicts.tolist() == judged(case).verdicts[:last].tolist()
