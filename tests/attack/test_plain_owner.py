"""A cell whose owner is no superuser, as it should be: it sees less, and all works as well."""

from collections.abc import Iterator

import pytest
from psycopg import sql

from tests.attack.books import wrongs
from tests.attack.calls import LEASE_MS, ask, do, step
from tests.attack.quota_cast import ANN, QUOTA, RUNNING, STILL_OPEN, TASKS, Cast, cores, do_deed
from tests.attack.sessions import Session, Stage

OWNED = """
    SELECT 'SCHEMA omega' UNION ALL
    SELECT format('TABLE omega.%I', tablename) FROM pg_tables WHERE schemaname = 'omega' UNION ALL
    SELECT format('DOMAIN omega.%I', typname) FROM pg_type
     WHERE typnamespace = 'omega'::regnamespace AND typtype = 'd' UNION ALL
    SELECT format('FUNCTION %s', oid::regprocedure) FROM pg_proc
     WHERE pronamespace = 'omega'::regnamespace
"""


@pytest.fixture
def plain(stage: Stage, cast: Cast) -> Iterator[Session]:
    """A login to which everything in the schema belongs, as long as the test lasts."""
    session = stage.session_of("plain", "attack_owner")
    user = sql.Identifier(session.connection.info.user)
    for (thing,) in stage.see(OWNED):
        stage.onlooker.execute(sql.SQL("ALTER {} OWNER TO {}").format(sql.SQL(thing), user))
    cast.owner = session
    yield session
    if session.in_transaction:
        session.do("ROLLBACK")
    stage.onlooker.execute(sql.SQL("REASSIGN OWNED BY {} TO CURRENT_USER").format(user))


@pytest.mark.parametrize("deed", ["places", "ends", "comes and goes in"])
def test_it_sets_quotas_and_is_told_who_is_in_the_way(
    stage: Stage, cast: Cast, plain: Session, deed: str
) -> None:
    session = do_deed(cast, deed)
    assert step(stage, plain, "set_quota", *ANN, cores(TASKS))
    refused = cast.count()
    session.do("COMMIT")

    assert STILL_OPEN == refused.sqlstate
    assert session.connection.info.user in refused.said + refused.detail
    assert [(True,)] == cast.count().rows
    assert TASKS - cast.held() == cast.left()
    assert [(True,)] == ask(plain, "set_quota", *ANN, cores(0)).rows
    assert (QUOTA,) == cast.take(RUNNING + 2)
    assert [] == wrongs(stage)


def test_it_changes_machines_and_prunes(stage: Stage, cast: Cast, plain: Session) -> None:
    assert [(1,)] == do(plain, "set_state", [cast.machines[0]], 2)
    assert [(2 * RUNNING,)] == do(cast.other, "lose_tasks", [cast.machines[0]])
    do(plain, "forget_changes")
    assert not ask(plain, "prune_history", "transaction", 0, 0, 100).sqlstate
    assert not ask(plain, "verify").rows
    assert [] == wrongs(stage)


def test_roles_do_their_work_as_before(stage: Stage, cast: Cast, plain: Session) -> None:
    do(cast.other, "renew_leases", [cast.ann.job], [cast.ann.token], LEASE_MS)
    assert (0,) == cast.take(RUNNING)
    assert [(1,)] == do(cast.node, "end_tasks", [cast.ann.job], [0], None)
    assert [(True,)] == do(cast.submitter, "cancel_job", cast.ann.job)
    refused = ask(cast.submitter, "set_quota", *ANN, cores(1))

    assert "42501" == refused.sqlstate
    assert plain.is_done
    assert [] == wrongs(stage)
