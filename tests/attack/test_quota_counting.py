"""A quota that counts has exactly its limit less what its jobs hold, whatever went on meanwhile.

Each story is stepped by hand: what is open when the quota is set, what waits for which lock when it
is counted, who goes on first. The sums are the attack's own.
"""

import pytest

from tests.attack.books import wrongs
from tests.attack.calls import LEASE_MS, ask, do, start, step
from tests.attack.quota_cast import (
    ANN,
    DEEDS,
    QUOTA,
    RUNNING,
    STILL_OPEN,
    TASKS,
    Cast,
    cores,
    do_deed,
    outcome_of,
)
from tests.attack.sessions import Session

HOLD = "SELECT FROM omega.machine WHERE id = %s FOR NO KEY UPDATE"
WAITS = 3


def counts_exactly(cast: Cast, limit: int) -> None:
    """See that the quota counts, to the last core, and refuses one more."""
    assert [(True,)] == cast.count().rows
    assert limit - cast.held() == cast.left()
    assert [] == wrongs(cast.stage)


def fills_up(cast: Cast) -> None:
    """Submit a job of Ann's that takes what is left, and not a core more."""
    left = cast.left()
    both = cast.both
    from_before = cast.held()
    ((ids,),) = both.do(
        "SELECT omega.submit_jobs(jsonb_build_array(wire || %s)) FROM omega.job_spec"
        " WHERE job_id = %s",
        ['{"scheduler": "filler"}', cast.ann.job],
    )
    rows = do(both, "lease_jobs", "filler", "me", 1, LEASE_MS)
    lease = type(cast.ann)(ids[0], rows[0][1])
    wanted = range(min(max(left, 0) + 1, TASKS))
    rows = do(both, "commit_claims", *cast.claims(lease, *wanted, machine=2).arguments)
    granted = [verdict for verdict in rows[0][0] if verdict == 0]
    assert {0, QUOTA}.issuperset(rows[0][0])
    assert min(max(left, 0), len(wanted)) == len(granted)
    assert from_before + len(granted) == cast.held()


@pytest.mark.parametrize("deed", DEEDS)
def test_what_was_open_as_the_quota_was_set_is_counted(cast: Cast, deed: str) -> None:
    for ending in ("ROLLBACK", "COMMIT"):
        session = do_deed(cast, deed)
        assert not cast.set(cores(TASKS))
        session.do(ending)

        counts_exactly(cast, TASKS)
        if ending == "ROLLBACK":
            assert [(True,)] == do(cast.owner, "remove_quota", *ANN)
            cast.repair()
    fills_up(cast)
    assert [] == wrongs(cast.stage)


@pytest.mark.parametrize(("deed", "ending"), [("ends", "COMMIT"), ("evicts", "ROLLBACK")])
def test_what_is_still_open_is_waited_for_in_vain_and_named(
    cast: Cast, deed: str, ending: str
) -> None:
    session = do_deed(cast, deed)
    assert not cast.set(cores(TASKS))

    refused = cast.count()
    assert STILL_OPEN == refused.sqlstate
    assert session.connection.info.user in refused.said + refused.detail
    session.do(ending)

    counts_exactly(cast, TASKS)


def test_until_it_counts_it_grants_nothing(cast: Cast) -> None:
    assert not cast.set(cores(TASKS))

    assert (QUOTA, QUOTA) == cast.take(RUNNING, RUNNING + 1)
    assert not cast.set(cores(TASKS + 1))
    assert (QUOTA,) == cast.take(RUNNING)
    assert [(RUNNING,)] == do(cast.node, "end_tasks", [cast.ann.job] * 2, [0, 1], None)
    assert (QUOTA,) == cast.take(RUNNING)
    counts_exactly(cast, TASKS + 1)
    assert (0, 0) == cast.take(RUNNING, RUNNING + 1)
    assert [] == wrongs(cast.stage)


def test_it_is_counted_in_a_later_transaction(cast: Cast) -> None:
    cast.owner.do("BEGIN")
    assert not cast.set(cores(TASKS))
    assert cast.count().sqlstate
    cast.owner.do("ROLLBACK")
    assert cast.count().rows != [(True,)]
    assert (0,) == cast.take(RUNNING)

    assert not cast.set(cores(TASKS))
    counts_exactly(cast, TASKS)


def test_a_commit_that_waits_for_its_job_is_judged_by_the_quota(cast: Cast) -> None:
    """It has begun before the quota is set, and looks for quotas after it has counted."""
    cast.other.do("BEGIN")
    do(cast.other, "renew_leases", [cast.ann.job], [cast.ann.token], LEASE_MS)
    claims = cast.claims(cast.ann, RUNNING, RUNNING + 1)
    assert not step(cast.stage, cast.scheduler, "commit_claims", *claims.arguments)

    assert not cast.set(cores(RUNNING + 1))
    counted = cast.count()
    cast.other.do("COMMIT")
    outcome = outcome_of(cast.scheduler)

    if counted.rows == [(True,)]:
        assert (0, QUOTA) == outcome.verdicts
        assert RUNNING + 1 == cast.held()
    counts_exactly(cast, RUNNING + 1)


def test_a_commit_that_waits_for_a_machine_is_waited_for(cast: Cast) -> None:
    """It has looked for quotas, found none, and grants whatever is set meanwhile."""
    holder = cast.stage.owner("holder")
    holder.do("BEGIN")
    holder.do(HOLD, [cast.machines[0]])
    claims = cast.claims(cast.ann, RUNNING, RUNNING + 1)
    assert not step(cast.stage, cast.scheduler, "commit_claims", *claims.arguments)

    assert not cast.set(cores(RUNNING))
    assert STILL_OPEN == cast.count().sqlstate
    holder.do("COMMIT")

    assert (0, 0) == outcome_of(cast.scheduler).verdicts
    counts_exactly(cast, RUNNING)
    assert -2 == cast.left()
    assert (QUOTA,) == cast.take(RUNNING + 2)


def test_a_commit_that_waits_twice_is_waited_for_or_judged(cast: Cast) -> None:
    """First for its job, as the quota is set, then for a machine, as it is counted."""
    cast.other.do("BEGIN")
    do(cast.other, "renew_leases", [cast.ann.job], [cast.ann.token], LEASE_MS)
    claims = cast.claims(cast.ann, RUNNING, RUNNING + 1)
    assert not step(cast.stage, cast.scheduler, "commit_claims", *claims.arguments)
    assert not cast.set(cores(RUNNING))
    holder = cast.stage.owner("holder")
    holder.do("BEGIN")
    holder.do(HOLD, [cast.machines[0]])
    cast.other.do("COMMIT")
    cast.stage.settle(cast.scheduler)

    first = cast.count()
    assert first.sqlstate in {"", STILL_OPEN}
    holder.do("COMMIT")

    assert not cast.scheduler.answer.sqlstate
    counts_exactly(cast, RUNNING)
    assert first.sqlstate or RUNNING == cast.held()


@pytest.mark.parametrize("verb", ["end_tasks", "cancel_job", "lose_tasks", "evict"])
def test_an_end_that_waits_for_a_job_is_given_back_once(cast: Cast, verb: str) -> None:
    cast.both.do("BEGIN")
    do(cast.both, "renew_leases", [cast.ann.job], [cast.ann.token], LEASE_MS)
    ending = ends_something(cast, verb)
    assert not ending.is_done

    assert not cast.set(cores(TASKS))
    first = cast.count()
    assert first.sqlstate in {"", STILL_OPEN}
    cast.both.do("COMMIT")

    assert not ending.answer.sqlstate
    assert cast.held() < RUNNING + 1
    assert first.sqlstate or TASKS - cast.held() == cast.left()
    counts_exactly(cast, TASKS)


def ends_something(cast: Cast, verb: str) -> Session:
    """Begin what ends tasks of Ann's, and settle."""
    match verb:
        case "end_tasks":
            step(cast.stage, cast.node, "end_tasks", [cast.ann.job], [0], None)
            return cast.node
        case "cancel_job":
            step(cast.stage, cast.submitter, "cancel_job", cast.ann.job)
            return cast.submitter
        case "lose_tasks":
            do(cast.owner, "set_state", [cast.machines[0]], 2)
            step(cast.stage, cast.other, "lose_tasks", [cast.machines[0]])
            return cast.other
        case _:
            claims = cast.claims(cast.bob, RUNNING)
            arguments = claims.arguments
            arguments[-3:] = [[1], [cast.ann.job], [0]]
            step(cast.stage, cast.other, "commit_claims", *arguments)
            return cast.other


@pytest.mark.parametrize("ending", ["COMMIT", "ROLLBACK"])
def test_a_quota_is_removed_while_a_commit_draws_on_it(cast: Cast, ending: str) -> None:
    assert not cast.set(cores(TASKS))
    counts_exactly(cast, TASKS)
    session = do_deed(cast, "places")
    start(cast.owner, "remove_quota", *ANN)
    cast.stage.settle(cast.owner)
    claims = cast.claims(cast.ann, RUNNING + 1, machine=1)
    start(cast.scheduler, "commit_claims", *claims.arguments)
    cast.stage.settle(cast.scheduler)

    session.do(ending)
    assert [(True,)] == cast.owner.answer.rows
    assert (0,) == outcome_of(cast.scheduler).verdicts
    assert not cast.set(cores(WAITS))
    counts_exactly(cast, WAITS)


@pytest.mark.parametrize("deed", ["places", "ends", "evicts", "moves", "cancels", "enforces"])
def test_a_quota_is_removed_and_set_again_while_something_waits_for_it(
    cast: Cast, deed: str
) -> None:
    """What was begun under the quota that went is charged to none; it is counted by the next."""
    assert not cast.set(cores(TASKS))
    counts_exactly(cast, TASKS)
    if deed == "enforces":
        less = [RUNNING * 1_000 + 500, 65_536, 65_536, *[1_000] * 8]
        do(cast.owner, "resize_machine", cast.machines[0], less, 0)
    cast.owner.do("BEGIN")
    assert [(True,)] == do(cast.owner, "remove_quota", *ANN)
    assert not cast.set(cores(WAITS))
    session = begun(cast, deed)
    cast.owner.do("COMMIT")
    cast.stage.settle(session)
    assert session.is_done

    assert not session.answer.sqlstate
    if deed == "places":
        assert cast.count().sqlstate in {"", STILL_OPEN}
    session.do("COMMIT")
    counts_exactly(cast, WAITS)


def begun(cast: Cast, deed: str) -> Session:
    """Begin a deed, in a transaction, until it waits for the quota or is done."""
    job, machine = cast.ann.job, cast.machines[0]
    match deed:
        case "ends":
            cast.node.do("BEGIN")
            start(cast.node, "end_tasks", [job], [0], None)
            session = cast.node
        case "cancels":
            cast.submitter.do("BEGIN")
            start(cast.submitter, "cancel_job", job)
            session = cast.submitter
        case _:
            session = cast.other
            session.do("BEGIN")
            mine = cast.bob if deed == "evicts" else cast.ann
            arguments = cast.claims(mine, 0 if deed == "moves" else RUNNING).arguments
            if deed != "places":
                arguments[-3:] = [[1], [job], [0]]
            if deed == "enforces":
                start(session, "enforce_notice", machine)
            else:
                start(session, "commit_claims", *arguments)
    cast.stage.settle(session)
    return session


def test_a_limit_is_lowered_and_raised_while_a_commit_draws_on_it(cast: Cast) -> None:
    assert not cast.set(cores(TASKS))
    counts_exactly(cast, TASKS)
    for limit in (RUNNING - 1, TASKS, 0, WAITS):
        cast.other.do("BEGIN")
        do(cast.other, "commit_claims", *cast.claims(cast.ann, RUNNING).arguments)
        start(cast.owner, "set_quota", *ANN, cores(limit))
        cast.stage.settle(cast.owner)
        cast.other.do("ROLLBACK")

        assert [(True,)] == cast.owner.answer.rows
        assert limit - cast.held() == cast.left()
        assert [] == wrongs(cast.stage)
    fills_up(cast)
    assert [] == wrongs(cast.stage)


def test_two_owners_set_one_quota_at_once(cast: Cast) -> None:
    second = cast.stage.owner("second")
    cast.owner.do("BEGIN")
    assert not cast.set(cores(1))
    assert not step(cast.stage, second, "set_quota", *ANN, cores(WAITS))
    assert {"second"} == cast.stage.waiting().keys()
    cast.owner.do("COMMIT")

    assert [(False,)] == second.answer.rows
    start(second, "count_quota", *ANN)
    counts_exactly(cast, WAITS)
    assert [(True,)] == second.answer.rows
    assert [(True,)] == ask(second, "set_quota", *ANN, cores(1)).rows
    assert 1 - RUNNING == cast.left()
    assert [] == wrongs(cast.stage)


def test_a_quota_is_counted_while_others_end_and_place(cast: Cast) -> None:
    """Whoever comes after it was set sees it; the count waits for what they hold."""
    assert not cast.set(cores(TASKS))
    cast.node.do("BEGIN")
    assert [(1,)] == do(cast.node, "end_tasks", [cast.ann.job], [0], None)
    cast.other.do("BEGIN")
    assert not step(
        cast.stage, cast.other, "commit_claims", *cast.claims(cast.ann, RUNNING).arguments
    )
    start(cast.owner, "count_quota", *ANN)
    cast.node.do("COMMIT")

    assert (QUOTA,) == outcome_of(cast.other).verdicts or cast.owner.answer.rows == [(True,)]
    cast.other.do("COMMIT")
    assert cast.owner.answer.sqlstate in {"", STILL_OPEN}
    counts_exactly(cast, TASKS)


def test_a_quota_of_a_kind_and_one_of_a_tenant_count_the_same_job(cast: Cast) -> None:
    session = do_deed(cast, "places")
    batch = ("scheduler", "batch")
    assert not cast.set(cores(TASKS, jobs=1))
    assert not cast.set(cores(WAITS + 1), whose=batch)
    session.do("COMMIT")
    counts_exactly(cast, TASKS)
    assert [(True,)] == cast.count(batch).rows

    assert (0, QUOTA) == cast.take(RUNNING + 1, RUNNING + 2)
    assert [] == wrongs(cast.stage)
    assert [(True,)] == do(cast.owner, "remove_quota", *batch)
    assert (0,) == cast.take(RUNNING + 2)
    assert [] == wrongs(cast.stage)
