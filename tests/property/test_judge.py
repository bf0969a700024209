"""The judge against its slow twin, and what it promises in its own words."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omega.cell.judge import judge
from omega.cell.judge_sequential import judge_sequentially
from omega.model.arrays import Ids, Sequences, integers
from omega.model.claims import NO_EVICTIONS, Claims, ConflictRule, JobSlice
from omega.model.machines import MachineRows
from omega.model.outcomes import Outcome, Verdict
from omega.testing.builders import within_capacity
from omega.testing.strategies import Case, cases, first_claims, single_claims
from omega.testing.twin import differences, evicted_by, judge_slowly, row_differences
from tests.fixtures.doses import examples


def judged(case: Case) -> Outcome:
    return judge(case.rows, case.transaction, case.context)


@examples(1_500, one_in=48)
@given(cases())
def test_the_judge_agrees_with_its_slow_twin(case: Case) -> None:
    slow = judge_slowly(case.rows, case.transaction, case.context)

    assert [] == differences(slow, judged(case))


@given(cases(exchange=False))
def test_the_judge_agrees_with_its_slow_twin_where_nothing_is_exchanged(case: Case) -> None:
    slow = judge_slowly(case.rows, case.transaction, case.context)

    assert [] == differences(slow, judged(case))


@examples(500)
@given(cases())
def test_one_by_one_and_all_at_once_come_to_the_same(case: Case) -> None:
    """The walk that is kept for exchanges decides plain claims as the arrays do."""
    plain = replace(case.transaction.claims, evictions=NO_EVICTIONS)
    transaction = replace(case.transaction, claims=plain)

    assert [] == differences(
        judge_sequentially(case.rows, transaction, case.context),
        judge(case.rows, transaction, case.context),
    )


def before(case: Case, outcome: Outcome) -> MachineRows:
    """Return the fresh rows as they were when the commit began."""
    return case.rows.take(case.rows.where(outcome.fresh.id))


def evicted_from(case: Case, outcome: Outcome) -> list[tuple[int, list[int]]]:
    """Return machine and amounts of whatever was evicted; fails if it did not run."""
    return [case.jobs[job].runs[task] for job, task in evicted_by(outcome)]


@given(cases())
def test_the_fresh_rows_are_those_named_and_those_evicted_from(case: Case) -> None:
    outcome = judged(case)
    lost = [machine for machine, _ in evicted_from(case, outcome)]
    named = case.transaction.claims.machines.tolist()

    assert sorted({*named, *lost} & set(case.rows.id.tolist())) == outcome.fresh.id.tolist()


@given(cases())
def test_nothing_is_oversold_that_was_not_too_full_before(case: Case) -> None:
    outcome = judged(case)
    rows, earlier = outcome.fresh, before(case, outcome)
    granted_on = np.isin(rows.id, outcome.machine[outcome.accepted])

    assert within_capacity(rows.take(np.flatnonzero(granted_on)))
    assert (rows.used[~granted_on] <= earlier.used[~granted_on]).all()
    assert (rows.used >= 0).all()


@given(cases())
def test_what_was_granted_is_used_and_what_was_evicted_is_free(case: Case) -> None:
    outcome = judged(case)
    taken, claims = outcome.accepted, case.transaction.claims
    expected = before(case, outcome).used.copy()
    at = outcome.fresh.where(outcome.machine[taken])
    np.add.at(expected, at, claims.shapes[claims.shape_on(outcome.machine)[taken]])
    for machine, amounts in evicted_from(case, outcome):
        expected[outcome.fresh.where(integers([machine]))[0]] -= amounts

    assert expected.tolist() == outcome.fresh.used.tolist()


@given(cases())
def test_a_transaction_that_is_refused_changes_nothing(case: Case) -> None:
    outcome = judged(case)
    if not outcome.accepted.any():
        assert [] == evicted_by(outcome)
        assert [] == row_differences(before(case, outcome), outcome.fresh)


@given(cases())
def test_each_machine_granted_on_rises_by_one_however_many_claims(case: Case) -> None:
    outcome = judged(case)
    rows, earlier = outcome.fresh, before(case, outcome)
    granted_on = np.isin(rows.id, outcome.machine[outcome.accepted])
    lost = np.isin(rows.id, [machine for machine, _ in evicted_from(case, outcome)])

    assert granted_on.astype(int).tolist() == (rows.sequence - earlier.sequence).tolist()
    assert (granted_on | lost).astype(int).tolist() == (rows.revision - earlier.revision).tolist()


@given(cases())
def test_a_gang_is_there_in_full_or_not_at_all(case: Case) -> None:
    """Granted to, evicted from, or both: what still runs is never less than the minimum."""
    outcome = judged(case)
    for job, about in case.jobs.items():
        fallen = {task for number, task in evicted_by(outcome) if number == job}
        granted = granted_tasks(case, outcome).get(job, [])
        running = len(about.runs.keys() - fallen) + len(granted)

        assert running == 0 or running + len(about.over) >= about.minimum


@given(cases())
def test_a_stretch_has_the_minimum_that_it_sent_or_nothing(case: Case) -> None:
    outcome = judged(case)
    for part in case.transaction.jobs:
        granted = np.count_nonzero(outcome.accepted[part.claims])

        assert granted == 0 or granted >= part.grants_min


def granted_tasks(case: Case, outcome: Outcome) -> dict[int, list[int]]:
    """Return by job the tasks that were granted."""
    task = case.transaction.claims.task
    return {
        part.job: task[part.claims][outcome.accepted[part.claims]].tolist()
        for part in case.transaction.jobs
    }


@given(cases())
def test_no_task_is_granted_twice_nor_one_that_has_a_place(case: Case) -> None:
    outcome = judged(case)
    for job, tasks in granted_tasks(case, outcome).items():
        fallen = {task for number, task in evicted_by(outcome) if number == job}

        assert len(tasks) == len(set(tasks))
        assert set() == (case.jobs[job].placed - fallen) & set(tasks)


@given(cases())
def test_a_claim_lands_on_its_machine_or_an_alternate_and_a_refused_one_nowhere(case: Case) -> None:
    outcome, claims = judged(case), case.transaction.claims
    refused = ~outcome.accepted

    assert claims.machine[refused].tolist() == outcome.machine[refused].tolist()
    for claim in np.flatnonzero(outcome.machine != claims.machine):
        others = claims.alternates.machine[claims.alternates.claim == claim]

        assert outcome.machine[claim] in others


@examples(500)
@given(cases())
def test_what_is_evicted_was_named_by_a_claim_that_may_or_fell_with_its_gang(case: Case) -> None:
    outcome, claims = judged(case), case.transaction.claims
    held = set()
    granted_at = outcome.accepted & (outcome.machine == claims.machine)
    precedence = np.zeros(len(claims), dtype=np.int64)
    scheduler_of: dict[int, str] = {}
    for number, part in enumerate(case.transaction.jobs):
        precedence[part.claims] = case.context.precedence[number]
        for claim in range(part.claims.start, part.claims.stop):
            scheduler_of[claim] = case.jobs[part.job].scheduler
        if case.context.lease_held[number]:
            held.add(part.job)
    named = [
        (int(job), int(task), int(claim))
        for claim, job, task in zip(
            claims.evictions.claim, claims.evictions.job, claims.evictions.task, strict=True
        )
        if granted_at[claim]
    ]
    evicted = evicted_by(outcome)

    assert len(evicted) == len(set(evicted))
    assert {(job, task) for job, task, _ in named} <= set(evicted)
    for job, _, claim in named:
        is_own = job in held and case.jobs[job].scheduler == scheduler_of[claim]

        assert is_own or case.jobs[job].yields_to <= precedence[claim]
    fell_with_others = set(evicted) - {(job, task) for job, task, _ in named}
    for job, _ in fell_with_others:
        running = [task for task in case.jobs[job].runs if (job, task) not in evicted]

        assert case.jobs[job].minimum > 0
        assert [] == running


@examples(500)
@given(cases(rule=ConflictRule.FIT, exchange=False))
def test_under_fit_want_of_room_is_real(case: Case) -> None:
    outcome = judged(case)
    for part in case.transaction.jobs:
        for claim in range(part.claims.start, part.claims.stop):
            if outcome.verdicts[claim] == Verdict.OVERCOMMIT:
                assert not fits(case, outcome, part, claim)
            if outcome.verdicts[claim] in (Verdict.ACCEPTED, Verdict.GANG_BROKEN):
                assert fits(case, outcome, part, claim)


def fits(case: Case, outcome: Outcome, part: JobSlice, claim: int) -> bool:
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


@examples(500)
@given(single_claims())
def test_fit_grants_what_the_sequence_rule_grants(case: Case) -> None:
    by_fit = replace(case.transaction, rule=ConflictRule.FIT)
    under_fit = judge(case.rows, by_fit, case.context)

    assert not judged(case).accepted[0] or under_fit.accepted[0]


@given(cases(rule=ConflictRule.SEQUENCE))
def test_a_fresh_view_makes_the_rules_equal(case: Case) -> None:
    by_sequence = replace(case.transaction, claims=up_to_date(case.rows, case.transaction.claims))
    by_fit = replace(by_sequence, rule=ConflictRule.FIT)

    assert [] == differences(
        judge(case.rows, by_sequence, case.context), judge(case.rows, by_fit, case.context)
    )


def up_to_date(rows: MachineRows, claims: Claims) -> Claims:
    """Return the claims as a scheduler with a fresh view would have made them."""
    others = claims.alternates
    return replace(
        claims,
        seen=_sequences(rows, claims.machine, claims.seen),
        alternates=replace(others, seen=_sequences(rows, others.machine, others.seen)),
    )


def _sequences(rows: MachineRows, machine: Ids, seen: Sequences) -> Sequences:
    at = rows.where(machine)
    now = seen.copy()
    now[at >= 0] = rows.sequence[at[at >= 0]]
    return now


@given(cases(), st.data())
def test_jobs_are_served_in_the_order_given(case: Case, data: st.DataObject) -> None:
    """What comes later in a transaction does not change what came before."""
    jobs = data.draw(st.integers(0, len(case.transaction.jobs)))
    parts = case.transaction.jobs[:jobs]
    last = parts[-1].claims.stop if parts else 0
    shorter = replace(
        case.transaction, jobs=parts, claims=first_claims(case.transaction.claims, last)
    )
    context = replace(
        case.context,
        lease_held=case.context.lease_held[:jobs],
        minimum=case.context.minimum[:jobs],
        placed=case.context.placed[:jobs],
        precedence=case.context.precedence[:jobs],
        unplaced=case.context.unplaced[:last],
    )
    alone = judge(case.rows, shorter, context)

    assert alone.verdicts.tolist() == judged(case).verdicts[:last].tolist()
    assert alone.machine.tolist() == judged(case).machine[:last].tolist()
