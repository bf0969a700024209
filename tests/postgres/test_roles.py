"""The roles are made, keep what is theirs, and have nothing else."""

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from omega.errors import NotAllowed
from omega.store.postgres import revision, roles, schema
from omega.store.postgres.connecting import SEARCH_PATH
from omega.store.postgres.roles import REVISION, ROLES, SECRETS, Role
from omega.store.postgres.tables import metadata

GRANTED = """
    SELECT r.rolname || ' ' || x.privilege_type || ' ' || o.what
      FROM (SELECT relname::text, relacl FROM pg_class WHERE relnamespace = 'omega'::regnamespace
            UNION ALL
            SELECT attrelid::regclass || '.' || attname, attacl FROM pg_attribute
             WHERE attrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'omega'::regnamespace)
            UNION ALL
            SELECT proname, coalesce(proacl, acldefault('f', proowner)) FROM pg_proc
             WHERE pronamespace = 'omega'::regnamespace
            UNION ALL
            SELECT nspname, nspacl FROM pg_namespace WHERE nspname = 'omega') AS o (what, acl),
           LATERAL aclexplode(o.acl) AS x
      JOIN (SELECT oid, rolname FROM pg_roles UNION ALL SELECT 0, 'PUBLIC') AS r
        ON r.oid = x.grantee
     WHERE x.grantee <> (SELECT nspowner FROM pg_namespace WHERE nspname = 'omega')
"""
FUNCTIONS = """
    SELECT proname::text, prosecdef, proconfig, prosrc
      FROM pg_proc WHERE pronamespace = 'omega'::regnamespace
"""
CALLABLE = frozenset(name for role in ROLES for name in role.calls)


def granted(url: str) -> set[str]:
    """Return everything that somebody besides the owner may do with what is in our schema."""
    with psycopg.connect(url) as connection:
        return {line for (line,) in connection.execute(GRANTED)}


def due(*who: Role) -> set[str]:
    """Return what these roles are to have, and nobody else."""
    return {
        f"{role.name} {right}"
        for role in who
        for right in (
            "USAGE omega",
            f"SELECT {REVISION}",
            *(f"EXECUTE {name}" for name in role.calls),
            *(f"SELECT {what}" for table in role.reads for what in readable(table)),
        )
    }


def readable(table: str) -> list[str]:
    if table not in SECRETS:
        return [table]
    columns = metadata.tables[f"omega.{table}"].columns
    return [
        f"omega.{table}.{column.name}" for column in columns if column.name not in SECRETS[table]
    ]


def test_each_role_has_what_the_table_says_and_nobody_else_has_anything(database_url: str) -> None:
    assert due(*ROLES) == granted(database_url)


def test_a_functions_owner_lends_itself_under_a_pinned_path_only(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        found = connection.execute(FUNCTIONS).fetchall()

    assert {name for name, lends, _, _ in found if lends} == CALLABLE
    pinned = f"search_path={SEARCH_PATH.replace(',', ', ')}"
    assert [] == [name for name, lends, settings, _ in found if lends and pinned not in settings]
    # Nothing in them depends on what a caller may set: no text becomes a statement, and no literal
    # reads otherwise under another setting.
    assert [] == [name for name, _, _, body in found if "EXECUTE" in body or "\\" in body]


def test_no_role_can_log_in_or_do_more_than_its_logins(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        powers = connection.execute(
            "SELECT rolcanlogin OR rolsuper OR rolcreaterole OR rolcreatedb OR rolbypassrls"
            " OR rolreplication FROM pg_roles WHERE rolname = ANY (%s)",
            ([role.name for role in ROLES],),
        ).fetchall()

    assert [(False,)] * len(ROLES) == powers


def test_roles_are_made_when_asked_for_and_keep_their_grants(
    empty_database_url: str, our_own: tuple[Role, ...]
) -> None:
    schema.migrate(empty_database_url)
    assert set() == granted(empty_database_url)

    schema.migrate(empty_database_url, make_roles=True)
    assert due(*our_own) == granted(empty_database_url)

    schema.migrate(empty_database_url)
    assert due(*our_own) == granted(empty_database_url)

    schema.migrate(empty_database_url, make_roles=True)
    assert due(*our_own) == granted(empty_database_url)


def test_a_role_that_is_there_is_left_as_it_is(
    empty_database_url: str, our_own: tuple[Role, ...]
) -> None:
    reader = our_own[-1].name
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN CREATEDB").format(sql.Identifier(reader)))
        schema.migrate(empty_database_url)
        alone = granted(empty_database_url)
        schema.migrate(empty_database_url, make_roles=True)
        powers = connection.execute(
            "SELECT rolcanlogin, rolcreatedb FROM pg_roles WHERE rolname = %s", (reader,)
        ).fetchone()

    assert due(our_own[-1]) == alone
    assert (True, True) == powers
    assert due(*our_own) == granted(empty_database_url)


def test_what_was_granted_by_hand_is_taken_back(
    empty_database_url: str, our_own: tuple[Role, ...]
) -> None:
    schema.migrate(empty_database_url, make_roles=True)
    scheduler = sql.Identifier(our_own[0].name)
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        for grant in (
            "GRANT UPDATE ON omega.machine TO {}",
            "GRANT SELECT (lease_token) ON omega.job TO {}",
            "GRANT ALL ON SCHEMA omega TO {}",
            "GRANT ALL ON ALL SEQUENCES IN SCHEMA omega TO {}",
            "GRANT EXECUTE ON FUNCTION omega.release_tasks TO {}",
            "GRANT SELECT ON omega.job TO PUBLIC",
        ):
            connection.execute(sql.SQL(grant).format(scheduler))
    schema.migrate(empty_database_url)

    assert due(*our_own) == granted(empty_database_url)


def test_an_owner_who_may_not_create_roles_is_told(
    empty_database_url: str, our_own: tuple[Role, ...]
) -> None:
    database = make_url(empty_database_url).database
    owner = f"{database}_owner"
    url = make_url(empty_database_url).set(username=owner, password="s3cret")
    as_owner = url.render_as_string(hide_password=False)
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        assert database is not None
        user = sql.Identifier(owner)
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 's3cret'").format(user))
        connection.execute(
            sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(sql.Identifier(database), user)
        )
        try:
            with pytest.raises(NotAllowed) as refused:
                schema.migrate(as_owner, make_roles=True)
            before = revision.current(empty_database_url)
            schema.migrate(as_owner)
            without_roles = granted(empty_database_url)
            connection.execute(roles.making().encode())
            schema.migrate(as_owner, make_roles=True)
        finally:
            connection.execute(sql.SQL("DROP OWNED BY {} CASCADE").format(user))
            connection.execute(sql.SQL("DROP ROLE {}").format(user))

    assert str(refused.value) == (
        "the database's user may not create roles; have one with CREATEROLE, or a superuser, run:"
        " omega db init --roles"
    )
    assert before is None, "nothing was changed"
    assert set() == without_roles


def test_roles_that_another_database_makes_meanwhile_are_no_error(
    empty_database_url: str, our_own: tuple[Role, ...]
) -> None:
    with (
        psycopg.connect(empty_database_url) as first,
        psycopg.connect(empty_database_url) as second,
    ):
        first.execute(roles.making().encode())
        # The second finds no role, and waits for the first to end: from another thread, then.
        pid = second.info.backend_pid
        blocked = "SELECT cardinality(pg_blocking_pids(%s)) > 0"
        with ThreadPoolExecutor() as threads:
            done = threads.submit(lambda: second.execute(roles.making().encode()))
            while first.execute(blocked, (pid,)).fetchone() != (True,):
                assert not done.done()
            first.commit()
            done.result()
        made = second.execute(
            "SELECT count(*) FROM pg_roles WHERE rolname = ANY (%s)",
            ([role.name for role in our_own],),
        ).fetchone()

    assert (len(our_own),) == made
