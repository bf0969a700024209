"""Conflicts in parts of the saved time, from which is estimated how much they vary."""

import psycopg
import pytest

from omega.model.claims import ConflictRule
from omega.store.postgres.saving import save_cell
from omega.store.postgres.store import PostgresStore
from omega.store.saved.cell import PARTS
from omega.testing.builders import a_spec
from omega.testing.steps import a_leased_job, add_a_cell, claim
from tests.fixtures.sessions import AT_MOST_MS

HOUR_MS = 3_600_000

pytestmark = pytest.mark.postgres


def test_conflicts_are_counted_by_parts_of_the_time_until_the_last_commit(
    database_url: str, store: PostgresStore
) -> None:
    add_a_cell(store, 2)
    job = a_leased_job(store, a_spec(8))
    claim(store, job, [0], [1])
    claim(store, job, [1], [1], rule=ConflictRule.SEQUENCE, seen=0)
    claim(store, job, [2], [1])
    # In a time that began an hour ago: one in the first part, one in the second, one at its end.
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute(
            "UPDATE omega.transaction t"
            " SET committed_at = now() - (ARRAY[58, 52, 10])[n] * interval '1 min'"
            " FROM (SELECT id AS i, row_number() OVER (ORDER BY committed_at) AS n"
            "         FROM omega.transaction) AS numbered WHERE i = t.id"
        )
    cell = save_cell(database_url, since_ms=HOUR_MS, statement_timeout_ms=AT_MOST_MS)

    told = {one.rule: one.parts for one in cell.schedulers}
    assert {PARTS} == {len(parts) for parts in told.values()}
    by_part = {
        rule: {at: part for at, part in enumerate(parts) if any(part)}
        for rule, parts in told.items()
    }
    # The last commit was 50 minutes after the begin: parts of five minutes.
    assert {0: (1, 0), PARTS - 1: (1, 0)} == by_part[ConflictRule.FIT]
    assert {1: (1, 1)} == by_part[ConflictRule.SEQUENCE]
