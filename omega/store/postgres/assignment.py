"""Which machines a role stands for: set by the cell's owner, checked by the functions for nodes.

Goal     Limit a node's login to its own machines.
Promise  An assignment replaces the role's earlier one, and takes effect at once.
Source   docs/decisions/0017-roles.md.
"""

from collections.abc import Sequence
from contextlib import closing

from omega.store.postgres.connection import Link


def assign_machines(
    url: str, role: str, machines: Sequence[str] | None, *, statement_timeout_ms: int = 30_000
) -> int:
    """Assign a role the machines of these names and no others; None is every machine.

    Every machine includes those that join later. Returns how many machines the role stands for
    now. Raises BadInput for an unknown role or machine, NotAllowed if the URL's user is not the
    cell's owner.
    """
    link = Link(url, application_name="omega", statement_timeout_ms=statement_timeout_ms)
    names = None if machines is None else list(machines)
    with closing(link):
        ((assigned,),) = link.call("SELECT omega.assign_machines(%s, %s::text[])", (role, names))
    return int(assigned)
