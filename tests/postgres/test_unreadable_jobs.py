"""A job whose row this program cannot read stops nobody."""

import json

import psycopg
import pytest

from omega.lifecycle.states import ParkReason, State
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_spec

LEASE_MS = 10_000


class Raw(str):
    """A JSON text that Python cannot read."""


def spoil(url: str, job: int, *path: str, value: object) -> None:
    """Write something else into a job's wire form."""
    with psycopg.connect(url) as connection:
        connection.execute(
            "UPDATE omega.job_spec SET wire = jsonb_set(wire, %s, %s::jsonb) WHERE job_id = %s",
            (list(path), value if isinstance(value, Raw) else json.dumps(value), job),
        )


def lease(store: PostgresStore) -> list[int]:
    jobs = store.lease("batch", holder="batch/0", jobs_max=10, lease_ms=LEASE_MS)
    return [job.id for job in jobs]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["groups"], 7),
        (["groups"], []),
        (["name"], None),
        (["precedence"], "high"),
        (["groups", "0", "tasks"], "many"),
        (["groups", "0", "tasks"], 10**18),
        (["groups", "0", "tasks"], 1),
        (["groups", "0", "cpu_milli"], 10**30),
        (["groups", "0", "constraints"], [{"attribute": "zone", "operator": "near"}]),
        (["groups"], Raw("[" * 3_000 + "]" * 3_000)),
        (["precedence"], Raw("7" * 6_000)),
    ],
    ids=lambda it: it[:30] if isinstance(it, str) else None,
)
def test_it_is_parked_and_the_others_are_leased(
    store: PostgresStore, database_url: str, path: list[str], value: object
) -> None:
    first, bad, last = store.submit([a_spec(2) for _ in range(3)])
    spoil(database_url, bad, *path, value=value)

    assert [first, last] == lease(store)
    status = store.job(bad)
    assert status is not None
    assert (State.PARKED, ParkReason.UNREADABLE) == (status.state, status.park_reason)
    assert status.park_detail
    assert "\n" not in status.park_detail
    assert [] == store.parked("batch", jobs_max=10)
    assert [] == lease(store)
