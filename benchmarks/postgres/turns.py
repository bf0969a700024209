"""Statements about turns: which replicas hold one now."""

from omega.store.postgres.connection import Link


def held(link: Link) -> dict[str, tuple[int, int]]:
    """Return the turns that are leased at this moment, as (i, N) from 0, by replica."""
    rows = link.call(
        "SELECT replica, number, schedulers FROM omega.turn"
        " WHERE number IS NOT NULL AND expires_at > clock_timestamp()"
    )
    return {replica: (number, schedulers) for replica, number, schedulers in rows}
