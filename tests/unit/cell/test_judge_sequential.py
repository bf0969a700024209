"""Evictions and alternates, example by example; tests/property/test_judge.py has the laws."""

import pytest

from omega.cell.judge import judge
from omega.model.machines import MachineRows
from omega.model.outcomes import Outcome, Verdict
from omega.model.resources import Kind, amounts
from omega.testing.builders import (
    JobAndClaims,
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
from omega.testing.steps import evicted_tasks, verdicts_of
from omega.testing.twin import differences, judge_slowly

ACCEPTED, PRECEDENCE, OVERCOMMIT = Verdict.ACCEPTED, Verdict.PRECEDENCE, Verdict.OVERCOMMIT
BROKEN, PLACED = Verdict.GANG_BROKEN, Verdict.ALREADY_PLACED


def running(*machines: int, precedence: int = 0, minimum: int = 0, over: int = 0) -> KnownJob:
    """Return a job with a task of one core on each of these machines, and some that are over."""
    core = amounts(cpu_milli=1_000).tolist()
    first_over = len(machines)
    return KnownJob(
        precedence=precedence,
        minimum=minimum,
        runs={task: (machine, core) for task, machine in enumerate(machines)},
        over=frozenset(range(first_over, first_over + over)),
    )


def full(*machines: int) -> MachineRows:
    """Return machines of one core that have none left."""
    cell = a_cell(max(machines), cpu_milli=1_000)
    return some_rows(cell, used={machine: {"cpu_milli": 1_000} for machine in machines})


def judged(rows: MachineRows, jobs: dict[int, KnownJob], *claims_by_job: JobAndClaims) -> Outcome:
    """Judge, by both ways of judging."""
    transaction = a_transaction(*claims_by_job)
    context = a_context(transaction, jobs=jobs)
    outcome = judge(rows, transaction, context)

    assert [] == differences(judge_slowly(rows, transaction, context), outcome)
    return outcome


HIGH = KnownJob(precedence=50)


def test_the_next_job_finds_the_room_that_a_fallen_gang_left() -> None:
    gang = running(1, 2, 3, minimum=3)
    first = claims_of_job(a_job(job=1), evicting(a_claim(0, machine=2), (0, 9, 1)))
    second = claims_of_job(a_job(2, job=2), some_claims([0, 1], [1, 3]))

    outcome = judged(full(1, 2, 3), {1: HIGH, 2: HIGH, 9: gang}, first, second)

    assert [ACCEPTED] * 3 == verdicts_of(outcome)
    assert [(9, 1), (9, 0), (9, 2)] == evicted_tasks(outcome)
    assert [1, 1, 1] == outcome.fresh.sequence.tolist()


def test_what_an_earlier_claim_evicted_cannot_be_evicted_again() -> None:
    claims = evicting(some_claims([0, 1], [1, 1], cpu_milli=500), (0, 9, 0), (1, 9, 0))

    outcome = judged(full(1), {1: HIGH, 9: running(1)}, claims_of_job(a_job(2), claims))

    assert [ACCEPTED, PRECEDENCE] == verdicts_of(outcome)


def test_a_fallen_mate_on_another_machine_cannot_be_evicted_again() -> None:
    claims = evicting(some_claims([0, 1], [1, 2]), (0, 9, 0), (1, 9, 1))

    outcome = judged(
        full(1, 2), {1: HIGH, 9: running(1, 2, minimum=2)}, claims_of_job(a_job(2), claims)
    )

    assert [ACCEPTED, PRECEDENCE] == verdicts_of(outcome)
    assert [(9, 0), (9, 1)] == evicted_tasks(outcome)


def test_evictions_of_a_broken_stretch_may_be_made_by_a_later_one() -> None:
    gang = claims_of_job(
        a_job(2, job=1), evicting(some_claims([0, 1], [1, 7]), (0, 9, 0)), minimum=2
    )
    behind = claims_of_job(a_job(job=2), evicting(a_claim(0), (0, 9, 0)))

    outcome = judged(full(1), {1: HIGH, 2: HIGH, 9: running(1)}, gang, behind)

    assert [BROKEN, Verdict.GONE, ACCEPTED] == verdicts_of(outcome)
    assert [(9, 0)] == evicted_tasks(outcome)


def test_the_gangs_of_one_claim_fall_in_the_order_in_which_it_names_them() -> None:
    rows = some_rows(a_cell(2, cpu_milli=4_000), used={1: {"cpu_milli": 4_000}})
    jobs = {1: HIGH, 8: running(1, 1, minimum=2), 9: running(1, 1, minimum=2)}
    claim = evicting(a_claim(0), (0, 9, 1), (0, 8, 0))

    outcome = judged(rows, jobs, claims_of_job(a_job(), claim))

    assert [(9, 1), (8, 0), (9, 0), (8, 1)] == evicted_tasks(outcome)


@pytest.mark.parametrize(("over", "fallen"), [(0, [(9, 0), (9, 1)]), (1, [(9, 0)])])
def test_tasks_that_are_over_keep_a_gang_standing(over: int, fallen: list[tuple[int, int]]) -> None:
    gang = running(1, 2, minimum=2, over=over)
    claim = evicting(a_claim(0), (0, 9, 0))

    outcome = judged(full(1, 2), {1: HIGH, 9: gang}, claims_of_job(a_job(), claim))

    assert fallen == evicted_tasks(outcome)


def test_a_stretch_that_breaks_its_own_gang_must_place_it_whole_again() -> None:
    """Two of three run; moving one makes both fall, so all three must be placed."""
    gang = running(1, 2, minimum=2)
    moving = evicting(some_claims([2, 0], [1, 3]), (0, 1, 0))
    wholly = evicting(some_claims([2, 0, 1], [1, 3, 2]), (0, 1, 0))
    rows = some_rows(a_cell(3, cpu_milli=1_000), used={m: {"cpu_milli": 1_000} for m in (1, 2)})

    two_of_three = judged(rows, {1: gang}, claims_of_job(a_job(3), moving))
    all_three = judged(rows, {1: running(1, 2, minimum=3)}, claims_of_job(a_job(3), moving))
    placed_anew = judged(rows, {1: gang}, claims_of_job(a_job(3), wholly))

    assert [ACCEPTED, ACCEPTED] == verdicts_of(two_of_three)
    assert [(1, 0), (1, 1)] == evicted_tasks(two_of_three)
    assert [BROKEN, BROKEN] == verdicts_of(all_three)
    assert [] == evicted_tasks(all_three)
    assert [ACCEPTED] * 3 == verdicts_of(placed_anew)


def test_a_machine_too_full_in_a_kind_not_asked_for_refuses_until_that_is_evicted() -> None:
    rows = some_rows(a_cell(1), used={1: {"cpu_milli": 1_000, "gpu_0": 500}})
    row = amounts(cpu_milli=1_000, gpu_0=500).tolist()
    jobs = {1: HIGH, 9: KnownJob(runs={0: (1, row)})}

    plain = judged(rows, jobs, claims_of_job(a_job(), a_claim(0)))
    instead = judged(rows, jobs, claims_of_job(a_job(), evicting(a_claim(0), (0, 9, 0))))

    assert [OVERCOMMIT] == verdicts_of(plain)
    assert [ACCEPTED] == verdicts_of(instead)
    assert 0 == instead.fresh.used[0, Kind.GPU_0]


def test_a_claim_without_evictions_of_its_own_is_judged_as_ever_among_others() -> None:
    claims = evicting(some_claims([0, 1, 1, 2], [1, 1, 2, 2]), (0, 9, 0))

    outcome = judged(
        some_rows(a_cell(2, cpu_milli=1_000), used={1: {"cpu_milli": 1_000}}),
        {1: HIGH, 9: running(1)},
        claims_of_job(a_job(3), claims),
    )

    assert [ACCEPTED, OVERCOMMIT, ACCEPTED, OVERCOMMIT] == verdicts_of(outcome)


def test_an_alternate_is_no_way_round_the_claims_ahead() -> None:
    rows = some_rows(a_cell(3, cpu_milli=1_000), used={1: {"cpu_milli": 1_000}})
    claims = or_on(some_claims([0, 1, 2], [1, 1, 2]), (0, 2), (1, 2), (1, 3))

    outcome = judged(rows, {}, claims_of_job(a_job(3), claims))

    assert [ACCEPTED, ACCEPTED, OVERCOMMIT] == verdicts_of(outcome)
    assert [2, 3, 2] == outcome.machine.tolist()


def test_a_task_that_was_placed_on_an_alternate_is_placed() -> None:
    rows = some_rows(a_cell(2, cpu_milli=1_000), used={1: {"cpu_milli": 1_000}})
    claims = or_on(some_claims([0, 0], [1, 2], cpu_milli=100), (0, 2))

    assert [ACCEPTED, PLACED] == verdicts_of(judged(rows, {}, claims_of_job(a_job(), claims)))


def test_a_machine_is_named_once_a_claim() -> None:
    with pytest.raises(AssertionError, match="once"):
        or_on(a_claim(0, machine=1), (0, 2), (0, 2))
    with pytest.raises(AssertionError, match="once"):
        or_on(a_claim(0, machine=1), (0, 1))
