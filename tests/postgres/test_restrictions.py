"""Limits on logins: whoever may set them does, whoever may not is told how, and work goes on."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest
from psycopg import errors, sql

from omega.clock import RealClock
from omega.errors import SettingsError
from omega.store.postgres import history, revision, roles, schema
from omega.store.postgres.access import FUNCTIONS, Access, catalogue_connection, read_access
from omega.store.postgres.databases import name_of, recreated_database
from omega.store.postgres.health.examination import examine
from omega.store.postgres.restrictions import (
    CONNECTIONS_MAX,
    TIMEOUTS_SET,
    Restriction,
    missing,
    restrict,
)
from omega.store.postgres.roles import ROLES, Role
from omega.store.postgres.store import PostgresStore
from omega.testing.steps import add_a_cell
from tests.fixtures.at_work import wait_until
from tests.fixtures.logins import Login, user_of

ATTACKS = {
    "locks": "SELECT count(pg_advisory_lock(g)) FROM generate_series(1, 9) g",
    "locks for a moment": "SELECT pg_try_advisory_xact_lock_shared(g, 1)"
    " FROM generate_series(1, 9) g",
    "large objects": "SELECT lo_unlink(lo_creat(-1)) FROM generate_series(1, 9)",
    "messages": "SELECT pg_logical_emit_message(true, 'x', '')",
    "temporary tables": "CREATE TEMPORARY TABLE mine (id integer)",
}
"""What fills tables that all share; a million of each would."""
OF_DATABASE = ["TEMPORARY on the database", *TIMEOUTS_SET]
STATE = """
    SELECT (SELECT datacl::text FROM pg_database WHERE datname = current_database()),
           (SELECT string_agg(oid::text || proacl::text, ' ' ORDER BY oid) FROM pg_proc
             WHERE proname ~ %s),
           (SELECT nspacl::text FROM pg_namespace WHERE nspname = 'public'),
           (SELECT string_agg(setconfig::text, ' ' ORDER BY setrole) FROM pg_db_role_setting
             WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())),
           (SELECT string_agg(rolname || rolconnlimit, ' ' ORDER BY oid) FROM pg_roles
             WHERE starts_with(rolname, current_database()))
"""
"""All that limits are made of."""


@pytest.fixture
def superuser(empty_database_url: str) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        yield connection


def run(url: str, statement: str, **names: str) -> None:
    """Run one statement with these names in it, as whoever the URL names."""
    with psycopg.connect(url, autocommit=True) as connection:
        quoted = {key: sql.Identifier(name) for key, name in names.items()}
        connection.execute(sql.SQL(statement).format(**quoted))


def give_database(empty_database_url: str, owner: str) -> None:
    run(
        empty_database_url,
        "ALTER DATABASE {database} OWNER TO {owner}",
        database=name_of(empty_database_url),
        owner=user_of(owner),
    )


def access(url: str) -> Access:
    with catalogue_connection(url) as connection:
        return read_access(connection)


def succeeded(url: str) -> set[str]:
    """Return which attacks a login succeeds in; what it takes is given back."""
    found = set()
    for name, statement in ATTACKS.items():
        with psycopg.connect(url, autocommit=True) as session:
            try:
                session.execute(statement.encode())
            except errors.InsufficientPrivilege:
                continue
            found.add(name)
    return found


def test_no_login_fills_a_shared_table_once_a_superuser_has_made_the_roles(
    empty_database_url: str, our_own: tuple[Role, ...], own_login: Login
) -> None:
    run(empty_database_url, roles.making())
    logins = {role.name: own_login(f"of_{role.name[-4:]}", "", role.name) for role in our_own}
    before = {name: succeeded(url) for name, url in logins.items()}
    restricted = schema.migrate(empty_database_url, make_roles=True)
    after = {name: succeeded(url) for name, url in logins.items()}

    assert [set(ATTACKS)] * len(ROLES) == list(before.values())
    assert [set()] * len(ROLES) == list(after.values())
    assert () == restricted.left
    members = access(empty_database_url).members
    assert [CONNECTIONS_MAX] * len(logins) == [one.connections_max for one in members]


def test_every_function_of_the_kind_is_the_owners(
    empty_database_url: str, own_login: Login
) -> None:
    schema.migrate(empty_database_url, make_roles=True)
    callable_ = (
        "SELECT count(*), count(*) FILTER (WHERE has_function_privilege(oid, 'EXECUTE'))"
        " FROM pg_proc WHERE proname ~ %s"
    )
    with psycopg.connect(own_login("alice", "", roles.ROLES[0].name)) as session:
        counted = session.execute(callable_, (FUNCTIONS,)).fetchone()
        # Poolers say this before they give a connection to another.
        session.execute("SELECT pg_advisory_unlock_all()")
        timeouts = [session.execute(f"SHOW {name}".encode()).fetchone() for name in TIMEOUTS_SET]

    # Sixteen for advisory locks, four for large objects, two for messages.
    assert (22, 0) == counted
    assert [(value,) for value in TIMEOUTS_SET.values()] == timeouts


def test_the_owner_of_a_limited_cell_works_as_before(
    empty_database_url: str, own_login: Login
) -> None:
    owner = own_login("owner", "CREATEROLE CREATEDB")
    give_database(empty_database_url, owner)
    schema.migrate(owner, make_roles=True)
    restrict(empty_database_url)

    assert set(ATTACKS) == succeeded(owner)
    assert ((), ()) == tuple(vars(schema.migrate(owner, make_roles=True)).values())
    schema.migrate(owner)
    with recreated_database(owner, "_x", stays=False) as beside:
        schema.migrate(beside)
        assert revision.head() == revision.current(beside)
    with closing(PostgresStore(owner)) as store:
        add_a_cell(store, 3)
        assert [] == list(store.verify())
    pruned = history.prune(
        owner, older_than_ms=1, statement_timeout_ms=30_000, progress=lambda _done, _all: None
    )
    assert set(history.TABLES) == set(pruned)
    findings = {one.what: one.found for one in examine(owner, RealClock(), open_for_s=3_600)}
    assert "ms at best" in findings["durable commit"]
    schema.downgrade(owner, "base")


@pytest.mark.parametrize(
    ("who", "sets", "leaves"),
    [
        ("superuser", [*OF_DATABASE, "functions", "connections of alice"], []),
        ("owner with CREATEROLE", OF_DATABASE, ["functions"]),
        ("owner", OF_DATABASE, ["functions", "connections of alice"]),
        ("guest", [], [*OF_DATABASE, "functions", "connections of alice"]),
    ],
)
def test_each_sets_what_it_may_and_is_told_the_rest(
    empty_database_url: str, own_login: Login, who: str, sets: list[str], leaves: list[str]
) -> None:
    run(empty_database_url, roles.making())
    alice = own_login("alice", "", roles.ROLES[0].name)
    url = empty_database_url
    if who != "superuser":
        url = own_login("owner", who.partition("with ")[2])
        grant = "GRANT CREATE ON DATABASE {database} TO {user}"
        name = name_of(empty_database_url)
        run(empty_database_url, grant, database=name, user=user_of(url))
    if who.startswith("owner"):
        give_database(empty_database_url, url)
    if who == "owner with CREATEROLE":
        # From Postgres 16 on it alters those only that it administers.
        sets = [*sets, "connections of alice"]
        grant_administration(empty_database_url, alice, url)

    restricted = schema.migrate(url, make_roles=True)
    again = schema.migrate(url, make_roles=True)

    def said(limits: tuple[Restriction, ...]) -> list[str]:
        return [one.about.replace(user_of(alice), "alice") for one in limits]

    assert sets == said(restricted.done)
    assert leaves == said(restricted.left)
    assert all(one.what and one.who and one.sql for one in restricted.left)
    assert ((), restricted.left) == (again.done, again.left)
    # What it is told to run is what is missing.
    for one in restricted.left:
        run(empty_database_url, one.sql.replace("{", "{{").replace("}", "}}"))
    assert [] == missing(access(url))


def grant_administration(empty_database_url: str, login: str, owner: str) -> None:
    """Let an owner administer a login; up to Postgres 15 CREATEROLE is enough."""
    grant = "GRANT {login} TO {owner} WITH ADMIN OPTION"
    with psycopg.connect(empty_database_url) as connection:
        if connection.info.server_version >= 160_000:
            grant += ", INHERIT FALSE, SET FALSE"
            run(empty_database_url, grant, login=user_of(login), owner=user_of(owner))


def test_a_repeated_init_changes_nothing(
    empty_database_url: str,
    own_login: Login,
    superuser: psycopg.Connection[tuple[object, ...]],
) -> None:
    run(empty_database_url, roles.making())
    own_login("alice", "", roles.ROLES[1].name)
    first = schema.migrate(empty_database_url, make_roles=True)
    before = superuser.execute(STATE, (FUNCTIONS,)).fetchone()
    second = schema.migrate(empty_database_url, make_roles=True)
    schema.migrate(empty_database_url)

    assert first.done
    assert ((), ()) == (second.done, second.left)
    assert before == superuser.execute(STATE, (FUNCTIONS,)).fetchone()


def test_what_an_operator_has_set_stays(
    empty_database_url: str,
    own_login: Login,
    superuser: psycopg.Connection[tuple[object, ...]],
) -> None:
    run(empty_database_url, roles.making())
    alice = own_login("alice", "CONNECTION LIMIT 3", roles.ROLES[0].name)
    name = name_of(empty_database_url)
    alter = "ALTER DATABASE {database} SET "
    run(empty_database_url, alter + "statement_timeout = 0", database=name)
    run(empty_database_url, alter + "idle_in_transaction_session_timeout = '7s'", database=name)
    schema.migrate(empty_database_url, make_roles=True)
    own = "GRANT TEMPORARY ON DATABASE {database} TO {login}"
    run(empty_database_url, own, database=name, login=user_of(alice))
    restricted = schema.migrate(empty_database_url, make_roles=True)
    found = access(empty_database_url)

    assert ((), ()) == (restricted.done, restricted.left)
    assert {"statement_timeout": "0", "idle_in_transaction_session_timeout": "7s"} == dict(
        found.timeouts
    )
    assert [3] == [one.connections_max for one in found.members]
    assert {"temporary tables"} == succeeded(alice)


def test_a_right_that_public_was_given_is_taken_back(
    empty_database_url: str, own_login: Login
) -> None:
    owner = own_login("owner", "CREATEROLE")
    give_database(empty_database_url, owner)
    name = name_of(empty_database_url)
    run(empty_database_url, "GRANT CREATE ON DATABASE {database} TO PUBLIC", database=name)
    run(empty_database_url, "GRANT CREATE ON SCHEMA public TO PUBLIC")
    done = [one.about for one in schema.migrate(owner, make_roles=True).done]

    assert {"CREATE on the database", "CREATE on the schema public"} <= set(done)
    assert ("CONNECT",) == access(owner).of_public, "who may connect is the operator's to say"


def test_only_logins_of_our_roles_are_limited(
    empty_database_url: str, our_own: tuple[Role, ...], own_login: Login
) -> None:
    owner = own_login("owner", "CREATEROLE")
    give_database(empty_database_url, owner)
    schema.migrate(owner, make_roles=True)  # from Postgres 16 on, it may administer the roles
    reader = our_own[-1].name
    group = user_of(own_login("group", "", reader))
    run(empty_database_url, "ALTER ROLE {group} NOLOGIN", group=group)
    alice = user_of(own_login("alice", "", group))
    own_login("mighty", "SUPERUSER", reader)
    own_login("stranger")
    own_login("deputy", "", reader, user_of(owner))
    restricted = restrict(empty_database_url)
    limits = {one.name: one.connections_max for one in access(empty_database_url).members}

    assert [f"connections of {alice}"] == [
        one.about for one in restricted.done if one.about.startswith("connections")
    ]
    assert {alice: CONNECTIONS_MAX, alice.replace("alice", "mighty"): -1} == limits


def test_a_login_that_may_not_connect_here_is_another_cells(
    empty_database_url: str, own_login: Login
) -> None:
    run(empty_database_url, roles.making())
    alice, bob = (user_of(own_login(name, "", roles.ROLES[0].name)) for name in ("alice", "bob"))
    name = name_of(empty_database_url)
    run(empty_database_url, "REVOKE CONNECT ON DATABASE {database} FROM PUBLIC", database=name)
    grant = "GRANT CONNECT ON DATABASE {database} TO {login}"
    run(empty_database_url, grant, database=name, login=bob)

    assert [bob] == [one.name for one in access(empty_database_url).members]
    assert alice not in str(restrict(empty_database_url).done)


def test_a_login_at_work_keeps_its_connections_and_may_start_anew(
    empty_database_url: str, own_login: Login, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omega.store.postgres.restrictions.CONNECTIONS_MAX", 1)
    schema.migrate(empty_database_url, make_roles=True)
    alice = own_login("alice", "", roles.ROLES[0].name)
    with psycopg.connect(alice), psycopg.connect(alice):
        restrict(empty_database_url)
        (found,) = access(empty_database_url).members
        with (
            psycopg.connect(alice),
            psycopg.connect(alice),
            pytest.raises(psycopg.OperationalError, match="too many connections"),
        ):
            psycopg.connect(alice)

    assert 4 == found.connections_max


@pytest.fixture
def impatient(empty_database_url: str, superuser: psycopg.Connection[tuple[object, ...]]) -> str:
    """A cell in whose database no statement may take longer than a moment."""
    schema.migrate(empty_database_url)
    name = sql.Identifier(name_of(empty_database_url))
    superuser.execute(sql.SQL("ALTER DATABASE {} SET statement_timeout = '20ms'").format(name))
    with psycopg.connect(empty_database_url) as session, pytest.raises(errors.QueryCanceled):
        session.execute("SELECT pg_sleep(60)")
    return empty_database_url


def test_a_migration_may_take_longer_than_the_database_lets_others(
    impatient: str, superuser: psycopg.Connection[tuple[object, ...]]
) -> None:
    waiting = (
        "SELECT FROM pg_stat_activity WHERE datname = current_database()"
        " AND wait_event_type = 'Lock' AND clock_timestamp() - query_start > interval '60ms'"
    )
    superuser.execute("SELECT pg_advisory_lock(hashtext('omega.migrate'))")
    with ThreadPoolExecutor(1) as threads:
        migration = threads.submit(lambda: schema.migrate(impatient))
        try:
            wait_until(
                lambda: migration.done() or bool(superuser.execute(waiting).fetchall()),
                "it to wait",
            )
        finally:
            superuser.execute("SELECT pg_advisory_unlock_all()")
        migration.result()

    assert revision.head() == revision.current(impatient)


def test_a_database_beside_it_may_take_longer_to_make(impatient: str) -> None:
    with recreated_database(impatient, "_x", stays=False) as beside:
        assert revision.current(beside) is None


def test_who_may_not_take_the_lock_on_a_database_is_told(
    empty_database_url: str, own_login: Login
) -> None:
    schema.migrate(empty_database_url, make_roles=True)
    url = own_login("alice", "CREATEDB")

    with pytest.raises(SettingsError, match="may not take a lock"), recreated_database(url, "_x"):
        pass
