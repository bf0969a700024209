"""What a login may not do, tried by real logins one thing after the other, and refused."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors, sql

from omega.errors import BadInput, NotAllowed
from omega.lifecycle.states import ParkReason, State
from omega.model.arrays import integers
from omega.model.claims import Transaction
from omega.model.jobs import LeasedJob
from omega.model.machines import MachineState
from omega.model.outcomes import Verdict
from omega.store.leases import HandBack, Parking
from omega.store.postgres.roles import ROLES, SECRETS, TABLES, Role
from omega.store.postgres.store import PostgresStore
from omega.store.protocols import Store
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job, evicting
from omega.testing.steps import LONG_MS, a_leased_job, add_a_cell, evicted_tasks, grant
from omega.testing.steps import places as places_of
from tests.fixtures.logins import Login

Session = psycopg.Connection[tuple[object, ...]]

NOBODY = Role("nobody", calls=())
"""Stands for a login without any role of ours."""
SIGNATURES = """
    SELECT proname::text, format('SELECT omega.%I(%s)', proname, (
               SELECT string_agg('NULL::' || format_type(t, NULL), ', ' ORDER BY n)
                 FROM unnest(proargtypes::oid[]) WITH ORDINALITY AS a (t, n)))
      FROM pg_proc WHERE pronamespace = 'omega'::regnamespace
"""
WRITES = (
    "INSERT INTO {table} DEFAULT VALUES",
    "UPDATE {table} SET {column} = {column}",
    "DELETE FROM {table}",
    "TRUNCATE {table}",
    "LOCK TABLE {table} IN ROW SHARE MODE",
    "SELECT FROM {table} FOR KEY SHARE",
    "ALTER TABLE {table} DISABLE TRIGGER ALL",
    "DROP TABLE {table}",
)
SEEKING_TOKENS = (
    "SELECT lease_token FROM omega.job",
    "SELECT * FROM omega.job",
    "TABLE omega.job",
    "SELECT j FROM omega.job AS j",
    "SELECT to_jsonb(j) FROM omega.job AS j",
    "SELECT id FROM omega.job WHERE lease_token IS NOT NULL",
    "SELECT id FROM omega.job ORDER BY lease_token",
    "SELECT count(lease_token) FROM omega.job",
    "COPY omega.job TO STDOUT",
    "COPY (SELECT lease_token FROM omega.job) TO STDOUT",
)


@pytest.fixture(params=[*ROLES, NOBODY], ids=lambda role: role.name)
def role(request: pytest.FixtureRequest) -> Role:
    asked: Role = request.param
    return asked


@pytest.fixture
def url(role: Role, login: Login) -> str:
    """A login that has this role and no other."""
    return login(role.name, *([role.name] if role in ROLES else []))


@pytest.fixture
def session(url: str) -> Iterator[Session]:
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def rival(login: Login) -> Iterator[Store]:
    """Another scheduler, which may do all that a scheduler may."""
    with closing(PostgresStore(login("rival", "omega_scheduler"))) as store:
        yield store


def refused(session: Session, statement: str) -> bool:
    try:
        with session.transaction(force_rollback=True):
            session.execute(statement.encode())
    except errors.InsufficientPrivilege:
        return True
    return False


def test_nobody_writes_or_locks_a_table(
    role: Role, session: Session, database_url: str, store: PostgresStore
) -> None:
    grant(store, a_leased_job(store), [0], add_a_cell(store, 1))
    with psycopg.connect(database_url) as owner:
        tables = owner.execute(
            "SELECT attrelid::regclass::text, min(attname::text) FROM pg_attribute"
            " WHERE attrelid IN (SELECT oid FROM pg_class WHERE relkind = 'r'"
            " AND relnamespace = 'omega'::regnamespace) AND attnum > 0 AND NOT attisdropped"
            " GROUP BY 1"
        ).fetchall()
    tried = [
        write.format(table=table, column=column) for table, column in tables for write in WRITES
    ]
    before = store.snapshot().rows.revision.tolist()

    assert [] == [statement for statement in tried if not refused(session, statement)]
    assert len(TABLES) < len(tables)
    assert before == store.snapshot().rows.revision.tolist()
    assert 1 == len(store.allocations())


def test_nobody_makes_anything_in_our_schema(role: Role, session: Session) -> None:
    for statement in (
        "CREATE TABLE omega.mine (id int)",
        "CREATE FUNCTION omega.mine() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE FUNCTION omega.is_owner(text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "CREATE VIEW omega.mine AS SELECT 1",
        "DROP FUNCTION omega.verify",
        "ALTER FUNCTION omega.verify RESET search_path",
        "ALTER SCHEMA omega RENAME TO mine",
        "SELECT nextval('omega.job_id_seq')",
    ):
        assert refused(session, statement), statement


def test_a_function_is_called_by_those_it_is_for_and_by_nobody_else(
    role: Role, session: Session, database_url: str
) -> None:
    with psycopg.connect(database_url) as owner:
        functions = owner.execute(SIGNATURES).fetchall()

    open_to_it = {name for name, call in functions if not refused_at_once(session, call)}

    assert set(role.calls) == open_to_it
    assert len(functions) > 2 * len(role.calls)


def refused_at_once(session: Session, call: str) -> bool:
    """Say whether a call is denied; to be let in and then refused for its nulls is not that."""
    try:
        with session.transaction(force_rollback=True):
            session.execute(call.encode())
    except errors.InsufficientPrivilege as denied:
        return denied.diag.source_function == "aclcheck_error"
    except psycopg.Error:
        pass
    return False


def test_a_table_is_read_by_those_it_is_for_and_by_nobody_else(
    role: Role, session: Session
) -> None:
    open_to_it = {table for table in TABLES if not refused(session, f"SELECT FROM omega.{table}")}
    whole = {
        table for table in TABLES if not refused(session, f"SELECT count(t.*) FROM omega.{table} t")
    }

    assert set(role.reads) == open_to_it
    assert set(role.reads) - SECRETS.keys() == whole


def test_nobody_reads_a_lease_token(role: Role, session: Session, store: PostgresStore) -> None:
    a_leased_job(store)

    assert [] == [query for query in SEEKING_TOKENS if not refused(session, query)]


def test_statistics_tell_no_lease_token(
    role: Role, session: Session, store: PostgresStore, database_url: str
) -> None:
    a_leased_job(store)
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute("ANALYZE omega.job")
        query = "SELECT count(*) FROM pg_stats WHERE attname = 'lease_token'"

        assert (1,) == owner.execute(query).fetchone()
    assert (0,) == session.execute(query).fetchone()


def test_nobody_becomes_another(role: Role, session: Session, database_url: str) -> None:
    with psycopg.connect(database_url) as owner:
        name = sql.Identifier(owner.info.user)
    for statement in ("SET ROLE {}", "SET SESSION AUTHORIZATION {}"):
        assert refused(session, sql.SQL(statement).format(name).as_string(session))


def test_a_refusal_is_one_sentence(role: Role, url: str) -> None:
    with closing(PostgresStore(url)) as store, pytest.raises(NotAllowed) as raised:
        store.set_state(integers(), MachineState.OPEN)

    sentence = str(raised.value)
    assert " may not do this: permission denied for " in sentence
    assert role.name in sentence, "it says who may not"
    assert "\n" not in sentence


class TestAnothersLease:
    """A scheduler without the token of a lease, as it goes for the job."""

    @pytest.fixture
    def held(self, store: PostgresStore) -> LeasedJob:
        """A job that another scheduler plans."""
        add_a_cell(store)
        return a_leased_job(store, a_spec(2))

    @pytest.fixture
    def guessed(self, held: LeasedJob) -> LeasedJob:
        return replace(held, token=uuid4())

    @pytest.fixture(autouse=True)
    def _changes_nothing(self, store: PostgresStore, held: LeasedJob) -> Iterator[None]:
        before = store.job(held.id), store.snapshot().rows.revision.tolist(), places_of(store)
        yield
        after = store.job(held.id), store.snapshot().rows.revision.tolist(), places_of(store)

        assert before == after
        assert {held.id} == store.renew({held.id: held.token}, lease_ms=LONG_MS)

    def test_it_cannot_commit(self, rival: Store, guessed: LeasedJob) -> None:
        outcome = rival.commit(a_transaction(claims_of_job(guessed, a_claim(0))))

        assert [Verdict.LEASE_LOST] == outcome.verdicts.tolist()

    def test_it_cannot_renew_hand_back_or_park(self, rival: Store, guessed: LeasedJob) -> None:
        back = HandBack(guessed.id, guessed.token, 0, progressed=False)

        assert set() == rival.renew({guessed.id: guessed.token}, lease_ms=0)
        assert 0 == rival.hand_back([back])
        assert 0 == rival.park([Parking(guessed.id, guessed.token, ParkReason.NO_ROOM, "")])

    def test_it_cannot_take_wake_or_rescue_it(self, rival: Store, held: LeasedJob) -> None:
        assert [] == rival.lease("batch", holder="rival", jobs_max=10, lease_ms=LONG_MS)
        assert [] == rival.wake([held.id])
        assert [] == rival.rescue()

    def test_no_token_is_a_bad_transaction(self, login: Login, held: LeasedJob) -> None:
        with psycopg.connect(login("rival", "omega_scheduler")) as session:
            for tokens in ("NULL", "'{NULL}'"):
                with pytest.raises(errors.InvalidParameterValue):
                    session.execute(
                        "SELECT omega.commit_claims(gen_random_uuid(), 'b', '0', false,"
                        f" ARRAY[{held.id}]::bigint[], {tokens}, '{{0}}', '{{1}}', '{{0}}',"
                        " '{1}', '{0}', '{1}', '{1,0,0,0,0,0,0,0,0,0,0}', '{}', '{}', '{}', '{}',"
                        " '{}', '{}', '{}')".encode()
                    )
                session.rollback()

    def test_what_others_ask_the_server_shows_no_token(
        self, store: PostgresStore, held: LeasedJob, login: Login
    ) -> None:
        store.renew({held.id: held.token}, lease_ms=LONG_MS)
        with psycopg.connect(login("rival", "omega_scheduler")) as session:
            seen = session.execute(
                "SELECT query FROM pg_stat_activity WHERE usename <> current_user"
            ).fetchall()

        assert set(seen) <= {(None,), ("<insufficient privilege>",)}


def test_one_login_of_two_schedulers_shows_no_token_either(
    store: PostgresStore, rival: Store, login: Login
) -> None:
    job = a_leased_job(store)
    rival.renew({job.id: job.token}, lease_ms=LONG_MS)
    with psycopg.connect(login("rival", "omega_scheduler")) as session:
        seen = session.execute(
            "SELECT query FROM pg_stat_activity WHERE usename = current_user"
        ).fetchall()

    assert any("omega.renew_leases($1" in str(query) for (query,) in seen)
    assert not any(str(job.token) in str(query) for (query,) in seen)


def test_anothers_transaction_can_be_asked_for_and_not_applied(
    store: PostgresStore, rival: Store
) -> None:
    machine, *_ = add_a_cell(store)
    job = a_leased_job(store, a_spec(2))
    transaction = a_transaction(claims_of_job(job, a_claim(0, machine=machine)))
    first = store.commit(transaction)

    def pretended(task: int) -> Transaction:
        part = (job.id, uuid4(), 0, a_claim(task, machine=machine))
        return Transaction.of([part], id=transaction.id, scheduler="rival", replica="0")

    again = rival.commit(pretended(0))
    with pytest.raises(BadInput, match="another one has this id"):
        rival.commit(pretended(1))

    assert first.verdicts.tolist() == again.verdicts.tolist() == [Verdict.ACCEPTED]
    assert first.fresh.revision.tolist() == again.fresh.revision.tolist()
    assert {(job.id, 0): machine} == places_of(store)


def test_a_scheduler_ends_no_task_but_by_the_rule(store: PostgresStore, rival: Store) -> None:
    machine, *_ = add_a_cell(store)
    victim = a_leased_job(store, a_spec(precedence=5))
    grant(store, victim, [0], [machine])
    equal = a_leased_job(store, a_spec(precedence=5))
    refusal = rival.commit(
        a_transaction(
            claims_of_job(equal, evicting(a_claim(0, machine=machine), (0, victim.id, 0)))
        )
    )
    with pytest.raises(NotAllowed):
        rival.cancel(victim.id)

    assert [Verdict.PRECEDENCE] == refusal.verdicts.tolist()
    assert [] == evicted_tasks(refusal)
    assert {(victim.id, 0): machine} == places_of(store)
    status = store.job(victim.id)
    assert status is not None
    assert State.RUNNING is status.state


def test_an_error_tells_no_token(store: PostgresStore, login: Login) -> None:
    job = a_leased_job(store)
    with psycopg.connect(login("rival", "omega_scheduler")) as session:
        for call in (
            "park_jobs(%s::bigint[], %s::uuid[], '{whim}', '{}')",
            "hand_back_jobs(%s::bigint[], %s::uuid[], '{-1}', '{f}')",
            "renew_leases(%s::bigint[], %s::uuid[], -1)",
        ):
            with pytest.raises(psycopg.Error) as raised:
                session.execute(f"SELECT omega.{call}".encode(), ([job.id], [job.token]))
            session.rollback()
            diag = raised.value.diag
            said = [diag.message_primary, diag.message_detail, diag.message_hint, diag.context]

            assert str(job.token) not in " ".join(map(str, said)), call
