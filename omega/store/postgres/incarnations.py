"""Incarnations of the database: what of it readers may remember, and since when.

Goal     Have views, nodes and agents read everything anew when the database may have lost commits
         that they have seen: by a promotion, a restore or a crash.
Promise  A mark says of which incarnation it is. No two have a mark or a generation in common. If
         commits may have been lost between them, numbers of jobs and machines that were lost do
         not come again, unless they were more than JOBS_PASSED_OVER or MACHINES_PASSED_OVER, or
         one backup is restored again: then jobs are drawn a place, and machines have the same.
Source   docs/decisions/0049-incarnations.md.
"""

from typing import Final

INCARNATION_UNKNOWN: Final = "OM001"
"""The SQLSTATE of calls that were refused because an incarnation has to be begun first."""
INCARNATION_IS_KNOWN: Final = (
    "EXISTS (SELECT FROM omega.incarnation i"
    " WHERE i.started_at = pg_postmaster_start_time() AND i.xmin = i.born::xid"
    " AND starts_with(pg_relation_filepath('omega.incarnation'), i.folder))"
)
"""The condition, in SQL, that the present one has begun since commits may last have been lost. It
cannot be asked of a standby, where the table cannot be read."""
JOBS_PASSED_OVER: Final = 1_000_000
"""After commits may have been lost, jobs go on at a multiple of this, at least so much further."""
MACHINES_PASSED_OVER: Final = 1_000
"""How many numbers of machines are passed over then."""
_OF_TRANSACTION: Final = 64
"""Bits of a mark that say of which transaction it is; those above say of which incarnation."""


def joined(incarnation: int, number: int) -> int:
    """Return a mark, or another number that grows, as one of an incarnation."""
    return incarnation << _OF_TRANSACTION | number


def divided(joint: int) -> tuple[int, int]:
    """Return the incarnation and the number of a joined number."""
    return joint >> _OF_TRANSACTION, joint & ((1 << _OF_TRANSACTION) - 1)
