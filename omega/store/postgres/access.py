"""What logins may do in a database besides calling our functions, as its catalogues have it.

Goal     One value that says what is left open, for what closes it and for what reports it.
Promise  Changes nothing, and takes no more than a login of any role has. Logins are those that are
         members of our roles and may connect to this database; whoever has the rights of the cell's
         or the database's owner is not among them.
Source   PostgreSQL's manual: pg_database, pg_proc, pg_db_role_setting, pg_auth_members; decision
         docs/decisions/0017-roles.md.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg

from omega.errors import StoreUnavailable
from omega.store.postgres import roles
from omega.store.postgres.connection import SEARCH_PATH
from omega.store.postgres.tables import SCHEMA

FUNCTIONS: Final = (
    "^(pg_(try_)?advisory_(xact_)?lock(_shared)?"
    "|lo_(creat|create|from_bytea|unlink)|pg_logical_emit_message)$"
)
"""Functions of Postgres that anybody may call, and that fill what all logins share: the table of
locks, large objects, the log. Advisory locks and large objects take an entry of the table of locks
each; a message in the log gives each savepoint a transaction id, and with it an entry."""
TIMEOUTS: Final = ("statement_timeout", "idle_in_transaction_session_timeout")
POWERS: Final = ("SUPERUSER", "CREATEROLE", "CREATEDB", "REPLICATION", "BYPASSRLS")

_Connection = psycopg.Connection[tuple[Any, ...]]

OWNERS: Final = """
    SELECT current_database()::text, o.rolname::text, s.rolname::text
      FROM pg_database d JOIN pg_roles o ON o.oid = d.datdba
      LEFT JOIN pg_namespace n ON n.nspname = %s LEFT JOIN pg_roles s ON s.oid = n.nspowner
     WHERE d.datname = current_database()
"""
OF_DATABASES: Final = """
    SELECT d.datname::text, x.privilege_type
      FROM pg_database d, aclexplode(coalesce(d.datacl, acldefault('d', d.datdba))) AS x
     WHERE x.grantee = 0 AND d.datallowconn
     ORDER BY d.datname <> current_database(), 1, 2
"""
OF_PUBLIC: Final = """
    SELECT CASE o.rolname WHEN 'pg_database_owner' THEN %s ELSE o.rolname::text END,
           EXISTS (SELECT FROM aclexplode(n.nspacl) AS x
                    WHERE x.grantee = 0 AND x.privilege_type = 'CREATE')
      FROM pg_namespace n JOIN pg_roles o ON o.oid = n.nspowner WHERE n.nspname = 'public'
"""
OF_FUNCTIONS: Final = """
    SELECT p.oid::regprocedure::text,
           EXISTS (SELECT FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) AS x
                    WHERE x.grantee = 0 AND x.privilege_type = 'EXECUTE'),
           has_function_privilege(%s::name, p.oid, 'EXECUTE')
      FROM pg_proc p
     WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname ~ %s
     ORDER BY 1
"""
DATABASE_SETTINGS: Final = """
    SELECT c.entry
      FROM pg_db_role_setting s, unnest(s.setconfig) AS c (entry)
     WHERE s.setrole = 0
       AND s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
     ORDER BY s.setdatabase
"""
OF_SERVER: Final = """
    SELECT name, setting || coalesce(unit, '') FROM pg_settings
     WHERE name = ANY (%s) AND setting <> '0'
       AND source IN ('default', 'environment variable', 'configuration file', 'command line')
"""
MEMBERS: Final = """
    WITH RECURSIVE ours (role) AS (
        SELECT oid FROM pg_roles WHERE rolname = ANY (%(roles)s)
        UNION
        -- From Postgres 16 on, whoever made a role may administer it, and not be it.
        SELECT m.member FROM pg_auth_members m JOIN ours ON ours.role = m.roleid
         WHERE (to_jsonb(m) ->> 'inherit_option')::boolean IS NOT FALSE
            OR (to_jsonb(m) ->> 'set_option')::boolean IS NOT FALSE
    )
    SELECT r.rolname::text, r.rolconnlimit,
           (SELECT count(*) FROM pg_stat_activity a WHERE a.usesysid = r.oid),
           ARRAY[r.rolsuper, r.rolcreaterole, r.rolcreatedb, r.rolreplication, r.rolbypassrls]
      FROM pg_roles r
     WHERE r.oid IN (SELECT role FROM ours) AND r.rolcanlogin
       AND has_database_privilege(r.oid, current_database(), 'CONNECT')
       AND r.rolname <> ALL (%(owners)s)
       AND (r.rolsuper OR NOT EXISTS (SELECT FROM unnest(%(owners)s::name[]) AS owner
                                       WHERE pg_has_role(r.oid, owner, 'USAGE')))
     ORDER BY 1
"""


@dataclass(frozen=True)
class Member:
    """A login that is a member of one of our roles, itself or through another role."""

    name: str
    connections_max: int
    """-1 for any number."""
    connections: int
    """How many it has at this moment."""
    powers: tuple[str, ...] = ()
    """Which of POWERS it has, whatever its roles may do."""


@dataclass(frozen=True)
class Access:
    """What logins may do in one database."""

    database: str
    owner: str
    """Of the database."""
    cell_owner: str
    """Of our schema; the database's, where there is no cell."""
    of_public: tuple[str, ...] = ()
    """Rights of PUBLIC on this database: CONNECT, CREATE, TEMPORARY."""
    open_databases: tuple[str, ...] = ()
    """Databases of this server to which PUBLIC may connect, this one first."""
    public_owner: str = ""
    """Of the schema public."""
    public_is_open: bool = False
    """Whether PUBLIC may create something in it."""
    open_functions: tuple[str, ...] = ()
    """Those of FUNCTIONS that PUBLIC may call."""
    owner_lacks: tuple[str, ...] = ()
    """Those of FUNCTIONS that the cell's owner may not call."""
    timeouts: Mapping[str, str] = field(default_factory=dict)
    """Those of TIMEOUTS that somebody has set for this database, all databases or the server."""
    members: tuple[Member, ...] = ()


@contextmanager
def catalogue_connection(url: str) -> Iterator[_Connection]:
    """Open a connection with our search_path, so that others' objects cannot shadow catalogues.

    Raises StoreUnavailable if the server does not answer.
    """
    try:
        with closing(
            psycopg.connect(url, autocommit=True, connect_timeout=10, client_encoding="utf8")
        ) as connection:
            # Said afterwards: as an option of the connection it would replace the URL's own.
            connection.execute(f"SET search_path = {SEARCH_PATH}".encode())
            yield connection
    except psycopg.OperationalError as silence:
        said = silence.diag.message_primary or str(silence)
        raise StoreUnavailable(" ".join(said.split())) from silence


def read_access(connection: _Connection) -> Access:
    """Look at everything once."""
    ((database, owner, of_schema),) = connection.execute(OWNERS, (SCHEMA,)).fetchall()
    owners = list({owner, of_schema or owner})
    of_databases = connection.execute(OF_DATABASES).fetchall()
    public_owner, public_is_open = connection.execute(OF_PUBLIC, (owner,)).fetchone() or ("", False)
    functions = connection.execute(OF_FUNCTIONS, (of_schema or owner, FUNCTIONS)).fetchall()
    ours = {"roles": [role.name for role in roles.ROLES], "owners": owners}
    return Access(
        database=database,
        owner=owner,
        cell_owner=of_schema or owner,
        of_public=tuple(right for name, right in of_databases if name == database),
        open_databases=tuple(name for name, right in of_databases if right == "CONNECT"),
        public_owner=public_owner,
        public_is_open=public_is_open,
        open_functions=tuple(name for name, is_open, _ in functions if is_open),
        owner_lacks=tuple(name for name, _, is_theirs in functions if not is_theirs),
        timeouts=_timeouts(connection),
        members=tuple(
            Member(name, most, now, tuple(p for p, has in zip(POWERS, powers, strict=True) if has))
            for name, most, now, powers in connection.execute(MEMBERS, ours)
        ),
    )


def is_off(timeout: str) -> bool:
    """Say whether a timeout, as it was set, is none."""
    return re.fullmatch(r"\s*0*(\.0*)?\s*[a-z]*\s*", timeout) is not None


def _timeouts(connection: _Connection) -> dict[str, str]:
    """Return what is set, as it was written; what a role brings along for itself does not count."""
    of_server = connection.execute(OF_SERVER, (list(TIMEOUTS),)).fetchall()
    entries = connection.execute(DATABASE_SETTINGS).fetchall()
    said = [str(entry).partition("=") for (entry,) in entries]
    return {**dict(of_server), **{name: value for name, _, value in said if name in TIMEOUTS}}
