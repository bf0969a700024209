"""Verdicts and outcomes."""

import pytest

from omega.model.outcomes import Outcome, Verdict
from omega.testing.builders import an_outcome


def test_an_outcome_counts_what_it_granted_and_refused() -> None:
    outcome = an_outcome(Verdict.ACCEPTED, Verdict.OVERCOMMIT, Verdict.ACCEPTED, Verdict.STALE)

    assert [True, False, True, False] == outcome.accepted.tolist()
    assert 2 == outcome.refused


CONFLICTS = sorted(set(Verdict) - {Verdict.ACCEPTED, Verdict.QUOTA})


@pytest.mark.parametrize("verdict", CONFLICTS)
def test_every_refusal_is_a_conflict(verdict: Verdict) -> None:
    outcome = an_outcome(Verdict.ACCEPTED, verdict)

    assert outcome.conflicted(slice(0, 2))
    assert not outcome.conflicted(slice(0, 1))


@pytest.mark.parametrize("verdict", CONFLICTS)
def test_but_not_what_a_quota_refuses_and_the_gang_that_breaks_for_it(verdict: Verdict) -> None:
    is_mate = verdict is Verdict.GANG_BROKEN
    outcome = an_outcome(Verdict.QUOTA, verdict)

    assert not outcome.conflicted(slice(0, 1))
    assert is_mate != outcome.conflicted(slice(0, 2))


def test_verdicts_are_counted_in_their_order_and_only_those_that_occur() -> None:
    outcome = an_outcome(Verdict.OVERCOMMIT, Verdict.ACCEPTED, Verdict.OVERCOMMIT)

    assert [(Verdict.ACCEPTED, 1), (Verdict.OVERCOMMIT, 2)] == list(outcome.by_verdict().items())


def test_the_numbers_of_verdicts_are_stored_and_never_change() -> None:
    assert {
        "ACCEPTED": 0,
        "STALE": 1,
        "OVERCOMMIT": 2,
        "GANG_BROKEN": 3,
        "LEASE_LOST": 4,
        "ALREADY_PLACED": 5,
        "GONE": 6,
        "CLOSED": 7,
        "PRECEDENCE": 8,
        "QUOTA": 9,
    } == {verdict.name: verdict.value for verdict in Verdict}


def test_an_outcome_is_read_only() -> None:
    outcome = an_outcome(Verdict.ACCEPTED)
    arrays = (outcome.verdicts, outcome.machine, outcome.evicted_job, outcome.evicted_task)

    assert not any(array.flags.writeable for array in arrays)


def test_the_answer_to_no_claims_is_empty() -> None:
    nothing = Outcome.nothing()

    assert ({}, 0, 0) == (nothing.by_verdict(), nothing.refused, len(nothing.fresh))
