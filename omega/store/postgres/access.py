"""What logins may do in a database besides calling Omega's functions, read from its catalogues.

Goal     One value that says what is left open, for the code that closes it and that reports it.
Promise  Reading changes nothing, and any role's login may do it. Logins are the members of Omega's
         roles that may connect to this database, except those with the rights of the cell's or the
         database's owner.
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
from omega.store.postgres.column_types import SCHEMA
from omega.store.postgres.connecting import SEARCH_PATH

FUNCTIONS: Final = (
    "^(pg_(try_)?advisory_(xact_)?lock(_shared)?"
    "|lo_(creat|create|from_bytea|unlink)|pg_logical_emit_message)$"
)
"""Functions of Postgres that every login may call and that use up what all logins share: the lock
table, large objects, the log. Each advisory lock and each large object takes an entry of the lock
table. A message in the log gives each savepoint a transaction id, and with it an entry."""
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
    """A login that is a member of one of Omega's roles, directly or through another role."""

    name: str
    connections_max: int
    """-1 for no limit."""
    connections: int
    """How many connections it has at this moment."""
    powers: tuple[str, ...] = ()
    """Those of POWERS that it has, apart from its roles."""


@dataclass(frozen=True)
class Access:
    """What logins may do in one database."""

    database: str
    owner: str
    """Of the database."""
    cell_owner: str
    """The owner of Omega's schema; the database's owner if there is no cell."""
    of_public: tuple[str, ...] = ()
    """Rights of PUBLIC on this database: CONNECT, CREATE, TEMPORARY."""
    open_databases: tuple[str, ...] = ()
    """Databases of this server to which PUBLIC may connect; this one comes first."""
    public_owner: str = ""
    """Of the schema public."""
    public_is_open: bool = False
    """Whether PUBLIC may create objects in it."""
    open_functions: tuple[str, ...] = ()
    """Those of FUNCTIONS that PUBLIC may call."""
    owner_lacks: tuple[str, ...] = ()
    """Those of FUNCTIONS that the cell's owner may not call."""
    timeouts: Mapping[str, str] = field(default_factory=dict)
    """Those of TIMEOUTS that are set for this database, for all databases or for the server."""
    members: tuple[Member, ...] = ()


@contextmanager
def catalogue_connection(url: str) -> Iterator[_Connection]:
    """Open a connection with Omega's search_path, so that other objects cannot hide catalogues.

    Raises StoreUnavailable if the server does not answer.
    """
    try:
        with closing(
            psycopg.connect(url, autocommit=True, connect_timeout=10, client_encoding="utf8")
        ) as connection:
            # Set after connecting: as a connection option it would replace the URL's options.
            connection.execute(f"SET search_path = {SEARCH_PATH}".encode())
            yield connection
    except psycopg.OperationalError as silence:
        said = silence.diag.message_primary or str(silence)
        raise StoreUnavailable(" ".join(said.split())) from silence


def read_access(connection: _Connection) -> Access:
    """Read everything that Access holds, once."""
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


def is_disabled(timeout: str) -> bool:
    """Return whether a timeout, as it was set, means no timeout."""
    return re.fullmatch(r"\s*0*(\.0*)?\s*[a-z]*\s*", timeout) is not None


def _timeouts(connection: _Connection) -> dict[str, str]:
    """Return the timeouts as they were set; settings of single roles do not count."""
    of_server = connection.execute(OF_SERVER, (list(TIMEOUTS),)).fetchall()
    entries = connection.execute(DATABASE_SETTINGS).fetchall()
    said = [str(entry).partition("=") for (entry,) in entries]
    return {**dict(of_server), **{name: value for name, _, value in said if name in TIMEOUTS}}
