"""A counted quota has left exactly its limit minus what its jobs hold, whatever runs concurrently.

Each test steps the sessions by hand: it fixes which transaction is open when the quota is set, and
which call waits for which lock when the quota is counted.
"""

import pytest

from tests.attack.audit import violations
from tests.attack.calls import LEASE_MS, Lease, call, start, step, try_call
from tests.attack.quota_scenario import (
    ANN,
    LOCK_NOT_AVAILABLE,
    OPERATIONS,
    OVER_QUOTA,
    RUNNING,
    TASKS,
    QuotaScenario,
    begin_operation,
    cores,
    outcome_of,
)
from tests.attack.sessions import Session

LOCK_MACHINE = "SELECT FROM omega.machine WHERE id = %s FOR NO KEY UPDATE"
FEW = 3


def check_count(scenario: QuotaScenario, limit: int) -> None:
    """Count the quota; what is left is the limit minus the cores that Ann holds."""
    assert [(True,)] == scenario.count_quota().rows
    assert limit - scenario.cores_held() == scenario.cores_left()
    assert [] == violations(scenario.database)


def check_enforcement(scenario: QuotaScenario) -> None:
    """Claim one core more than is left of the quota; exactly what is left is granted."""
    left = scenario.cores_left()
    session = scenario.submitting_scheduler
    held_before = scenario.cores_held()
    ((ids,),) = session.execute(
        "SELECT omega.submit_jobs(jsonb_build_array(wire || %s)) FROM omega.job_spec"
        " WHERE job_id = %s",
        ['{"scheduler": "filler"}', scenario.ann.job],
    )
    rows = call(session, "lease_jobs", "filler", "me", 1, LEASE_MS)
    lease = Lease(ids[0], rows[0][1])
    tasks = range(min(max(left, 0) + 1, TASKS))
    transaction = scenario.claim_cores(lease, *tasks, machine=2)
    rows = call(session, "commit_claims", *transaction.arguments)
    granted = [verdict for verdict in rows[0][0] if verdict == 0]
    assert {0, OVER_QUOTA}.issuperset(rows[0][0])
    assert min(max(left, 0), len(tasks)) == len(granted)
    assert held_before + len(granted) == scenario.cores_held()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_transactions_that_are_open_when_the_quota_is_set_are_counted(
    scenario: QuotaScenario, operation: str
) -> None:
    for ending in ("ROLLBACK", "COMMIT"):
        session = begin_operation(scenario, operation)
        assert not scenario.set_quota(cores(TASKS))
        session.execute(ending)

        check_count(scenario, TASKS)
        if ending == "ROLLBACK":
            assert [(True,)] == call(scenario.owner, "remove_quota", *ANN)
            scenario.restore_machines()
    check_enforcement(scenario)
    assert [] == violations(scenario.database)


@pytest.mark.parametrize(("operation", "ending"), [("end", "COMMIT"), ("evict", "ROLLBACK")])
def test_the_count_fails_and_names_the_login_while_a_transaction_is_open(
    scenario: QuotaScenario, operation: str, ending: str
) -> None:
    session = begin_operation(scenario, operation)
    assert not scenario.set_quota(cores(TASKS))

    refused = scenario.count_quota()
    assert LOCK_NOT_AVAILABLE == refused.sqlstate
    assert session.connection.info.user in refused.message + refused.detail
    session.execute(ending)

    check_count(scenario, TASKS)


def test_an_uncounted_quota_grants_nothing(scenario: QuotaScenario) -> None:
    assert not scenario.set_quota(cores(TASKS))

    assert (OVER_QUOTA, OVER_QUOTA) == scenario.place_for_ann(RUNNING, RUNNING + 1)
    assert not scenario.set_quota(cores(TASKS + 1))
    assert (OVER_QUOTA,) == scenario.place_for_ann(RUNNING)
    ends = ([scenario.ann.job] * 2, [0, 1], None)
    assert [(RUNNING,)] == call(scenario.node, "end_tasks", *ends)
    assert (OVER_QUOTA,) == scenario.place_for_ann(RUNNING)
    check_count(scenario, TASKS + 1)
    assert (0, 0) == scenario.place_for_ann(RUNNING, RUNNING + 1)
    assert [] == violations(scenario.database)


def test_the_transaction_that_sets_a_quota_cannot_count_it(scenario: QuotaScenario) -> None:
    scenario.owner.execute("BEGIN")
    assert not scenario.set_quota(cores(TASKS))
    assert scenario.count_quota().sqlstate
    scenario.owner.execute("ROLLBACK")
    assert scenario.count_quota().rows != [(True,)]
    assert (0,) == scenario.place_for_ann(RUNNING)

    assert not scenario.set_quota(cores(TASKS))
    check_count(scenario, TASKS)


def start_commit_that_waits(scenario: QuotaScenario) -> None:
    """Start a commit of two tasks of Ann, which must wait for a lock."""
    transaction = scenario.claim_cores(scenario.ann, RUNNING, RUNNING + 1)
    session, arguments = scenario.scheduler, transaction.arguments
    assert not step(scenario.database, session, "commit_claims", *arguments)


def lock_job_of_ann(scenario: QuotaScenario, session: Session) -> None:
    """Renew the lease of Ann in a transaction that stays open: it locks the job's row."""
    session.execute("BEGIN")
    call(session, "renew_leases", [scenario.ann.job], [scenario.ann.token], LEASE_MS)


def lock_machine(scenario: QuotaScenario) -> Session:
    """Lock the first machine in a transaction that stays open; return its session."""
    session = scenario.database.owner("machine locker")
    session.execute("BEGIN")
    session.execute(LOCK_MACHINE, [scenario.machines[0]])
    return session


def test_a_commit_that_waits_for_its_job_obeys_a_quota_that_is_counted_meanwhile(
    scenario: QuotaScenario,
) -> None:
    """The commit begins before the quota is set, and reads quotas after it is counted."""
    lock_job_of_ann(scenario, scenario.other_scheduler)
    start_commit_that_waits(scenario)

    assert not scenario.set_quota(cores(RUNNING + 1))
    counted = scenario.count_quota()
    scenario.other_scheduler.execute("COMMIT")
    outcome = outcome_of(scenario.scheduler)

    if counted.rows == [(True,)]:
        assert (0, OVER_QUOTA) == outcome.verdicts
        assert RUNNING + 1 == scenario.cores_held()
    check_count(scenario, RUNNING + 1)


def test_the_count_fails_while_a_commit_waits_for_a_machine(scenario: QuotaScenario) -> None:
    """The commit has read that there is no quota, and grants both claims."""
    locker = lock_machine(scenario)
    start_commit_that_waits(scenario)

    assert not scenario.set_quota(cores(RUNNING))
    assert LOCK_NOT_AVAILABLE == scenario.count_quota().sqlstate
    locker.execute("COMMIT")

    assert (0, 0) == outcome_of(scenario.scheduler).verdicts
    check_count(scenario, RUNNING)
    assert -2 == scenario.cores_left()
    assert (OVER_QUOTA,) == scenario.place_for_ann(RUNNING + 2)


def test_a_commit_that_waits_for_its_job_and_then_a_machine_is_counted_or_obeys_the_quota(
    scenario: QuotaScenario,
) -> None:
    """The commit waits for its job when the quota is set, and for a machine when it is counted."""
    lock_job_of_ann(scenario, scenario.other_scheduler)
    start_commit_that_waits(scenario)
    assert not scenario.set_quota(cores(RUNNING))
    locker = lock_machine(scenario)
    scenario.other_scheduler.execute("COMMIT")
    scenario.database.settle(scenario.scheduler)

    first = scenario.count_quota()
    assert first.sqlstate in {"", LOCK_NOT_AVAILABLE}
    locker.execute("COMMIT")

    assert not scenario.scheduler.answer.sqlstate
    check_count(scenario, RUNNING)
    assert first.sqlstate or RUNNING == scenario.cores_held()


@pytest.mark.parametrize("function", ["end_tasks", "cancel_job", "commit_claims"])
def test_an_end_that_waits_for_a_job_returns_its_amounts_once(
    scenario: QuotaScenario, function: str
) -> None:
    lock_job_of_ann(scenario, scenario.submitting_scheduler)
    ending = step_ending_call(scenario, function)
    assert not ending.is_done

    assert not scenario.set_quota(cores(TASKS))
    first = scenario.count_quota()
    assert first.sqlstate in {"", LOCK_NOT_AVAILABLE}
    scenario.submitting_scheduler.execute("COMMIT")

    assert not ending.answer.sqlstate
    held = scenario.cores_held()
    assert held < RUNNING + 1
    assert first.sqlstate or TASKS - held == scenario.cores_left()
    check_count(scenario, TASKS)


def step_ending_call(scenario: QuotaScenario, function: str) -> Session:
    """Start a call that ends tasks of Ann; return its session, which has settled."""
    database = scenario.database
    match function:
        case "end_tasks":
            step(database, scenario.node, "end_tasks", [scenario.ann.job], [0], None)
            return scenario.node
        case "cancel_job":
            step(database, scenario.submitter, "cancel_job", scenario.ann.job)
            return scenario.submitter
        case _:
            arguments = scenario.claim_cores(scenario.bob, RUNNING).arguments
            arguments[-3:] = [[1], [scenario.ann.job], [0]]
            step(database, scenario.other_scheduler, "commit_claims", *arguments)
            return scenario.other_scheduler


@pytest.mark.parametrize("ending", ["COMMIT", "ROLLBACK"])
def test_a_quota_can_be_removed_while_a_commit_uses_it(
    scenario: QuotaScenario, ending: str
) -> None:
    assert not scenario.set_quota(cores(TASKS))
    check_count(scenario, TASKS)
    session = begin_operation(scenario, "place")
    start(scenario.owner, "remove_quota", *ANN)
    scenario.database.settle(scenario.owner)
    transaction = scenario.claim_cores(scenario.ann, RUNNING + 1, machine=1)
    start(scenario.scheduler, "commit_claims", *transaction.arguments)
    scenario.database.settle(scenario.scheduler)

    session.execute(ending)
    assert [(True,)] == scenario.owner.answer.rows
    assert (0,) == outcome_of(scenario.scheduler).verdicts
    assert not scenario.set_quota(cores(FEW))
    check_count(scenario, FEW)


@pytest.mark.parametrize("operation", ["place", "end", "evict", "move", "cancel", "shrink"])
def test_a_call_that_waits_while_its_quota_is_replaced_is_counted_by_the_new_quota(
    scenario: QuotaScenario, operation: str
) -> None:
    """The call changes neither the old quota, which is gone, nor the new one before the count."""
    assert not scenario.set_quota(cores(TASKS))
    check_count(scenario, TASKS)
    if operation == "shrink":
        less = [RUNNING * 1_000 + 500, 65_536, 65_536, *[1_000] * 8]
        call(scenario.owner, "resize_machine", scenario.machines[0], less, 0)
    scenario.owner.execute("BEGIN")
    assert [(True,)] == call(scenario.owner, "remove_quota", *ANN)
    assert not scenario.set_quota(cores(FEW))
    session = start_operation(scenario, operation)
    scenario.owner.execute("COMMIT")
    scenario.database.settle(session)
    assert session.is_done

    assert not session.answer.sqlstate
    if operation == "place":
        assert scenario.count_quota().sqlstate in {"", LOCK_NOT_AVAILABLE}
    session.execute("COMMIT")
    check_count(scenario, FEW)


def start_operation(scenario: QuotaScenario, operation: str) -> Session:
    """Start the call of an operation in a transaction; return its session, which has settled."""
    job, machine = scenario.ann.job, scenario.machines[0]
    match operation:
        case "end":
            session = scenario.node
            session.execute("BEGIN")
            start(session, "end_tasks", [job], [0], None)
        case "cancel":
            session = scenario.submitter
            session.execute("BEGIN")
            start(session, "cancel_job", job)
        case _:
            session = scenario.other_scheduler
            session.execute("BEGIN")
            lease = scenario.bob if operation == "evict" else scenario.ann
            task = 0 if operation == "move" else RUNNING
            arguments = scenario.claim_cores(lease, task).arguments
            if operation != "place":
                arguments[-3:] = [[1], [job], [0]]
            if operation == "shrink":
                start(session, "enforce_notice", machine)
            else:
                start(session, "commit_claims", *arguments)
    scenario.database.settle(session)
    return session


def test_a_limit_can_be_changed_while_a_commit_uses_the_quota(scenario: QuotaScenario) -> None:
    assert not scenario.set_quota(cores(TASKS))
    check_count(scenario, TASKS)
    for limit in (RUNNING - 1, TASKS, 0, FEW):
        transaction = scenario.claim_cores(scenario.ann, RUNNING)
        scenario.other_scheduler.execute("BEGIN")
        call(scenario.other_scheduler, "commit_claims", *transaction.arguments)
        start(scenario.owner, "set_quota", *ANN, cores(limit))
        scenario.database.settle(scenario.owner)
        scenario.other_scheduler.execute("ROLLBACK")

        assert [(True,)] == scenario.owner.answer.rows
        assert limit - scenario.cores_held() == scenario.cores_left()
        assert [] == violations(scenario.database)
    check_enforcement(scenario)
    assert [] == violations(scenario.database)


def test_two_sessions_set_one_quota_concurrently(scenario: QuotaScenario) -> None:
    second = scenario.database.owner("second")
    scenario.owner.execute("BEGIN")
    assert not scenario.set_quota(cores(1))
    assert not step(scenario.database, second, "set_quota", *ANN, cores(FEW))
    assert {"second"} == scenario.database.waiting().keys()
    scenario.owner.execute("COMMIT")

    assert [(False,)] == second.answer.rows
    start(second, "count_quota", *ANN)
    check_count(scenario, FEW)
    assert [(True,)] == second.answer.rows
    assert [(True,)] == try_call(second, "set_quota", *ANN, cores(1)).rows
    assert 1 - RUNNING == scenario.cores_left()
    assert [] == violations(scenario.database)


def test_a_quota_is_counted_correctly_while_tasks_end_and_start(scenario: QuotaScenario) -> None:
    """Calls that begin after `set_quota` see the quota; the count waits for their transactions."""
    assert not scenario.set_quota(cores(TASKS))
    scenario.node.execute("BEGIN")
    assert [(1,)] == call(scenario.node, "end_tasks", [scenario.ann.job], [0], None)
    scheduler = scenario.other_scheduler
    scheduler.execute("BEGIN")
    transaction = scenario.claim_cores(scenario.ann, RUNNING)
    assert not step(scenario.database, scheduler, "commit_claims", *transaction.arguments)
    start(scenario.owner, "count_quota", *ANN)
    scenario.node.execute("COMMIT")

    outcome = outcome_of(scheduler)
    assert (OVER_QUOTA,) == outcome.verdicts or scenario.owner.answer.rows == [(True,)]
    scheduler.execute("COMMIT")
    assert scenario.owner.answer.sqlstate in {"", LOCK_NOT_AVAILABLE}
    check_count(scenario, TASKS)


def test_a_job_counts_towards_the_quotas_of_its_tenant_and_its_kind(
    scenario: QuotaScenario,
) -> None:
    session = begin_operation(scenario, "place")
    batch = ("scheduler", "batch")
    assert not scenario.set_quota(cores(TASKS, jobs=1))
    assert not scenario.set_quota(cores(FEW + 1), batch)
    session.execute("COMMIT")
    check_count(scenario, TASKS)
    assert [(True,)] == scenario.count_quota(batch).rows

    assert (0, OVER_QUOTA) == scenario.place_for_ann(RUNNING + 1, RUNNING + 2)
    assert [] == violations(scenario.database)
    assert [(True,)] == call(scenario.owner, "remove_quota", *batch)
    assert (0,) == scenario.place_for_ann(RUNNING + 2)
    assert [] == violations(scenario.database)
