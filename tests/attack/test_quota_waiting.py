"""Setting, counting or removing a quota blocks no other tenant, whatever transactions are open."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from psycopg.types.json import Jsonb

from tests.attack.audit import violations
from tests.attack.calls import LEASE_MS, Lease, call, call_sql, start, step, try_call
from tests.attack.quota_scenario import (
    ANN,
    OPERATIONS,
    RUNNING,
    QuotaScenario,
    begin_operation,
    cores,
)
from tests.attack.sessions import Database, Session
from tests.attack.wires import a_job

SCOPES = (("tenant", "ann"), ("scheduler", "batch"))


def begin_call(scenario: QuotaScenario, what: str) -> Session:
    """Make a call in a transaction that stays open; return its session."""
    if what in OPERATIONS:
        return begin_operation(scenario, what)
    scheduler, submitting = scenario.other_scheduler, scenario.submitting_scheduler
    scheduler.execute("BEGIN")
    submitting.execute("BEGIN")
    match what:
        case "a submission":
            call(submitting, "submit_jobs", Jsonb([a_job()]))
            return submitting
        case "a lease":
            call(scenario.submitter, "submit_jobs", Jsonb([a_job()]))
            call(scheduler, "lease_jobs", "batch", "me", 1, LEASE_MS)
        case "a read of quotas":
            call(scheduler, "read_quotas")
        case "a renewal":
            call(scheduler, "renew_leases", [scenario.ann.job], [scenario.ann.token], LEASE_MS)
        case "a commit of another tenant":
            transaction = scenario.claim_cores(scenario.bob, RUNNING)
            call(scheduler, "commit_claims", *transaction.arguments)
    return scheduler


CALLS = (
    "a submission",
    "a lease",
    "a read of quotas",
    "a renewal",
    "a commit of another tenant",
    *OPERATIONS,
)


@contextmanager
def another_tenant_never_waits(scenario: QuotaScenario) -> Iterator[None]:
    """Check that the calls of another tenant return at once, before and after the block."""
    check_another_tenant(scenario)
    yield
    check_another_tenant(scenario)


def check_another_tenant(scenario: QuotaScenario) -> None:
    """Submit, lease, place and cancel a job of Carl; no call may wait for a lock."""
    database = scenario.database
    roles = ("omega_submitter", "omega_scheduler")
    carl = database.sessions.get("carl") or database.session("carl", *roles)
    wire = a_job(tenant="carl", scheduler="carls")
    assert step(database, carl, "submit_jobs", Jsonb([wire])), "submit_jobs waits"
    assert step(database, carl, "lease_jobs", "carls", "me", 1, LEASE_MS), "lease_jobs waits"
    ((job, token, *_),) = carl.answer.rows
    transaction = scenario.claim_cores(Lease(job, token), 0, machine=2)
    assert step(database, carl, "commit_claims", *transaction.arguments), "commit_claims waits"
    assert [0] == carl.answer.rows[0][0]
    assert step(database, carl, "read_quotas"), "read_quotas waits"
    assert step(database, carl, "cancel_job", job), "cancel_job waits"
    assert {"owner"}.issuperset(database.waiting())


def test_setting_a_new_quota_neither_waits_nor_blocks_another_tenant(
    scenario: QuotaScenario,
) -> None:
    for what in CALLS:
        session = begin_call(scenario, what)
        start(scenario.owner, "set_quota", *ANN, cores(3))
        scenario.database.settle(scenario.owner)
        with another_tenant_never_waits(scenario):
            assert scenario.owner.is_done, what
        for it in (scenario.other_scheduler, scenario.submitting_scheduler, session):
            it.execute("ROLLBACK")

        assert [(False,)] == scenario.owner.answer.rows
        assert [(True,)] == scenario.count_quota().rows, what
        assert [] == violations(scenario.database), what
        assert [(True,)] == call(scenario.owner, "remove_quota", *ANN)
        scenario.restore_machines()


@pytest.mark.parametrize(("what", "scope"), [("place", SCOPES[0]), ("end", SCOPES[1])])
def test_a_count_that_waits_blocks_no_other_tenant(
    scenario: QuotaScenario, what: str, scope: tuple[str, str]
) -> None:
    session = begin_call(scenario, what)
    call(scenario.owner, "set_quota", *scope, cores(30))

    start(scenario.owner, "count_quota", *scope)
    with another_tenant_never_waits(scenario):
        assert scenario.owner.answer.sqlstate in {"", "55P03"}
    session.execute("COMMIT")

    assert [(True,)] == scenario.count_quota(scope).rows
    assert [] == violations(scenario.database)


@pytest.mark.parametrize("scope", SCOPES, ids=lambda scope: scope[0])
@pytest.mark.parametrize("change", ["set", "remove"])
def test_changing_a_counted_quota_blocks_no_other_tenant(
    scenario: QuotaScenario, change: str, scope: tuple[str, str]
) -> None:
    call(scenario.owner, "set_quota", *scope, cores(30))
    assert [(True,)] == scenario.count_quota(scope).rows
    session = begin_call(scenario, "place")

    if change == "set":
        start(scenario.owner, "set_quota", *scope, cores(20))
    else:
        start(scenario.owner, "remove_quota", *scope)
    scenario.database.settle()
    with another_tenant_never_waits(scenario):
        session.execute("COMMIT")

    assert [(True,)] == scenario.owner.answer.rows
    assert [] == violations(scenario.database)


@pytest.mark.parametrize("function", ["set_quota", "count_quota", "remove_quota"])
def test_an_open_transaction_of_the_owner_blocks_no_other_tenant(
    scenario: QuotaScenario, function: str
) -> None:
    if function != "set_quota":
        call(scenario.owner, "set_quota", *ANN, cores(30))
    limits = [cores(30)] if function == "set_quota" else []
    scenario.owner.execute("BEGIN")
    assert step(scenario.database, scenario.owner, function, *ANN, *limits)

    with another_tenant_never_waits(scenario):
        assert [] == [name for name in scenario.database.waiting() if name != "owner"]
    scenario.owner.execute("COMMIT")

    assert [] == violations(scenario.database)


def test_an_open_transaction_of_a_reader_does_not_block_the_owner(
    database: Database, scenario: QuotaScenario
) -> None:
    """A reader may hold its table locks for as long as it likes."""
    reader = database.session("reader", "omega_reader")
    reader.execute("BEGIN")
    for table in ("job", "quota", "quota_shard", "allocation", "process"):
        reader.execute(f"SELECT count(*) FROM omega.{table}")
    for function, *more in (("set_quota", cores(3)), ("count_quota",), ("remove_quota",)):
        scenario.owner.start(call_sql(function), [*ANN, *more])
        database.settle()
        assert scenario.owner.is_done, function
        assert not scenario.owner.answer.sqlstate, scenario.owner.answer.message
    assert not try_call(scenario.submitter, "cancel_job", scenario.ann.job).sqlstate
