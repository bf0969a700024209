"""Effects: how a loop is driven, and what a commit tells of itself."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from omega.framework.effects import Commit, Effect, Effects, Think, drive, thought
from omega.model.arrays import integers
from omega.model.outcomes import Verdict
from omega.testing.builders import (
    a_claim,
    a_job,
    a_transaction,
    an_outcome,
    claims_of_job,
    some_claims,
)


def counting(closed: list[bool]) -> Effects[str]:
    try:
        yield from thought(1.0)
        yield from thought(2.0)
    finally:
        closed.append(True)
    return "over"


def test_driving_answers_each_effect_and_returns_the_result() -> None:
    seen: list[Effect] = []

    result = drive(counting([]), seen.append)

    assert "over" == result
    assert [Think(1.0), Think(2.0)] == seen


def test_a_loop_is_closed_when_its_driver_fails() -> None:
    closed: list[bool] = []
    answers: Iterator[None] = iter([None])

    def answer(effect: Effect) -> None:
        if next(answers, effect) is effect:
            raise RuntimeError("the driver broke")

    with pytest.raises(RuntimeError, match="broke"):
        drive(counting(closed), answer)
    assert [True] == closed


def test_what_an_answer_raises_is_raised_where_the_loop_asked() -> None:
    def careful() -> Effects[str]:
        try:
            yield from thought(1.0)
        except ZeroDivisionError as error:
            yield from thought(2.0)
            return f"caught {error}"
        return "not reached"

    answers: Iterator[float] = iter([0.0, 1.0])

    def answer(effect: Effect) -> None:
        assert isinstance(effect, Think)
        if not next(answers):
            raise ZeroDivisionError("the answer")

    assert "caught the answer" == drive(careful(), answer)


def test_a_judged_commit_counts_claims_by_verdict_and_conflicted_jobs() -> None:
    commit = Commit(
        a_transaction(
            claims_of_job(a_job(2, job=1), some_claims([0, 1], [1, 2])),
            claims_of_job(a_job(1, job=2), a_claim(0)),
            claims_of_job(a_job(2, job=3), some_claims([0, 1], [1, 2])),
            scheduler="service",
        )
    )
    verdicts = [
        Verdict.ACCEPTED,
        Verdict.OVERCOMMIT,
        Verdict.ACCEPTED,
        Verdict.GANG_BROKEN,
        Verdict.OVERCOMMIT,
    ]
    outcome = replace(
        an_outcome(*verdicts), evicted_job=integers([7, 7]), evicted_task=np.array([0, 3], np.intp)
    )

    judged = commit.judged(outcome, thought_s=0.5, took_s=0.25)

    assert "service" == judged.scheduler
    assert (3, 2) == (judged.jobs, judged.jobs_conflicted)
    assert 2 == judged.accepted
    assert 2 == judged.evicted
    assert {"overcommit": 2, "gang_broken": 1} == judged.refused
    assert (0.5, 0.25) == (judged.thought_s, judged.took_s)
    assert judged.conflicted


def test_what_a_quota_refuses_is_counted_and_is_no_conflict() -> None:
    commit = Commit(
        a_transaction(
            claims_of_job(a_job(2, job=1), some_claims([0, 1], [1, 2])),
            claims_of_job(a_job(1, job=2), a_claim(0)),
            claims_of_job(a_job(1, job=3), a_claim(0)),
        )
    )
    verdicts = [Verdict.ACCEPTED, Verdict.QUOTA, Verdict.QUOTA]

    alone = commit.judged(an_outcome(*verdicts, Verdict.ACCEPTED), thought_s=0.0, took_s=0.0)
    besides = commit.judged(an_outcome(*verdicts, Verdict.STALE), thought_s=0.0, took_s=0.0)

    assert (3, 0, 2) == (alone.jobs, alone.jobs_conflicted, alone.accepted)
    assert {"quota": 2} == alone.refused
    assert not alone.conflicted
    assert 1 == besides.jobs_conflicted
    assert {"quota": 2, "stale": 1} == besides.refused


def test_a_commit_without_refusals_is_no_conflict() -> None:
    commit = Commit(a_transaction(claims_of_job(a_job(), a_claim(0))))

    judged = commit.judged(an_outcome(Verdict.ACCEPTED), thought_s=0.0, took_s=0.0)

    assert not judged.conflicted
    assert 0 == judged.jobs_conflicted
