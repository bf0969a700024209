"""Arrays go to Postgres and come back as they were."""

from contextlib import closing

import numpy as np
import psycopg
import pytest

from omega.model.machines import Machines
from omega.model.resources import KINDS
from omega.store.postgres import packing
from omega.store.postgres.connection import Link
from omega.store.postgres.packing import unpack_machines
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_spec
from omega.testing.steps import a_running_job, add_a_cell


@pytest.mark.parametrize(
    ("kind", "least", "most"),
    [
        (packing.Small, -(2**15), 2**15 - 1),
        (packing.Int, -(2**31), 2**31 - 1),
        (packing.Big, -(2**63), 2**63 - 1),
    ],
)
@pytest.mark.parametrize("length", [0, 1, 3, 10_000])
def test_an_array_returns_as_it_was_sent(
    database_url: str, kind: type[packing.Small], least: int, most: int, length: int
) -> None:
    values = np.random.default_rng(length).integers(least, most, length, endpoint=True)
    with psycopg.connect(database_url) as connection:
        packing.register(connection)
        cursor = connection.cursor(binary=True)
        (back,) = cursor.execute("SELECT %s", (kind(values),)).fetchone() or (None,)

    assert isinstance(back, np.ndarray)
    assert values.tolist() == back.tolist()


def test_every_column_of_a_packed_machine_is_its_own(store: PostgresStore) -> None:
    capacity = np.arange(1, 2 * KINDS + 1, dtype=np.int64).reshape(2, KINDS) * 1_000
    store.add_machines(Machines(("left", "right"), capacity, {}))

    rows = store.snapshot().rows

    assert capacity.tolist() == rows.capacity.tolist()
    assert np.zeros((2, KINDS)).tolist() == rows.used.tolist()
    assert [1, 2] == rows.id.tolist()


def test_rows_that_come_in_several_pieces_are_all_there_and_in_order(
    store: PostgresStore, database_url: str
) -> None:
    machines = add_a_cell(store, 1_500)
    a_running_job(
        store, a_spec(3), [machines[at] for at in (0, 700, -1)]
    )  # now last on their pages
    with closing(Link(database_url, application_name="t", statement_timeout_ms=30_000)) as link:
        pieces = [bytes(piece) for (piece,) in link.call("SELECT omega.read_machines()")]

    assert 1 < sum(map(bool, pieces))
    assert machines == store.snapshot().rows.id.tolist()
    assert machines == unpack_machines(b"".join(pieces)).id.tolist()
