"""What logins may do besides their work, and what that means for a cell.

Goal     Say which login could take what all share, or go around its role.
Promise  One pure function for each check. Without logins in our roles every check passes. What
         `omega db init --roles` sets is no complaint.
Source   docs/guide/roles.md, "Set limits".
"""

from collections.abc import Callable
from typing import Final

from omega.store.postgres import restrictions
from omega.store.postgres.access import TIMEOUTS, Access, is_off
from omega.store.postgres.health.findings import Finding, Severity, good
from omega.store.postgres.restrictions import named

NAMED_MAX: Final = 3
"""Logins and databases whose names we put on the screen."""
NOBODY: Final = "no login has a role of ours here"


def connection_limits(access: Access) -> Finding:
    """Whether each login leaves connections to the others."""
    unlimited = [one for one in access.members if restrictions.is_unlimited(one)]
    if not unlimited:
        most = [one.connections_max for one in access.members if one.connections_max >= 0]
        return good("connection limits", f"at most {max(most)} a login" if most else NOBODY)
    return Finding(
        "connection limits",
        Severity.LOOK,
        f"none for {_some([one.name for one in unlimited])}",
        "one login can take all connections of the server; then no scheduler renews its leases",
        "; ".join(restrictions.limiting(one) for one in unlimited[:NAMED_MAX]),
    )


def powers(access: Access) -> Finding:
    """Whether what a login may do is what its roles say."""
    powerful = [one for one in access.members if one.powers]
    if not powerful:
        found = "none besides those of their roles" if access.members else NOBODY
        return good("powers of logins", found)
    first = powerful[0]
    return Finding(
        "powers of logins",
        Severity.LOOK,
        _some([f"{one.name} has {', '.join(one.powers)}" for one in powerful]),
        "it may do more than its roles say, or give itself the right to; a superuser is under no"
        " limit at all",
        f"ALTER ROLE {named(first.name)} {' '.join(f'NO{power}' for power in first.powers)}",
    )


def timeouts(access: Access) -> Finding:
    """Whether what a session forgets ends by itself."""
    found = ", ".join(f"{name} {access.timeouts.get(name, 'off')}" for name in TIMEOUTS)
    off = [name for name in TIMEOUTS if is_off(access.timeouts.get(name, ""))]
    if not off or not access.members:
        return good("timeouts", found)
    return Finding(
        "timeouts",
        Severity.LOOK,
        found,
        "a session that hangs, or is left open, keeps its locks until somebody ends it. A session"
        " may set its own: this helps against mistakes only",
        "; ".join(restrictions.setting(access, name) for name in off),
    )


def rights_of_public(access: Access) -> Finding:
    """Whether anybody who may connect may also make things."""
    rights = [right for right in ("CREATE", "TEMPORARY") if right in access.of_public]
    found = [f"{right} on {access.database}" for right in rights]
    cures = [restrictions.revoking(access, right) for right in rights]
    if access.public_is_open:
        found.append("CREATE on the schema public")
        cures.append(restrictions.REVOKING_PUBLIC)
    if not found or not access.members:
        return good("rights of PUBLIC", ", ".join(found) or "to make nothing here")
    return Finding(
        "rights of PUBLIC",
        Severity.LOOK,
        ", ".join(found),
        "each login may fill the disk with tables, and the table of locks that all sessions share",
        "; ".join(cures),
    )


def shared_functions(access: Access) -> Finding:
    """Whether one statement can take every lock that there is."""
    which = access.open_functions
    if not which or not access.members:
        return good("lock functions", f"PUBLIC may call {len(which)}")
    return Finding(
        "lock functions",
        Severity.LOOK,
        f"PUBLIC may call {_some(which)}",
        "advisory locks, large objects and messages in the log: with one statement a login takes"
        " all entries of the table of locks that all sessions share, and nobody can commit",
        "omega db init --roles, as a superuser; docs/guide/roles.md has the SQL",
    )


def open_databases(access: Access) -> Finding:
    """Whether those who may connect have been chosen; in other databases other limits hold."""
    names = access.open_databases
    if not names or not access.members:
        return good("CONNECT", f"PUBLIC may connect to {_some(names) or 'no database'}")
    first = list(names[:NAMED_MAX])
    cures = [f"REVOKE CONNECT ON DATABASE {', '.join(map(named, first))} FROM PUBLIC"]
    if access.database in names:
        logins = ", ".join(named(one.name) for one in access.members)
        cures.insert(0, f"GRANT CONNECT ON DATABASE {named(access.database)} TO {logins}")
    return Finding(
        "CONNECT",
        Severity.LOOK,
        f"PUBLIC may connect to {_some(names)}",
        "a login has in each of these what is refused to it here, and all databases of a server"
        " share one table of locks",
        "; ".join(cures),
    )


LOGINS: Final[tuple[Callable[[Access], Finding], ...]] = (
    connection_limits,
    powers,
    timeouts,
    rights_of_public,
    shared_functions,
    open_databases,
)
"""In the order of the screen."""


def _some(names: list[str] | tuple[str, ...]) -> str:
    more = len(names) - NAMED_MAX
    return ", ".join([*names[:NAMED_MAX], *([f"{more} more"] if more > 0 else [])])
