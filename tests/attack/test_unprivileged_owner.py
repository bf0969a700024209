"""The owner of the schema needs no superuser: all its functions work with fewer privileges."""

from collections.abc import Iterator

import pytest
from psycopg import sql

from tests.attack.audit import violations
from tests.attack.calls import LEASE_MS, call, step, try_call
from tests.attack.quota_scenario import (
    ANN,
    LOCK_NOT_AVAILABLE,
    OVER_QUOTA,
    RUNNING,
    TASKS,
    QuotaScenario,
    begin_operation,
    cores,
)
from tests.attack.sessions import Database, Session

OWNED = """
    SELECT 'SCHEMA omega' UNION ALL
    SELECT format('TABLE omega.%I', tablename) FROM pg_tables WHERE schemaname = 'omega' UNION ALL
    SELECT format('DOMAIN omega.%I', typname) FROM pg_type
     WHERE typnamespace = 'omega'::regnamespace AND typtype = 'd' UNION ALL
    SELECT format('FUNCTION %s', oid::regprocedure) FROM pg_proc
     WHERE pronamespace = 'omega'::regnamespace
"""


@pytest.fixture
def unprivileged(database: Database, scenario: QuotaScenario) -> Iterator[Session]:
    """A login without privileges that owns the whole schema during the test."""
    session = database.session_of("unprivileged owner", "attack_owner")
    user = sql.Identifier(session.connection.info.user)
    for (thing,) in database.query(OWNED):
        database.observer.execute(sql.SQL("ALTER {} OWNER TO {}").format(sql.SQL(thing), user))
    scenario.owner = session
    yield session
    if session.in_transaction:
        session.execute("ROLLBACK")
    database.observer.execute(sql.SQL("REASSIGN OWNED BY {} TO CURRENT_USER").format(user))


@pytest.mark.parametrize("operation", ["place", "end", "submit and place"])
def test_the_owner_sets_quotas_and_learns_which_login_blocks_the_count(
    database: Database, scenario: QuotaScenario, unprivileged: Session, operation: str
) -> None:
    session = begin_operation(scenario, operation)
    assert step(database, unprivileged, "set_quota", *ANN, cores(TASKS))
    refused = scenario.count_quota()
    session.execute("COMMIT")

    assert LOCK_NOT_AVAILABLE == refused.sqlstate
    assert session.connection.info.user in refused.message + refused.detail
    assert [(True,)] == scenario.count_quota().rows
    assert TASKS - scenario.cores_held() == scenario.cores_left()
    assert [(True,)] == try_call(unprivileged, "set_quota", *ANN, cores(0)).rows
    assert (OVER_QUOTA,) == scenario.place_for_ann(RUNNING + 2)
    assert [] == violations(database)


def test_the_owner_changes_machines_and_prunes(
    database: Database, scenario: QuotaScenario, unprivileged: Session
) -> None:
    machine = scenario.machines[0]
    assert [(1,)] == call(unprivileged, "set_state", [machine], 2)
    assert [(2 * RUNNING,)] == call(scenario.other_scheduler, "lose_tasks", [machine])
    call(unprivileged, "forget_changes")
    assert not try_call(unprivileged, "prune_history", "transaction", 0, 0, 100).sqlstate
    assert not try_call(unprivileged, "verify").rows
    assert [] == violations(database)


def test_the_other_roles_work_under_an_unprivileged_owner(
    database: Database, scenario: QuotaScenario, unprivileged: Session
) -> None:
    ann = scenario.ann
    call(scenario.other_scheduler, "renew_leases", [ann.job], [ann.token], LEASE_MS)
    assert (0,) == scenario.place_for_ann(RUNNING)
    assert [(1,)] == call(scenario.node, "end_tasks", [ann.job], [0], None)
    assert [(True,)] == call(scenario.submitter, "cancel_job", ann.job)
    refused = try_call(scenario.submitter, "set_quota", *ANN, cores(1))

    assert "42501" == refused.sqlstate
    assert unprivileged.is_done
    assert [] == violations(database)
