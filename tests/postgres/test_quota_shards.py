"""What is left of a quota lies in several rows: what that must not change."""

from collections.abc import Iterator

import pytest

from omega.model.outcomes import Verdict
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.store.postgres.store import PostgresStore
from omega.store.postgres.tables import SHARDS
from omega.testing.builders import a_cell, a_spec
from omega.testing.steps import a_leased_job, a_running_job, claim, end, verdicts_of


def shard_of(store: PostgresStore) -> int:
    """Return the row that this store's connection gives back to."""
    ((backend,),) = store._link.call("SELECT pg_backend_pid()")  # noqa: SLF001
    return int(backend) % SHARDS


@pytest.fixture
def elsewhere(database_url: str, store: PostgresStore) -> Iterator[PostgresStore]:
    """A store on the same cell that gives back to another row."""
    other = PostgresStore(database_url)
    while shard_of(other) == shard_of(store):
        other.close()  # and the next call has a process of its own again
    yield other
    other.close()


def test_what_others_give_back_is_not_to_be_had_while_a_limit_is_exceeded(
    store: PostgresStore, elsewhere: PostgresStore
) -> None:
    store.add_machines(a_cell(1))
    one, two, three = (a_running_job(store, a_spec(), [1]) for _ in range(3))
    waits = a_leased_job(store, a_spec())
    store.set_quota(Quota(QuotaScope.TENANT, "default", {Budget.CPU_MILLI: 1_000}))
    end(elsewhere, one, 0)

    still_above = claim(elsewhere, waits, [0], [1])
    end(elsewhere, two, 0)
    at_the_limit = claim(elsewhere, waits, [0], [1])
    end(elsewhere, three, 0)
    below_it = claim(elsewhere, waits, [0], [1])

    assert [Verdict.QUOTA] == verdicts_of(still_above)
    assert [Verdict.QUOTA] == verdicts_of(at_the_limit)
    assert [Verdict.ACCEPTED] == verdicts_of(below_it)
    assert [] == list(store.verify())
