"""Which machines a role stands for: said by the cell's owner, obeyed by the functions for nodes.

Goal     Tie a node's login to its machines.
Promise  What is said replaces what was said of the role before, and counts from then on.
Source   docs/decisions/0017-roles.md.
"""

from collections.abc import Sequence
from contextlib import closing

from omega.store.postgres.connection import Link


def assign_machines(
    url: str, role: str, machines: Sequence[str] | None, *, statement_timeout_ms: int = 30_000
) -> int:
    """Have a role stand for the machines of these names and no others; None is every machine.

    Every machine is also those that join later. Returns for how many it stands now. Raises
    BadInput for a role or a machine that there is not, NotAllowed if the URL's user is not the
    owner.
    """
    link = Link(url, application_name="omega", statement_timeout_ms=statement_timeout_ms)
    names = None if machines is None else list(machines)
    with closing(link):
        ((assigned,),) = link.call("SELECT omega.assign_machines(%s, %s::text[])", (role, names))
    return int(assigned)
